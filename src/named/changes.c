/* changes - lists the differences between a named sandbox and its image; see changes.h. */
#include "named/changes.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/images.h"
#include "named/layerstore.h"
#include "named/named.h"
#include "named/nameddisk.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RESULT_MAX_BYTES (256u << 20)

/* Paths that every start writes (sandbox/imageroot, sandbox/hostroot): not the user's changes. */
static const char *const own_paths[] = {
	"/etc",
	"/etc/hosts",
	"/etc/hostname",
	"/etc/resolv.conf",
	"/etc/machine-id",
	"/proc",
	"/sys",
	"/dev",
	"/tmp",
	"/var",
	"/var/tmp",
	"/run",
	"/root",
	"/home",
	"/home/user",
	"/var/run",
	"/var/cache",
	"/var/lib",
	"/var/log",
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/opt",
	"/nix",
	NULL,
};

struct layers {
	int upper_fds[TREEDIFF_LAYERS_MAX], base_fds[TREEDIFF_LAYERS_MAX];
	unsigned upper_count, base_count;
};

static void layers_done(struct layers *l)
{
	for (unsigned i = 0; i < l->upper_count; i++)
		cleanup_closep(&l->upper_fds[i]);
	for (unsigned i = 0; i < l->base_count; i++)
		cleanup_closep(&l->base_fds[i]);
}

static int open_own(const struct ak *ak, struct named *n, struct layers *l, struct err *e)
{
	cleanup_fd int store_fd = -1;
	int upper_fd = -1;

	if (nameddisk_open_upper(n, &upper_fd, e) < 0)
		return -1;
	if (upper_fd >= 0)
		l->upper_fds[l->upper_count++] = upper_fd;
	if (!n->layers)
		return 0;
	if (layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0)
		return -1;
	for (char **id = n->layers; *id && l->upper_count < TREEDIFF_LAYERS_MAX; id++) {
		if (layerstore_open_layer(store_fd, *id, &l->upper_fds[l->upper_count], e) < 0)
			return -1;
		l->upper_count++;
	}
	return 0;
}

static int open_image(const struct ak *ak, const struct named *n, struct layers *l, struct err *e)
{
	CLEANUP(images_done) struct images image;
	cleanup_fd int dir_fd = -1;

	images_init(&image);
	if (!n->image_pin)
		return 0;
	if (images_open_pinned(ak, n->image_pin, n->image, &image, e) < 0)
		return -1;
	dir_fd = open(image.layers_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open the image's layers");
	for (unsigned i = 0; i < image.record.layer_count && i < TREEDIFF_LAYERS_MAX; i++) {
		int fd = openat(dir_fd, image.record.layers[i],
				O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0)
			return err_sys(e, errno, "open the image's layers");
		l->base_fds[l->base_count++] = fd;
	}
	return 0;
}

/* The child of owner_run() returns its list in a memfd, because it does not share our memory. */
struct finding {
	const struct layers *layers;
	int result_fd;
};

static int find(void *context, struct err *e)
{
	const struct finding *f = context;
	CLEANUP(treediff_done) struct treediff diff = { 0 };
	const struct treediff_options o = {
		.upper_fds = f->layers->upper_fds,
		.upper_count = f->layers->upper_count,
		.base_fds = f->layers->base_fds,
		.base_count = f->layers->base_count,
		.known_paths = own_paths,
	};
	FILE *out;

	if (treediff_run(&o, &diff, e) < 0)
		return -1;
	out = fdopen(dup(f->result_fd), "w");
	if (!out)
		return err_sys(e, errno, "keep the changes");
	(void)fputc(diff.is_cut ? 'y' : 'n', out);
	for (size_t i = 0; i < diff.count; i++) {
		(void)fputc('0' + (int)diff.list[i].kind, out);
		(void)fwrite(diff.list[i].path, strlen(diff.list[i].path) + 1, 1, out);
	}
	if (fclose(out) != 0)
		return err_sys(e, errno, "keep the changes");
	return 0;
}

static int read_back(int fd, struct treediff *ret, struct err *e)
{
	off_t size = lseek(fd, 0, SEEK_END);
	cleanup_free char *bytes = NULL;
	size_t at = 1;

	if (size < 1 || size > (off_t)RESULT_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "there are more changes than can be listed");
	bytes = mem_alloc((size_t)size + 1);
	if (pread(fd, bytes, (size_t)size, 0) != (ssize_t)size)
		return err_set(e, ERR_SYSTEM, "the list of changes is cut off");
	ret->is_cut = bytes[0] == 'y';
	while (at + 1 < (size_t)size) {
		unsigned kind = (unsigned)(bytes[at] - '0');
		const char *path = bytes + at + 1;

		if (kind >= TREEDIFF_KIND_COUNT)
			return err_set(e, ERR_SYSTEM, "the list of changes is damaged");
		ret->list = mem_grow(ret->list, ret->count + 1, sizeof(*ret->list));
		ret->list[ret->count++] =
			(struct treediff_entry){ .kind = kind, .path = mem_dup(path) };
		at += strlen(path) + 2;
	}
	return 0;
}

int changes_find(const struct ak *ak, const char *sandbox, struct treediff *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(layers_done) struct layers l = { 0 };
	CLEANUP(treediff_done) struct treediff diff = { 0 };
	cleanup_fd int result_fd = memfd_create("agentkernel-changes", MFD_CLOEXEC);
	struct finding f = { .layers = &l, .result_fd = result_fd };

	named_init(&n);
	if (result_fd < 0)
		return err_sys(e, errno, "keep the changes");
	if (named_open(ak, sandbox, &n, e) < 0 || open_own(ak, &n, &l, e) < 0 ||
	    open_image(ak, &n, &l, e) < 0 || owner_run(find, &f, NULL, 0, e) < 0 ||
	    read_back(result_fd, &diff, e) < 0)
		return -1;
	*ret = diff;
	diff = (struct treediff){ 0 };
	return 0;
}
