/*
 * checkpointfile - exports and imports a checkpoint as one file; see checkpointfile.h.
 *
 * The file is a header of texts (base/keyrows), padded to HEADER_BYTES, and then the layers'
 * archives one after the other, highest first; the header has each archive's size and sha256. The
 * policy is not included: a file from elsewhere must not decide what it may do on this machine.
 *
 * Hostile input: the whole file. Sizes are bounded, the image helper unpacks the archives like an
 * image's layers, and the record is written only after every digest has been checked.
 */
#include "named/checkpointfile.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/images.h"
#include "named/layerdigest.h"
#include "named/layerstore.h"
#include "named/layertransfer.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEADER_BYTES 32768u
#define ARCHIVE_MAX_BYTES (1ull << 40)
#define PIECE_BYTES 65536u
#define TEMPORARY_PREFIX ".agentkernel-checkpoint-"

struct header {
	char *sandbox, *comment, *image, *image_digest;
	uint64_t created_s, bytes, entries;
	char **parts; /* "SIZE DIGEST", one for each layer */
	bool is_whole;
};

#define ROW(key, kind, member) KEYROWS_ROW(struct header, key, kind, member)
static const struct keyrows_row rows[] = {
	ROW("sandbox", KEYROWS_TEXT, sandbox),     ROW("comment", KEYROWS_TEXT, comment),
	ROW("image", KEYROWS_TEXT, image),         ROW("image-digest", KEYROWS_TEXT, image_digest),
	ROW("created", KEYROWS_NUMBER, created_s), ROW("bytes", KEYROWS_NUMBER, bytes),
	ROW("entries", KEYROWS_NUMBER, entries),   ROW("part", KEYROWS_LIST, parts),
	ROW("whole", KEYROWS_FLAG, is_whole),
};
static const struct keyrows format = {
	.what = "checkpoint file",
	.version = 1,
	.rows = rows,
	.count = COUNT_OF(rows),
};

static void header_done(struct header *h)
{
	keyrows_done(&format, h);
}

/* ---- export ---- */

static int describe_image(const struct ak *ak, const struct checkpoint *c, struct header *h,
			  struct err *e)
{
	CLEANUP(images_done) struct images image;

	images_init(&image);
	if (!c->image_pin)
		return 0;
	if (images_open_pinned(ak, c->image_pin, c->image, &image, e) < 0)
		return -1;
	h->image_digest = mem_dup(image.record.digest);
	return 0;
}

static int write_layer(int store_fd, const char *id, int out_fd, struct header *h, struct err *e)
{
	struct layertransfer_result packed = { { 0 } };
	cleanup_fd int layer_fd = -1;
	cleanup_free char *part = NULL;
	off_t begin = lseek(out_fd, 0, SEEK_END), end;

	if (begin < 0)
		return err_sys(e, errno, "write the file (it has to be one that can be rewound)");
	if (layerstore_open_layer(store_fd, id, &layer_fd, e) < 0 ||
	    layertransfer_pack(layer_fd, out_fd, &packed, e) < 0)
		return -1;
	end = lseek(out_fd, 0, SEEK_END);
	part = mem_format("%" PRIu64 " %s", (uint64_t)(end - begin), packed.digest);
	(void)keyrows_list_add(&h->parts, part);
	return 0;
}

static int write_header(int out_fd, const struct header *h, struct err *e)
{
	cleanup_free char *padded = mem_alloc(HEADER_BYTES);
	cleanup_buf struct buf text;
	ssize_t n;

	buf_init(&text, HEADER_BYTES - 16);
	keyrows_format(&format, h, &text);
	if (text.is_cut)
		return err_set(e, ERR_LIMIT, "the checkpoint has too many layers for a file");
	/* the text's length comes first, because padding follows the text */
	(void)snprintf(padded, 16, "%015zu", text.len);
	memcpy(padded + 16, text.bytes, text.len);
	n = pwrite(out_fd, padded, HEADER_BYTES, 0);
	if (n != (ssize_t)HEADER_BYTES)
		return err_sys(e, n < 0 ? errno : ENOSPC, "write the file");
	return 0;
}

static int write_all(const struct ak *ak, const struct checkpoint *c, int out_fd, struct err *e)
{
	struct header h = { .sandbox = c->sandbox,
			    .comment = c->comment,
			    .image = c->image,
			    .created_s = c->created_s,
			    .bytes = c->bytes,
			    .entries = c->entries,
			    .is_whole = true };
	cleanup_fd int store_fd = -1;
	int r = -1;

	if (layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0 ||
	    describe_image(ak, c, &h, e) < 0)
		return -1;
	if (ftruncate(out_fd, HEADER_BYTES) < 0)
		return err_sys(e, errno, "write the file");
	for (char **layer = c->layers; *layer; layer++) {
		r = layerdigest_check(store_fd, *layer, e);
		if (r == 0)
			r = write_layer(store_fd, *layer, out_fd, &h, e);
		if (r < 0)
			break;
	}
	if (r == 0)
		r = write_header(out_fd, &h, e);
	keyrows_list_free(&h.parts);
	free(h.image_digest);
	return r;
}

