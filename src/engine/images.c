/* images - opens an image by name as layers that can be mounted; see images.h. */
#include "engine/images.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "engine/imagehelper.h"
#include "state/statedir.h"
#include "image/reference.h"
#include "host/idmap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOWER_MAX_BYTES 4096u
#define UNREACHABLE_DIR "unreachable"
#define IMAGES_PIN_TARGET_MAX_BYTES 64

void images_init(struct images *i)
{
	*i = (struct images){ .lock_fd = -1 };
	rootspec_init(&i->root);
}

void images_done(struct images *i)
{
	record_done(&i->record);
	cleanup_closep(&i->lock_fd);
	cleanup_closep(&i->root.dirs[ROOTSPEC_LAYERS].tree_fd);
	free(i->layers_path);
	free(i->lower);
	images_init(i);
}

/* Written in this boot, or in an earlier one and synced to disk. */
static bool is_settled(const char *store, const struct record *r)
{
	cleanup_free char *path = mem_format("%s/records", store);
	cleanup_fd int records_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return records_fd >= 0 && record_is_settled(records_fd, r->id);
}

/* Refuses a store that another user could change; see image/store.c. */
static int check_own(const char *store, const char *name, struct err *e)
{
	cleanup_free char *path = mem_format("%s/%s", store, name);
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at '%s'", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(
			e, ERR_DENIED,
			"'%s' is not a directory of this user alone: others could change it (chmod "
			"go-w, or set AGENTKERNEL_HOME)",
			path);
	return 0;
}

static int check_store(const char *store, struct err *e)
{
	if (check_own(store, ".", e) < 0 || check_own(store, "names", e) < 0 ||
	    check_own(store, "records", e) < 0)
		return -1;
	return check_own(store, "layers", e);
}

/* Finds a complete image in the store, with the owners that this caller's sandboxes need. */
static int find_at(const char *store, const char *path, struct images *i, struct err *e)
{
	char owners[IDMAP_OWNERS_MAX_BYTES];
	cleanup_free char *layers = NULL;

	if (check_store(store, e) < 0 ||
	    record_open(AT_FDCWD, path, &i->record, &i->lock_fd, e) < 0)
		return -1;
	if (idmap_format_owners(owners, e) < 0)
		return -1;
	if (strcmp(owners, i->record.owners) != 0 || !is_settled(store, &i->record))
		return err_set(e, ERR_CORRUPT, "the image has to be unpacked anew");
	layers = mem_format("layers/%s", owners);
	return check_own(store, layers, e);
}

static int find(const char *store, const struct reference *ref, struct images *i, struct err *e)
{
	char file[REFERENCE_MAX_BYTES + 1];
	cleanup_free char *path = NULL;

	reference_format_file(ref, file);
	path = mem_format("%s/names/%s", store, file);
	return find_at(store, path, i, e);
}

static int describe_root(const char *store, struct images *i, struct err *e)
{
	cleanup_buf struct buf lower;
	struct stat st;

	buf_init(&lower, LOWER_MAX_BYTES);
	i->layers_path = mem_format("%s/layers/%s", store, i->record.owners);
	if (stat(i->layers_path, &st) < 0)
		return err_sys(e, errno, "find the image's layers");
	for (unsigned n = 0; n < i->record.layer_count; n++)
		buf_addf(&lower, "%s%s", n ? ":" : "", i->record.layers[n]);
	i->lower = mem_dup(buf_text(&lower));
	rootspec_init(&i->root);
	i->root.layers = i->lower;
	i->root.dirs[ROOTSPEC_LAYERS] = (struct rootspec_dir){
		.path = i->layers_path,
		.device = st.st_dev,
		.inode = st.st_ino,
		.tree_fd = -1,
	};
	return 0;
}

