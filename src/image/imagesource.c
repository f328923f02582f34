/* imagesource - access to the files of an image archive or directory; see imagesource.h. */
#include "image/imagesource.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/sweep.h"
#include "image/digest.h"
#include "image/layerworker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LINKS_MAX 8
#define HASH_OFFSET (sizeof("sha256:") - 1)

struct entry {
	char *name; /* absolute, normal */
	char *file; /* its name in dir_fd; NULL: a link */
	char *link; /* its target: absolute, normal */
};

struct imagesource {
	const struct store *store;
	int dir_fd;
	char parts[32]; /* directory in the store's making/ with the extracted files; "" for a
			 * directory */
	struct entry *entries;
	unsigned count;
};

void imagesource_free(struct imagesource *s)
{
	struct err ignored;

	if (!s)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		free(s->entries[i].name);
		free(s->entries[i].file);
		free(s->entries[i].link);
	}
	free(s->entries);
	cleanup_closep(&s->dir_fd);
	if (s->parts[0]) /* the next prune removes what this leaves */
		(void)!sweep_tree(s->store->making_fd, s->parts, &ignored);
	free(s);
}

void imagesource_freep(struct imagesource **s)
{
	imagesource_free(*s);
	*s = NULL;
}

/* Resolves a link's text, relative to the directory of its entry. */
static char *resolve_link(const char *entry_name, const char *text)
{
	const char *slash = strrchr(entry_name, '/');
	cleanup_free char *dir = mem_dup_bytes(entry_name, (size_t)(slash - entry_name));

	return path_absolute(dir[0] ? dir : "/", text);
}

/*
 * The list comes from a worker that hostile bytes may have taken over, so a file name in our
 * directory must be a number.
 */
static int add_entry(struct imagesource *s, const char *kind_and_text, const char *name,
		     struct err *e)
{
	const char *text = kind_and_text + 1;
	char *absolute;
	struct entry entry;

	if (kind_and_text[0] == 'f' && (!text[0] || text[strspn(text, "0123456789")]))
		return err_set(e, ERR_INVALID, "the archive's list of files is damaged");
	absolute = path_absolute("/", name);
	if (!absolute)
		return 0; /* ".." leaves the root: it can never be requested */
	entry = (struct entry){ .name = absolute };
	if (kind_and_text[0] == 'f')
		entry.file = mem_dup(kind_and_text + 1);
	else if (kind_and_text[0] == 'h')
		entry.link = path_absolute("/", kind_and_text + 1);
	else
		entry.link = resolve_link(absolute, kind_and_text + 1);
	s->entries = mem_grow(s->entries, s->count + 1, sizeof(*s->entries));
	s->entries[s->count++] = entry;
	return 0;
}

static int read_list(struct imagesource *s, const char *list, size_t len, struct err *e)
{
	if (len > 0 && list[len - 1] != '\0')
		return err_set(e, ERR_INVALID, "the archive's list of files is damaged");
	for (size_t at = 0; at < len;) {
		const char *text = list + at;
		const char *name = text + strlen(text) + 1;

		if (name >= list + len)
			return err_set(e, ERR_INVALID, "the archive's list of files is damaged");
		if (add_entry(s, text, name, e) < 0)
			return -1;
		at = (size_t)(name + strlen(name) + 1 - list);
	}
	return 0;
}