/* Opens the directory of the output file; *ret_name is the file's name in it. */
static int open_target(const char *file, int *ret_dir_fd, const char **ret_name, struct err *e)
{
	const char *slash = strrchr(file, '/');
	cleanup_free char *dir = !slash          ? mem_dup(".")
				 : slash == file ? mem_dup("/")
						 : mem_dup_bytes(file, (size_t)(slash - file));
	int fd;

	*ret_name = slash ? slash + 1 : file;
	if (!**ret_name)
		return err_set(e, ERR_INVALID, "'%s' is not the name of a file", file);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open '%s'", dir);
	*ret_dir_fd = fd;
	return 0;
}

/*
 * Writes to a new file with a random name until it is complete, so that nothing that others put
 * into the directory is written to. The rename replaces a file or link of the final name; it does
 * not follow a link.
 */
int checkpointfile_export(const struct ak *ak, const char *id, const char *file, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	char temporary[sizeof(TEMPORARY_PREFIX) + NAMED_ID_BYTES], random[NAMED_ID_BYTES + 1];
	cleanup_fd int out_fd = -1, dir_fd = -1;
	const char *name = NULL;

	if (checkpoint_open(ak, id, &c, e) < 0 || open_target(file, &dir_fd, &name, e) < 0)
		return -1;
	named_random_id(random);
	(void)snprintf(temporary, sizeof(temporary), TEMPORARY_PREFIX "%s", random);
	out_fd =
		openat(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out_fd < 0)
		return err_sys(e, errno, "write '%s'", file);
	if (write_all(ak, &c, out_fd, e) == 0) {
		if (renameat(dir_fd, temporary, dir_fd, name) == 0)
			return 0;
		(void)err_sys(e, errno, "write '%s'", file);
	}
	(void)unlinkat(dir_fd, temporary, 0);
	return -1;
}

/* ---- import ---- */

/*
 * Checks the fields that are shown and sorted by later. The exporting clock may be ahead: a future
 * time becomes now, so that no file stays the latest forever.
 */
static int check_header(struct header *h, struct err *e)
{
	uint64_t now_s = (uint64_t)time(NULL);

	if (named_check_name(h->sandbox, e) < 0)
		return -1;
	if (h->comment && strlen(h->comment) > CHECKPOINT_COMMENT_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "a comment has at most %u bytes",
			       CHECKPOINT_COMMENT_MAX_BYTES);
	if (h->created_s > now_s)
		h->created_s = now_s;
	return 0;
}

static int read_header(int in_fd, struct header *ret, struct err *e)
{
	cleanup_free char *padded = mem_alloc(HEADER_BYTES + 1);
	uint64_t len = 0;

	if (pread(in_fd, padded, HEADER_BYTES, 0) != (ssize_t)HEADER_BYTES || padded[15] != '\0' ||
	    !keyrows_read_number(padded, HEADER_BYTES - 16, &len))
		return err_set(e, ERR_CORRUPT, "not a checkpoint file, or a truncated one");
	if (keyrows_parse(&format, padded + 16, (size_t)len, ret, e) < 0)
		return -1;
	if (!ret->is_whole || !ret->sandbox || !ret->image || !ret->parts ||
	    keyrows_list_count(ret->parts) > NAMED_LAYERS_MAX)
		return err_set(e, ERR_CORRUPT, "the checkpoint file is incomplete");
	return check_header(ret, e);
}

/* Starts a process that writes `size` bytes of the file into a pipe for the image helper. */
static pid_t start_feeder(int in_fd, off_t at, uint64_t size, int *ret_fd, struct err *e)
{
	char piece[PIECE_BYTES];
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		while (size > 0) {
			ssize_t n = pread(in_fd, piece, size < sizeof(piece) ? size : sizeof(piece),
					  at);

			if (n <= 0 || file_write_all(ends[1], piece, (size_t)n) < 0)
				break;
			at += n;
			size -= (uint64_t)n;
		}
		_exit(0);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return err_sys(e, errno, "start a process");
	}
	*ret_fd = ends[0];
	return pid;
}

static int unpack_part(int in_fd, off_t at, uint64_t size, const char *digest, int dir_fd,
		       struct layertransfer_result *ret, struct err *e)
{
	cleanup_fd int pipe_fd = -1;
	pid_t pid = start_feeder(in_fd, at, size, &pipe_fd, e);
	int r;

	if (pid < 0)
		return -1;
	r = layertransfer_unpack(pipe_fd, dir_fd, ret, e);
	cleanup_closep(&pipe_fd);
	(void)kill(pid, SIGKILL); /* our child, not yet reaped */
	(void)waitpid(pid, NULL, 0);
	if (r == 0 && strcmp(ret->digest, digest) != 0)
		return err_set(e, ERR_CORRUPT,
			       "the file is damaged: an archive's digest is %s, not %s",
			       ret->digest, digest);
	return r;
}