static int pull(const struct images_request *q, const struct reference *ref, struct err *e)
{
	char full[REFERENCE_MAX_BYTES + 1];
	cleanup_free char *name = NULL;
	const char *words[5];
	unsigned count = 0;
	const struct imagehelper_request request = {
		.operation = "pull",
		.words = words,
		.ak = q->ak,
	};

	reference_format(ref, full);
	name = mem_format("reference=%s", full);
	words[count++] = name;
	words[count++] = q->flags & IMAGES_QUIET ? "progress=none" : "progress=auto";
	/* does not contact a registry if the store has the blobs */
	words[count++] = q->pull == IMAGES_PULL_ALWAYS  ? "from=registry"
			 : q->pull == IMAGES_PULL_NEVER ? "from=store"
							: "from=any";
	if (q->flags & IMAGES_DETECTED)
		words[count++] = "wait=short";
	words[count] = NULL;
	return imagehelper_run(&request, e);
}

/*
 * Locks the store: between the helper's end, which unlocks it, and our lock on the record, `image
 * prune --all` could remove the pulled image. If the lock fails, the helper will report why.
 */
static int wait_for_image(const char *store)
{
	cleanup_fd int fd = -1;

	if (file_make_dirs(store, 0700) < 0)
		return -1;
	fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return -1;
	return take_fd(&fd);
}

static int find_or_pull(const struct images_request *q, const char *store,
			const struct reference *ref, struct images *i, struct err *e)
{
	cleanup_fd int waiting_fd = -1;

	if (q->pull != IMAGES_PULL_ALWAYS) {
		if (find(store, ref, i, e) == 0)
			return 0;
		if (e->code == ERR_NOT_FOUND && q->pull == IMAGES_PULL_NEVER)
			return err_set(e, ERR_NOT_FOUND,
				       "not in the store, and --pull never forbids to fetch it");
		if (e->code != ERR_NOT_FOUND && e->code != ERR_CORRUPT)
			return -1;
		images_done(i);
	}
	waiting_fd = wait_for_image(store);
	if (pull(q, ref, e) < 0)
		return -1;
	return find(store, ref, i, e);
}

int images_open(const struct images_request *q, struct images *ret, struct err *e)
{
	CLEANUP(images_done) struct images i;
	cleanup_free char *store = NULL;
	struct reference ref;

	images_init(&i);
	if (reference_parse(q->reference, &ref, e) < 0 ||
	    statedir_path(q->ak, IMAGES_DIR, &store, e) < 0)
		return -1;
	if (find_or_pull(q, store, &ref, &i, e) < 0)
		return err_wrap(e, "image '%s'", q->reference);
	if (describe_root(store, &i, e) < 0)
		return -1;
	*ret = i;
	images_init(&i);
	return 0;
}

/* ---- pins ---- */

