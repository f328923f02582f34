/*
 * bundlesave - saves images of the store to files; see bundlesave.h.
 *
 * Blobs are written unchanged, so a saved image is byte for byte what was pulled. An archive has
 * each blob once, then the documents that name them: index.json and oci-layout for readers of OCI
 * layouts, manifest.json for readers of "docker save" archives.
 */
#include "image/bundlesave.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "image/manifest.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_BYTES (1u << 20)
#define DOCUMENT_MAX_BYTES (4u << 20)

/* The destination: an archive or a directory. */
struct output {
	struct archive *archive; /* NULL: a directory */
	int archive_fd;
	char *temporary; /* the archive's temporary name until it is complete; NULL: none */
	int dir_fd;
	int blobs_fd;   /* blobs/sha256 in it */
	char **written; /* digests of the blobs already written */
	unsigned count;
};

static void output_done(struct output *o)
{
	if (o->archive)
		(void)archive_write_free(o->archive);
	cleanup_closep(&o->archive_fd);
	if (o->temporary)
		(void)unlink(o->temporary); /* an incomplete archive is useless */
	free(o->temporary);
	cleanup_closep(&o->dir_fd);
	cleanup_closep(&o->blobs_fd);
	for (unsigned i = 0; i < o->count; i++)
		free(o->written[i]);
	free(o->written);
}

static int archive_failed(struct archive *a, struct err *e)
{
	return err_sys(e, archive_errno(a) ? archive_errno(a) : EIO, "write the archive");
}

static int begin_entry(struct output *o, const char *name, uint64_t size, struct err *e)
{
	struct archive_entry *entry = archive_entry_new();
	int r;

	archive_entry_set_pathname(entry, name);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)size);
	archive_entry_set_mtime(entry, 0, 0); /* the same image gives the same archive */
	r = archive_write_header(o->archive, entry);
	archive_entry_free(entry);
	return r == ARCHIVE_OK ? 0 : archive_failed(o->archive, e);
}

static int put_text(struct output *o, const char *name, const void *bytes, size_t len,
		    struct err *e)
{
	cleanup_fd int fd = -1;
	int r;