static int read_part(const char *part, uint64_t *ret_size, const char **ret_digest, struct err *e)
{
	cleanup_free char *size = mem_dup_bytes(part, strcspn(part, " "));

	*ret_digest = strchr(part, ' ');
	if (!*ret_digest || !keyrows_read_number(size, ARCHIVE_MAX_BYTES, ret_size))
		return err_set(e, ERR_CORRUPT, "the checkpoint file is incomplete");
	(*ret_digest)++;
	return 0;
}

static int import_layer(int in_fd, off_t *at, const char *part, int store_fd, struct checkpoint *c,
			struct err *e)
{
	struct layerstore_layer layer = { .dir_fd = -1 };
	struct layertransfer_result unpacked = { { 0 } };
	const char *digest = NULL;
	uint64_t size = 0;

	if (read_part(part, &size, &digest, e) < 0 || layerstore_begin(store_fd, &layer, e) < 0)
		return -1;
	if (unpack_part(in_fd, *at, size, digest, layer.dir_fd, &unpacked, e) < 0 ||
	    layerstore_commit(store_fd, &layer, e) < 0) {
		layerstore_abort(store_fd, &layer);
		return -1;
	}
	*at += (off_t)size;
	(void)keyrows_list_add(&c->layers, layer.id);
	return layerdigest_write(store_fd, layer.id, e);
}

/*
 * Pins the image with the same name and digest. It must be present already: we do not pull an image
 * only because a file from elsewhere names it.
 */
static int find_image(const struct ak *ak, const struct header *h, struct checkpoint *c,
		      struct err *e)
{
	CLEANUP(images_done) struct images image;
	const struct images_request q = { .reference = h->image,
					  .pull = IMAGES_PULL_NEVER,
					  .ak = ak };

	images_init(&image);
	if (strcmp(h->image, POLICY_HOST_IMAGE) == 0)
		return h->image_digest ? err_set(e, ERR_CORRUPT, "the file names no image") : 0;
	if (!h->image_digest)
		return err_set(e, ERR_CORRUPT,
			       "the checkpoint file does not say which '%s' it "
			       "stands on",
			       h->image);
	if (images_open(&q, &image, e) < 0)
		return err_set(
			e, ERR_NOT_FOUND,
			"the checkpoint stands on image '%s', which is not here ('agentkernel "
			"image pull %s', if you trust it)",
			h->image, h->image);
	if (strcmp(image.record.digest, h->image_digest) != 0)
		return err_set(
			e, ERR_NOT_FOUND,
			"the checkpoint stands on image '%s' with digest %s; the one here is "
			"%s",
			h->image, h->image_digest, image.record.digest);
	c->image_pin = mem_format("checkpoint-%s", c->id);
	return images_pin(ak, &image, c->image_pin, e);
}

static int import_all(const struct ak *ak, int in_fd, struct checkpoint *c, struct err *e)
{
	CLEANUP(header_done) struct header h = { 0 };
	cleanup_fd int store_fd = -1;
	char id[NAMED_ID_BYTES + 1];
	off_t at = HEADER_BYTES;

	named_random_id(id);
	(void)snprintf(c->id, sizeof(c->id), "%.*s", (int)CHECKPOINT_ID_BYTES, id);
	if (read_header(in_fd, &h, e) < 0 || find_image(ak, &h, c, e) < 0 ||
	    layerstore_open(ak, LAYERSTORE_SHARED, &store_fd, e) < 0)
		return -1;
	c->sandbox = mem_dup(h.sandbox);
	c->comment = h.comment ? mem_dup(h.comment) : NULL;
	c->image = mem_dup(h.image);
	c->created_s = h.created_s;
	c->bytes = h.bytes;
	c->entries = h.entries;
	for (char **part = h.parts; *part; part++)
		if (import_layer(in_fd, &at, *part, store_fd, c, e) < 0)
			return -1;
	return checkpoint_keep(ak, c, NULL, e);
}

int checkpointfile_import(const struct ak *ak, const char *file, struct checkpoint *ret,
			  struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint c = { 0 };
	cleanup_fd int in_fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const struct audit_identity none = { 0 };
	struct err ignored;

	if (in_fd < 0)
		return err_sys(e, errno, "open '%s'", file);
	if (import_all(ak, in_fd, &c, e) < 0) {
		if (c.image_pin)
			images_unpin(ak, c.image_pin);
		(void)!layerstore_collect(ak, NULL, &ignored);
		return err_wrap(e, "'%s'", file);
	}
	/* no identity: the name in the file does not refer to a sandbox here */
	lifecycle_audit_of(ak, &none, AUDITLINE_CHECKPOINT, c.sandbox, "imported", NULL);
	*ret = c;
	c = (struct checkpoint){ 0 };
	return 0;
}