static int take_apart(struct imagesource *s, int archive_fd, struct err *e)
{
	CLEANUP(layerworker_done) struct layerworker w;
	char unique[STORE_UNIQUE_BYTES];
	struct layerworker_options o = {
		.operation = "split",
		.archive_fd = archive_fd,
		.userns_fd = s->store->userns_fd, /* the namespace in which we are root */
		.lock_fds = { s->store->lock_fd, -1 },
	};

	layerworker_init(&w);
	store_choose_unique(unique);
	(void)snprintf(s->parts, sizeof(s->parts), "load-%s", unique);
	if (mkdirat(s->store->making_fd, s->parts, 0700) < 0)
		return err_sys(e, errno, "create a directory for the archive");
	s->dir_fd = openat(s->store->making_fd, s->parts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return err_sys(e, errno, "open the archive's directory");
	o.dir_fd = s->dir_fd;
	if (layerworker_start(&o, &w, e) < 0 || layerworker_wait(&w, e) < 0)
		return -1;
	return read_list(s, w.output, w.output_len, e);
}

int imagesource_open_path(const char *path, int *ret_fd, struct err *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd;

	if (is_stdin && isatty(STDIN_FILENO))
		return err_set(
			e, ERR_INVALID,
			"an archive is expected on stdin, which is a terminal (name a file)");
	fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	*ret_fd = fd;
	return 0;
}

int imagesource_open(const struct store *store, const char *path, struct imagesource **ret,
		     struct err *e)
{
	CLEANUP(imagesource_freep) struct imagesource *s = mem_alloc(sizeof(*s));
	cleanup_fd int fd = -1;
	struct stat st;

	s->store = store;
	s->dir_fd = -1;
	if (imagesource_open_path(path, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	if (S_ISDIR(st.st_mode))
		s->dir_fd = take_fd(&fd);
	else if (take_apart(s, fd, e) < 0)
		return err_wrap(e, "'%s'", path);
	*ret = take_ptr(s);
	return 0;
}

static const struct entry *find_entry(const struct imagesource *s, const char *absolute)
{
	/* the last entry of a name wins, as in tar */
	for (unsigned i = s->count; i > 0; i--)
		if (strcmp(s->entries[i - 1].name, absolute) == 0)
			return &s->entries[i - 1];
	return NULL;
}

static const char *find_part(const struct imagesource *s, const char *name)
{
	cleanup_free char *absolute = path_absolute("/", name);
	const struct entry *entry = absolute ? find_entry(s, absolute) : NULL;

	for (int links = 0; entry && !entry->file && links < LINKS_MAX; links++)
		entry = entry->link ? find_entry(s, entry->link) : NULL;
	return entry ? entry->file : NULL;
}

static int open_in_directory(const struct imagesource *s, const char *name)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, s->dir_fd, name, &how, sizeof(how));
}

int imagesource_open_file(const struct imagesource *s, const char *name, int *ret_fd, struct err *e)
{
	const char *part = s->parts[0] ? find_part(s, name) : NULL;
	cleanup_fd int fd = -1;
	struct stat st;

	if (s->parts[0])
		fd = part ? openat(s->dir_fd, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	else
		fd = open_in_directory(s, name);
	if (fd < 0 && ((s->parts[0] && !part) || errno == ENOENT))
		return err_set(e, ERR_NOT_FOUND, "'%s' is missing", name);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a file", name);
	*ret_fd = take_fd(&fd);
	return 0;
}

bool imagesource_has(const struct imagesource *s, const char *name)
{
	cleanup_fd int fd = -1;
	struct err ignored;

	return imagesource_open_file(s, name, &fd, &ignored) == 0;
}

int imagesource_read(const struct imagesource *s, const char *name, size_t max_bytes,
		     char **ret_text, size_t *ret_len, struct err *e)
{
	cleanup_fd int fd = -1;
	int r;

	if (imagesource_open_file(s, name, &fd, e) < 0)
		return -1;
	r = file_read_fd(fd, max_bytes, ret_text, ret_len);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", name);
	return 0;
}

/* Hashes the copy again: a directory may change while we read it. */
static int copy_in(const struct imagesource *s, int fd, const char *digest, struct err *e)
{
	char copied[REFERENCE_DIGEST_MAX_BYTES];
	cleanup_fd int blob_fd = -1;
	int r;

	if (store_begin_blob(s->store, digest, STORE_WAIT, &blob_fd, e) < 0)
		return -1;
	if (blob_fd < 0)
		return 0;
	r = ftruncate(blob_fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0
		    ? -errno
		    : file_copy(fd, blob_fd, MANIFEST_BLOB_MAX_BYTES);
	if (r == 0)
		r = digest_of_file(blob_fd, copied);
	if (r < 0)
		return err_sys(e, -r, "copy blob %s", digest);
	if (strcmp(copied, digest) != 0)
		return err_set(e, ERR_CORRUPT, "blob %s changed while it was read", digest);
	return store_finish_blob(s->store, digest, take_fd(&blob_fd), e);
}

int imagesource_adopt(const struct imagesource *s, const char *name,
		      char digest[REFERENCE_DIGEST_MAX_BYTES], uint64_t *ret_size_bytes,
		      struct err *e)
{
	char found[REFERENCE_DIGEST_MAX_BYTES];
	cleanup_fd int fd = -1;
	struct stat st;
	int r;

	if (imagesource_open_file(s, name, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", name);
	r = digest_of_file(fd, found);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", name);
	if (digest[0] && strcmp(digest, found) != 0)
		return err_set(e, ERR_INVALID, "'%s' is not what its name says: its digest is %s",
			       name, found);
	memcpy(digest, found, sizeof(found));
	*ret_size_bytes = (uint64_t)st.st_size;
	if (store_has_blob(s->store, digest))
		return 0;
	return copy_in(s, fd, digest, e);
}