	if (o->archive) {
		if (begin_entry(o, name, len, e) < 0)
			return -1;
		return archive_write_data(o->archive, bytes, len) == (la_ssize_t)len
			       ? 0
			       : archive_failed(o->archive, e);
	}
	fd = openat(o->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	r = fd < 0 ? -errno : file_write_all(fd, bytes, len);
	if (r < 0)
		return err_sys(e, -r, "write '%s'", name);
	return 0;
}

static int put_bytes(struct output *o, int to_fd, const void *bytes, size_t len, struct err *e)
{
	int r;

	if (o->archive)
		return archive_write_data(o->archive, bytes, len) == (la_ssize_t)len
			       ? 0
			       : archive_failed(o->archive, e);
	r = file_write_all(to_fd, bytes, len);
	if (r < 0)
		return err_sys(e, -r, "write a blob");
	return 0;
}

static int copy(struct output *o, int from_fd, int to_fd, struct err *e)
{
	cleanup_free char *bytes = mem_alloc(COPY_BYTES);

	for (;;) {
		ssize_t n = read(from_fd, bytes, COPY_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "read a blob");
		if (n == 0)
			return 0;
		if (put_bytes(o, to_fd, bytes, (size_t)n, e) < 0)
			return -1;
	}
}

static bool is_written(const struct output *o, const char *digest)
{
	for (unsigned i = 0; i < o->count; i++)
		if (strcmp(o->written[i], digest) == 0)
			return true;
	return false;
}

static int put_blob(struct output *o, const struct store *s, const char *digest, struct err *e)
{
	char name[sizeof("blobs/sha256/") + 64];
	cleanup_fd int from_fd = -1, to_fd = -1;
	struct stat st;

	if (is_written(o, digest))
		return 0;
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest + sizeof("sha256:") - 1);
	if (store_open_blob(s, digest, &from_fd, e) < 0)
		return -1;
	if (fstat(from_fd, &st) < 0)
		return err_sys(e, errno, "look at blob %s", digest);
	if (o->archive) {
		if (begin_entry(o, name, (uint64_t)st.st_size, e) < 0)
			return -1;
	} else {
		to_fd = openat(o->blobs_fd, digest + sizeof("sha256:") - 1,
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (to_fd < 0)
			return err_sys(e, errno, "create '%s'", name);
	}
	if (copy(o, from_fd, to_fd, e) < 0)
		return -1;
	o->written = mem_grow(o->written, o->count + 1, sizeof(*o->written));
	o->written[o->count++] = mem_dup(digest);
	return 0;
}

/* The two documents that name all images, while they are written. */
struct documents {
	struct buf index_text, docker_text;
	struct json index, docker;
};

static void documents_done(struct documents *d)
{
	buf_done(&d->index_text);
	buf_done(&d->docker_text);
}

static void documents_open(struct documents *d)
{
	buf_init(&d->index_text, DOCUMENT_MAX_BYTES);
	buf_init(&d->docker_text, DOCUMENT_MAX_BYTES);
	json_init(&d->index, &d->index_text);
	json_open_object(&d->index, NULL);
	json_add_number(&d->index, "schemaVersion", 2);
	json_add_text(&d->index, "mediaType", MANIFEST_TYPE_OCI_INDEX);
	json_open_array(&d->index, "manifests");
	json_init(&d->docker, &d->docker_text);
	json_open_array(&d->docker, NULL);
}

static int documents_close(struct documents *d, struct err *e)
{
	json_close_array(&d->index);
	json_close_object(&d->index);
	json_close_array(&d->docker);
	if (d->index_text.is_cut || d->docker_text.is_cut)
		return err_set(e, ERR_LIMIT, "too many images at once");
	return 0;
}

static void name_in_index(struct json *j, const char *digest, size_t size, bool is_oci,
			  const struct reference *ref)
{
	char full[REFERENCE_MAX_BYTES + 1];

	reference_format(ref, full);
	json_open_object(j, NULL);
	json_add_text(j, "mediaType", is_oci ? MANIFEST_TYPE_OCI : MANIFEST_TYPE_DOCKER);
	json_add_text(j, "digest", digest);
	json_add_number(j, "size", (int64_t)size);
	json_open_object(j, "annotations");
	json_add_text(j, "io.containerd.image.name", full);
	json_add_text(j, "org.opencontainers.image.ref.name", full);
	json_close_object(j);
	json_close_object(j);
}

static void add_blob_name(struct json *j, const char *key, const char *digest)
{
	cleanup_free char *name = mem_format("blobs/sha256/%s", digest + sizeof("sha256:") - 1);

	json_add_text(j, key, name);
}

static void name_for_docker(struct json *j, const struct manifest *m, const struct reference *ref)
{
	char full[REFERENCE_MAX_BYTES + 1];

	reference_format(ref, full);
	json_open_object(j, NULL);
	add_blob_name(j, "Config", m->config.digest);
	json_open_array(j, "RepoTags");
	if (ref->tag[0])
		json_add_text(j, NULL, full);
	json_close_array(j);
	json_open_array(j, "Layers");
	for (unsigned i = 0; i < m->layer_count; i++)
		add_blob_name(j, NULL, m->layers[i].digest);
	json_close_array(j);
	json_close_object(j);
}

static int put_image(struct output *o, const struct store *s, const struct reference *ref,
		     struct documents *d, struct err *e)
{
	CLEANUP(record_done) struct record r = { 0 };
	CLEANUP(cleanup_freep) struct manifest *m = mem_alloc(sizeof(*m));
	cleanup_fd int lock_fd = -1;
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (store_get_record(s, ref, &r, &lock_fd, e) < 0 ||
	    store_read_blob(s, r.digest, MANIFEST_MAX_BYTES, &text, &len, e) < 0 ||
	    manifest_parse(text, len, m, e) < 0)
		return -1;
	if (put_blob(o, s, r.digest, e) < 0 || put_blob(o, s, m->config.digest, e) < 0)
		return -1;
	for (unsigned i = 0; i < m->layer_count; i++)
		if (put_blob(o, s, m->layers[i].digest, e) < 0)
			return -1;
	name_in_index(&d->index, r.digest, len, !strstr(m->config.type, "docker"), ref);
	name_for_docker(&d->docker, m, ref);
	return 0;
}

/* Opens a subdirectory, created if missing; refuses a link. */
static int open_subdir(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
	int fd;

	if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", name);
	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", name);
	*ret_fd = fd;
	return 0;
}

static int open_directory(const char *path, struct output *o, struct err *e)
{
	cleanup_fd int blobs_fd = -1;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", path);
	o->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (open_subdir(o->dir_fd, "blobs", &blobs_fd, e) < 0 ||
	    open_subdir(blobs_fd, "sha256", &o->blobs_fd, e) < 0)
		return err_wrap(e, "'%s'", path);
	return 0;
}

/* Beside the destination file, under an unpredictable name. */
static int open_temporary(const char *path, struct output *o, int *ret_fd, struct err *e)
{
	cleanup_free char *name = mem_format("%s.part-XXXXXX", path);
	cleanup_fd int fd = mkostemp(name, O_CLOEXEC);
	mode_t mask = umask(0);

	(void)umask(mask);
	if (fd < 0)
		return err_sys(e, errno, "create '%s'", path);
	o->temporary = take_ptr(name);
	if (fchmod(fd, 0666 & ~mask) < 0)
		return err_sys(e, errno, "create '%s'", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A plain file is replaced when complete; a device or a pipe is written directly. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode);
}

static int open_archive(const char *path, struct output *o, struct err *e)
{
	bool is_stdout = strcmp(path, "-") == 0;

	if (is_stdout && isatty(STDOUT_FILENO))
		return err_set(e, ERR_INVALID,
			       "an archive is nothing for a terminal (name a file)");
	if (is_stdout)
		o->archive_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	else if (!is_replaceable(path))
		o->archive_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	else if (open_temporary(path, o, &o->archive_fd, e) < 0)
		return -1;
	if (o->archive_fd < 0)
		return err_sys(e, errno, "create '%s'", path);
	o->archive = archive_write_new();
	(void)archive_write_set_format_pax_restricted(o->archive);
	(void)archive_write_set_bytes_in_last_block(o->archive, 1);
	if (archive_write_open_fd(o->archive, o->archive_fd) != ARCHIVE_OK)
		return archive_failed(o->archive, e);
	return 0;
}

static bool is_directory(const char *path)
{
	size_t len = strlen(path);
	struct stat st;

	return (len > 0 && path[len - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

static int put_all(struct output *o, const struct store *s, const struct reference *refs,
		   unsigned count, struct err *e)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	CLEANUP(documents_done) struct documents d;

	documents_open(&d);
	for (unsigned i = 0; i < count; i++)
		if (put_image(o, s, &refs[i], &d, e) < 0)
			return -1;
	if (documents_close(&d, e) < 0)
		return -1;
	if (put_text(o, "oci-layout", layout, sizeof(layout) - 1, e) < 0 ||
	    put_text(o, "index.json", d.index_text.bytes, d.index_text.len, e) < 0)
		return -1;
	if (o->archive &&
	    put_text(o, "manifest.json", d.docker_text.bytes, d.docker_text.len, e) < 0)
		return -1;
	if (o->archive && archive_write_close(o->archive) != ARCHIVE_OK)
		return archive_failed(o->archive, e);
	return 0;
}

/* Checks this before anything is opened for writing. */
static int check_known(const struct store *s, const struct reference *refs, unsigned count,
		       struct err *e)
{
	for (unsigned i = 0; i < count; i++) {
		CLEANUP(record_done) struct record known = { 0 };
		cleanup_fd int lock_fd = -1;

		if (store_get_record(s, &refs[i], &known, &lock_fd, e) < 0)
			return -1;
	}
	return 0;
}

int bundlesave_write(const struct store *s, const struct reference *refs, unsigned count,
		     const char *path, struct err *e)
{
	CLEANUP(output_done) struct output o = { .archive_fd = -1, .dir_fd = -1, .blobs_fd = -1 };
	int r;

	if (check_known(s, refs, count, e) < 0)
		return -1;
	r = is_directory(path) ? open_directory(path, &o, e) : open_archive(path, &o, e);
	if (r < 0 || put_all(&o, s, refs, count, e) < 0)
		return -1;
	if (o.temporary) {
		if (rename(o.temporary, path) < 0)
			return err_sys(e, errno, "create '%s'", path);
		free(take_ptr(o.temporary));
	}
	return 0;
}