static int pins_dir(const struct ak *ak, char **ret, struct err *e)
{
	int r;

	if (statedir_path(ak, IMAGES_DIR "/" IMAGES_PINS_DIR, ret, e) < 0)
		return -1;
	r = file_make_dirs(*ret, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", *ret);
	return 0;
}

int images_pin(const struct ak *ak, const struct images *i, const char *pin, struct err *e)
{
	cleanup_free char *dir = NULL, *path = NULL, *target = NULL;

	if (pins_dir(ak, &dir, e) < 0)
		return -1;
	path = mem_format("%s/%s", dir, pin);
	target = mem_format("../records/%s", i->record.id);
	if (symlink(target, path) < 0)
		return err_sys(e, errno, "keep the image for the sandbox");
	return 0;
}

static ssize_t read_pin(const char *dir, const char *pin, char out[IMAGES_PIN_TARGET_MAX_BYTES])
{
	cleanup_free char *path = mem_format("%s/%s", dir, pin);
	ssize_t n = readlink(path, out, IMAGES_PIN_TARGET_MAX_BYTES - 1);

	out[n > 0 ? n : 0] = '\0';
	return n;
}

int images_copy_pin(const struct ak *ak, const char *from, const char *to, struct err *e)
{
	cleanup_free char *dir = NULL, *to_path = NULL;
	char target[IMAGES_PIN_TARGET_MAX_BYTES];

	if (pins_dir(ak, &dir, e) < 0)
		return -1;
	if (read_pin(dir, from, target) < 0)
		return err_sys(e, errno, "find the image that the sandbox was made from");
	to_path = mem_format("%s/%s", dir, to);
	if (symlink(target, to_path) < 0)
		return err_sys(e, errno, "keep the image for the sandbox");
	return 0;
}

bool images_have_same_pin(const struct ak *ak, const char *a, const char *b)
{
	char a_target[IMAGES_PIN_TARGET_MAX_BYTES], b_target[IMAGES_PIN_TARGET_MAX_BYTES];
	cleanup_free char *dir = NULL;
	struct err ignored;

	if (!a || !b)
		return !a && !b;
	return statedir_path(ak, IMAGES_DIR "/" IMAGES_PINS_DIR, &dir, &ignored) == 0 &&
	       read_pin(dir, a, a_target) > 0 && read_pin(dir, b, b_target) > 0 &&
	       strcmp(a_target, b_target) == 0;
}

void images_unpin(const struct ak *ak, const char *pin)
{
	cleanup_free char *dir = NULL, *path = NULL;
	struct err ignored;

	if (statedir_path(ak, IMAGES_DIR "/" IMAGES_PINS_DIR, &dir, &ignored) < 0)
		return;
	path = mem_format("%s/%s", dir, pin);
	(void)unlink(path);
}

/* Unpacks the same image again from its blobs, if its layers cannot be used. */
static int unpack_anew(const struct ak *ak, const char *reference, const char *digest,
		       struct images *ret, struct err *e)
{
	const struct images_request q = {
		.reference = reference,
		.pull = IMAGES_PULL_MISSING,
		.ak = ak,
	};

	if (images_open(&q, ret, e) < 0)
		return -1;
	if (strcmp(ret->record.digest, digest) == 0)
		return 0;
	images_done(ret);
	return err_set(e, ERR_NOT_FOUND,
		       "image '%s' is another one by now, and the sandbox's own cannot be unpacked "
		       "anew",
		       reference);
}

int images_open_pinned(const struct ak *ak, const char *pin, const char *reference,
		       struct images *ret, struct err *e)
{
	CLEANUP(images_done) struct images i;
	cleanup_free char *store = NULL, *path = NULL, *digest = NULL;

	images_init(&i);
	if (statedir_path(ak, IMAGES_DIR, &store, e) < 0)
		return -1;
	path = mem_format("%s/" IMAGES_PINS_DIR "/%s", store, pin);
	if (find_at(store, path, &i, e) < 0) {
		if (e->code != ERR_CORRUPT || !i.record.digest)
			return err_wrap(e, "image '%s'", reference);
		digest = mem_dup(i.record.digest);
		return unpack_anew(ak, reference, digest, ret, e);
	}
	if (describe_root(store, &i, e) < 0)
		return -1;
	*ret = i;
	images_init(&i);
	return 0;
}

static bool is_listed(char *const *list, const char *text)
{
	for (; list && *list; list++)
		if (strcmp(*list, text) == 0)
			return true;
	return false;
}

int images_collect_pins(const struct ak *ak, char *const *used, unsigned *ret_count, struct err *e)
{
	cleanup_free char *path = NULL;
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	*ret_count = 0;
	if (statedir_path(ak, IMAGES_DIR "/" IMAGES_PINS_DIR, &path, e) < 0)
		return -1;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open '%s'", path);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || is_listed(used, entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtime < IMAGES_PIN_MIN_AGE_S)
			continue;
		*ret_count += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
	}
	(void)closedir(dir);
	return 0;
}

struct policyimage images_config(const struct images *i)
{
	return (struct policyimage){
		.env = i->record.env,
		.user = i->record.user,
		.workdir = i->record.workdir,
		.passwd = i->record.passwd,
		.group = i->record.group,
	};
}

static size_t count_words(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

char **images_compose(const struct images *i, const char *entrypoint, char *const *command)
{
	bool has_command = command && command[0];
	/* the image's arguments belong to its entrypoint */
	char *const *rest = has_command ? command : entrypoint ? NULL : i->record.cmd;
	size_t own_count = entrypoint ? 0 : count_words(i->record.entrypoint);
	size_t rest_count = count_words(rest);
	char **argv = mem_alloc((own_count + rest_count + 2) * sizeof(*argv));
	size_t count = 0;

	if (entrypoint && entrypoint[0])
		argv[count++] = (char *)entrypoint;
	for (size_t n = 0; n < own_count; n++)
		argv[count++] = i->record.entrypoint[n];
	for (size_t n = 0; n < rest_count; n++)
		argv[count++] = rest[n];
	if (count > 0)
		return argv;
	free(argv);
	return NULL;
}

/* ---- listing ---- */

void images_list_done(struct images_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->entries[i].name);
		free(l->entries[i].full_name);
		record_done(&l->entries[i].record);
	}
	free(l->entries);
	*l = (struct images_list){ 0 };
}

/* Parses the reference in a file's name; false if it is none. */
static bool read_name(const char *file, struct reference *ret)
{
	cleanup_free char *text = mem_dup(file);
	struct err ignored;

	for (char *p = text; *p; p++)
		if (*p == '+')
			*p = '/';
	return reference_parse(text, ret, &ignored) == 0;
}

/* Skips unreadable entries: they are being replaced or removed. */
static void add_entry(struct images_list *l, int names_fd, const char *file)
{
	char name[REFERENCE_MAX_BYTES + 1], full[REFERENCE_MAX_BYTES + 1];
	struct images_entry entry = { 0 };
	cleanup_fd int lock_fd = -1;
	struct reference ref;
	struct err ignored;

	if (file[0] == '.' || !read_name(file, &ref) ||
	    record_open(names_fd, file, &entry.record, &lock_fd, &ignored) < 0)
		return;
	reference_format_short(&ref, name);
	reference_format(&ref, full);
	entry.name = mem_dup(name);
	entry.full_name = mem_dup(full);
	l->entries = mem_grow(l->entries, l->count + 1, sizeof(*l->entries));
	l->entries[l->count++] = entry;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct images_entry *)a)->name,
		      ((const struct images_entry *)b)->name);
}

int images_list(const struct ak *ak, struct images_list *ret, struct err *e)
{
	cleanup_free char *path = NULL;
	struct dirent *entry;
	DIR *dir;
	int sys;

	*ret = (struct images_list){ 0 };
	if (statedir_path(ak, IMAGES_DIR "/names", &path, e) < 0)
		return -1;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : err_sys(e, errno, "open '%s'", path);
	while ((errno = 0, entry = readdir(dir)))
		add_entry(ret, dirfd(dir), entry->d_name);
	sys = errno;
	(void)closedir(dir);
	if (sys != 0)
		return err_sys(e, sys, "list '%s'", path);
	if (ret->count > 1)
		qsort(ret->entries, ret->count, sizeof(*ret->entries), by_name);
	return 0;
}

/* ---- images that could not be pulled recently ---- */

static char *note_path(const char *reference, const struct ak *ak)
{
	char file[REFERENCE_MAX_BYTES + 1];
	cleanup_free char *store = NULL;
	struct reference ref;
	struct err ignored;

	if (reference_parse(reference, &ref, &ignored) < 0 ||
	    statedir_path(ak, IMAGES_DIR, &store, &ignored) < 0)
		return NULL;
	reference_format_file(&ref, file);
	return mem_format("%s/" UNREACHABLE_DIR "/%s", store, file);
}

bool images_was_unreachable(const char *reference, const struct ak *ak)
{
	cleanup_free char *path = note_path(reference, ak);
	struct stat st;

	return path && stat(path, &st) == 0 &&
	       time(NULL) - st.st_mtime < IMAGES_UNREACHABLE_MAX_AGE_S;
}

/* Failures are ignored: they only cost another attempt. */
void images_note_unreachable(const char *reference, const struct ak *ak)
{
	cleanup_free char *path = note_path(reference, ak);
	cleanup_fd int fd = -1;
	char *slash;

	if (!path)
		return;
	slash = strrchr(path, '/');
	*slash = '\0';
	(void)file_make_dirs(path, 0700);
	*slash = '/';
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)futimens(fd, NULL);
}
