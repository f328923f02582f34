/* transfer - copies files and layers to and from archives; see transfer.h. */
#include "image/transfer.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/wall.h"
#include "image/digest.h"
#include "image/fileunpack.h"
#include "image/httptransfer.h"
#include "image/layer.h"
#include "image/layerconfine.h"
#include "image/layername.h"
#include "image/layerpack.h"
#include "image/layersink.h"
#include "image/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ATTEMPTS_MAX 8 /* of a lookup while something is renamed */

struct request {
	const char *name, *as, *form, *owners;
	const char *root, *follow, *raw, *content; /* "yes" or "no" */
	const char *latest;                        /* a time in seconds; "" for none */
};

static bool is_yes(const char *text)
{
	return strcmp(text, "yes") == 0;
}

static int read_words(char **words, struct request *q, struct err *e)
{
	const struct {
		const char *key;
		const char **value;
	} keys[] = {
		{ "name=", &q->name },     { "as=", &q->as },           { "form=", &q->form },
		{ "owners=", &q->owners }, { "root=", &q->root },       { "follow=", &q->follow },
		{ "raw=", &q->raw },       { "content=", &q->content }, { "latest=", &q->latest },
	};

	*q = (struct request){ ".", ".", "zstd", "", "no", "no", "no", "no", "" };
	for (; *words; words++) {
		size_t i = 0;

		while (i < COUNT_OF(keys) && strncmp(*words, keys[i].key, strlen(keys[i].key)) != 0)
			i++;
		if (i == COUNT_OF(keys))
			return err_set(e, ERR_INVALID, "unknown word '%s'", *words);
		*keys[i].value = *words + strlen(keys[i].key);
	}
	return 0;
}

static int answer(const struct buf *text, struct err *e)
{
	int r;

	if (fcntl(TOOL_ANSWER_FD, F_GETFD) < 0)
		return 0;
	r = file_write_all(TOOL_ANSWER_FD, text->bytes, text->len);
	return r < 0 ? err_sys(e, -r, "give an answer") : 0;
}

/* ---- lookups ---- */

/* Looks a path up within the root if root=yes, else as this process would. Returns -errno. */
static int open_path(const struct request *q, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = wall_stands(WALL_COPIES_IN_ROOT)
				   ? RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
				   : 0,
	};
	int fd = -1;

	if (is_yes(q->root) && !wall_stands(WALL_COPIES_IN_ROOT))
		path += strspn(path, "/");
	if (!is_yes(q->root))
		fd = openat(TOOL_DIR_FD, path, flags | O_CLOEXEC);
	for (int i = 0; i < ATTEMPTS_MAX && is_yes(q->root) && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, TOOL_DIR_FD, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int explain_lookup(int sys, const char *path, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	layername_quote(path, quoted);
	if (sys == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "'%s' is not there", quoted);
	if (sys == ENOTDIR)
		return err_set(e, ERR_INVALID, "'%s' is not a directory", quoted);
	return err_sys(e, sys, "open '%s'", quoted);
}

/* ---- files ---- */

/* Accepts types that can be read without side effects. */
static int check_kind(const struct stat *st, const char *path, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode) ||
	    S_ISFIFO(st->st_mode))
		return 0;
	return err_set(e, ERR_INVALID, "'%s' is a device or a socket",
		       layername_quote(path, quoted));
}

/* Opens the target of the whole path for reading. */
static int open_followed(const struct request *q, int *ret_fd, struct err *e)
{
	cleanup_fd int path_fd = open_path(q, q->name, O_PATH);
	struct stat st;
	int fd;

	if (path_fd < 0)
		return explain_lookup(-path_fd, q->name, e);
	if (fstat(path_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", q->name);
	if (check_kind(&st, q->name, e) < 0)
		return -1;
	fd = open_path(q, q->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return explain_lookup(-fd, q->name, e);
	*ret_fd = fd;
	return 0;
}

/* The last component of the path; NULL if it does not name an entry of a directory. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;

	return strcmp(last, "") == 0 || strcmp(last, ".") == 0 || strcmp(last, "..") == 0 ? NULL
											  : last;
}

/*
 * Sets *ret_fd and *ret_name for layerpack_write_entry(). A link to be followed, and a path that
 * ends in "/", "." or "..", is opened as a whole.
 */
static int find_source(const struct request *q, int *ret_fd, const char **ret_name, struct err *e)
{
	const char *last = last_part(q->name);
	cleanup_free char *parent = last ? mem_dup_bytes(q->name, (size_t)(last - q->name)) : NULL;
	cleanup_fd int fd = -1;
	struct stat st;

	*ret_name = NULL;
	if (!last)
		return open_followed(q, ret_fd, e);
	fd = open_path(q, parent && parent[0] ? parent : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return explain_lookup(-fd, q->name, e);
	if (fstatat(fd, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return explain_lookup(errno, q->name, e);
	if (S_ISLNK(st.st_mode) && is_yes(q->follow))
		return open_followed(q, ret_fd, e);
	if (check_kind(&st, q->name, e) < 0)
		return -1;
	*ret_name = last;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int write_to_stdout(void *context, const void *bytes, size_t len)
{
	(void)context;
	return file_write_all(STDOUT_FILENO, bytes, len);
}

static int files_pack(const struct request *q, struct err *e)
{
	const struct layerpack_sink sink = { .write = write_to_stdout };
	cleanup_fd int fd = -1;
	const char *name = NULL;
	struct layername as;

	if (layername_parse_any(q->as, &as, e) < 0)
		return err_wrap(e, "the name in the archive");
	if (find_source(q, &fd, &name, e) < 0)
		return -1;
	return layerpack_write_entry(fd, name, as.path, LAYERPACK_ANY_NAME, &sink, e);
}

static int files_unpack(const struct request *q, struct err *e)
{
	unsigned flags = strcmp(q->owners, "keep") == 0 ? FILEUNPACK_OWNERS : 0;
	cleanup_fd int fd = open_path(q, q->name, O_RDONLY | O_DIRECTORY);
	cleanup_buf struct buf text = { .max = BUF_TEXT_MAX_BYTES };
	struct fileunpack_result result;

	if (fd < 0)
		return explain_lookup(-fd, q->name, e);
	(void)close(TOOL_DIR_FD); /* it is above the directory that is written to */
	if (layerconfine_self(fd, e) < 0 ||
	    fileunpack_run(STDIN_FILENO, fd, flags, NULL, &result, e) < 0)
		return -1;
	buf_addf(&text, "entries=%" PRIu64 "\nfile-bytes=%" PRIu64 "\n", result.entry_count,
		 result.file_bytes);
	return answer(&text, e);
}

/* ---- layers ---- */

static int read_form(const char *text, enum layersink_form *ret, struct err *e)
{
	static const char *const names[] = {
		[LAYERSINK_PLAIN] = "plain",
		[LAYERSINK_GZIP] = "gzip",
		[LAYERSINK_ZSTD] = "zstd",
	};

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(names[i], text) == 0) {
			*ret = (enum layersink_form)i;
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "unknown form '%s'", text);
}

static int write_layer(int fd, enum layersink_form form, unsigned flags,
		       struct layersink_result *ret, struct err *e)
{
	CLEANUP(layersink_freep) struct layersink *s = layersink_new(fd, form);
	const struct layerpack_sink sink = { layersink_write, s, NULL, 0 };
	int r;

	if (layerpack_write_tree(TOOL_DIR_FD, flags, &sink, e) < 0)
		return -1;
	r = layersink_finish(s, ret);
	return r < 0 ? err_sys(e, -r, "write the layer") : 0;
}

/* Two digests of one walk: of the archive, and of what is in it without its times. */
struct pack_output {
	struct layersink *archive;
	struct digest *content;
};

static int write_archive(void *context, const void *bytes, size_t len)
{
	const struct pack_output *o = context;

	return layersink_write(o->archive, bytes, len);
}

static void note_content(void *context, const void *bytes, size_t len)
{
	const struct pack_output *o = context;

	digest_add(o->content, bytes, len);
}

/* A step of a build, which may be the same as one before. */
static int step_pack(const struct request *q, enum layersink_form form,
		     struct layersink_result *ret, char ret_content[REFERENCE_DIGEST_MAX_BYTES],
		     struct err *e)
{
	CLEANUP(layersink_freep) struct layersink *s = layersink_new(STDOUT_FILENO, form);
	CLEANUP(digest_freep) struct digest *content = digest_new();
	struct pack_output output = { s, content };
	const struct layerpack_sink sink = { write_archive, &output,
					     is_yes(q->content) ? note_content : NULL,
					     strtoll(q->latest, NULL, 10) };
	int r;

	if (layerpack_write_tree(TOOL_DIR_FD, LAYERPACK_WHITEOUTS, &sink, e) < 0)
		return -1;
	digest_finish(content, ret_content);
	r = layersink_finish(s, ret);
	return r < 0 ? err_sys(e, -r, "write the layer") : 0;
}

static int layer_pack(const struct request *q, struct err *e)
{
	char content[REFERENCE_DIGEST_MAX_BYTES] = "";
	cleanup_buf struct buf text = { .max = BUF_TEXT_MAX_BYTES };
	enum layersink_form form = LAYERSINK_PLAIN;
	struct layersink_result r;

	if (read_form(q->form, &form, e) < 0 || step_pack(q, form, &r, content, e) < 0)
		return -1;
	buf_addf(&text, "diff-id=%s\narchive-bytes=%" PRIu64 "\ndigest=%s\nbytes=%" PRIu64 "\n",
		 r.diff_id, r.archive_bytes, r.digest, r.bytes);
	if (is_yes(q->content))
		buf_addf(&text, "content-id=%s\n", content);
	return answer(&text, e);
}

static int layer_digest(const struct request *q, struct err *e)
{
	unsigned flags = is_yes(q->raw) ? LAYERPACK_AS_IS : LAYERPACK_WHITEOUTS;
	cleanup_buf struct buf text = { .max = BUF_TEXT_MAX_BYTES };
	struct layersink_result r;

	if (write_layer(-1, LAYERSINK_PLAIN, flags, &r, e) < 0)
		return -1;
	buf_addf(&text, "diff-id=%s\narchive-bytes=%" PRIu64 "\n", r.diff_id, r.archive_bytes);
	return answer(&text, e);
}

static int layer_unpack_here(const struct request *q, struct err *e)
{
	unsigned flags = LAYER_HASH_INPUT | (strcmp(q->owners, "one") == 0 ? LAYER_ONE_OWNER : 0);
	CLEANUP(layer_result_done) struct layer_result r = { 0 };
	cleanup_buf struct buf text = { .max = BUF_TEXT_MAX_BYTES };

	if (layerconfine_self(TOOL_DIR_FD, e) < 0 ||
	    layer_unpack(STDIN_FILENO, TOOL_DIR_FD, flags, &r, e) < 0)
		return -1;
	buf_addf(&text, "diff-id=%s\narchive-bytes=%" PRIu64 "\ndigest=%s\n", r.diff_id,
		 r.archive_bytes, r.digest);
	buf_addf(&text, "entries=%" PRIu64 "\nfile-bytes=%" PRIu64 "\nroot-opaque=%s\n",
		 r.entry_count, r.file_bytes, r.is_root_opaque ? "yes" : "no");
	return answer(&text, e);
}

/* ---- addresses ---- */

#define FETCH_CONNECT_MAX_MS 30000u
#define FETCH_STALL_MAX_S 60u

struct fetching {
	struct digest *digest;
	uint64_t bytes;
};

static int on_fetched(void *context, const char *bytes, size_t len, struct err *e)
{
	struct fetching *f = context;
	int r;

	f->bytes += len;
	if (f->bytes > TRANSFER_FETCH_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "it has more than %llu bytes",
			       TRANSFER_FETCH_MAX_BYTES);
	digest_add(f->digest, bytes, len);
	r = file_write_all(STDOUT_FILENO, bytes, len);
	return r < 0 ? err_sys(e, -r, "write it") : 0;
}

static int judge_fetch(const struct httptransfer *x, const char *digest, const char *wanted,
		       struct err *e)
{
	if (x->is_ended_by_us) {
		*e = x->failure;
		return -1;
	}
	if (x->code != CURLE_OK || x->status != 200)
		return x->status && x->status != 200
			       ? err_set(e, ERR_REMOTE, "its server answers %ld", x->status)
			       : err_set(e, ERR_REMOTE, "%s", httptransfer_problem(x));
	if (strcmp(wanted, ".") != 0 && strcmp(wanted, digest) != 0)
		return err_set(e, ERR_REMOTE, "its digest is %s, not %s", digest, wanted);
	return 0;
}

/* The gate decides what is reached, so redirects may lead anywhere. */
static int fetch(const struct request *q, struct err *e)
{
	struct httptransfer_loop *loop = httptransfer_loop_new();
	CLEANUP(digest_freep) struct digest *digest = digest_new();
	struct fetching f = { .digest = digest };
	const struct httptransfer_options o = {
		.url = q->name,
		.connect_max_ms = FETCH_CONNECT_MAX_MS,
		.stall_max_s = FETCH_STALL_MAX_S,
		.flags = HTTPTRANSFER_PRIVATE_REDIRECTS,
		.on_body = on_fetched,
		.context = &f,
	};
	char found[REFERENCE_DIGEST_MAX_BYTES];
	struct httptransfer *x = NULL;
	int r = httptransfer_start(loop, &o, &x, e);

	if (r == 0)
		r = httptransfer_wait(x, e);
	digest_finish(digest, found);
	if (r == 0)
		r = judge_fetch(x, found, q->as, e);
	httptransfer_free(x);
	httptransfer_loop_free(loop);
	return r < 0 ? err_wrap(e, "'%.200s'", q->name) : 0;
}

/* ---- all of them ---- */

struct transfer {
	const char *name;
	int (*run)(const struct request *q, struct err *e);
};

const struct transfer *transfer_find(const char *operation)
{
	static const struct transfer operations[] = {
		{ "files-pack", files_pack },     { "files-unpack", files_unpack },
		{ "layer-pack", layer_pack },     { "layer-unpack", layer_unpack_here },
		{ "layer-digest", layer_digest }, { "fetch", fetch },
	};

	for (size_t i = 0; i < COUNT_OF(operations); i++)
		if (strcmp(operations[i].name, operation) == 0)
			return &operations[i];
	return NULL;
}

int transfer_run(const struct transfer *t, char **words, struct err *e)
{
	struct request q;

	if (read_words(words, &q, e) < 0)
		return -1;
	/* if the caller is gone, nobody waits for the result */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, errno, "bind the transfer to its parent");
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is reported as an error instead */
	return t->run(&q, e);
}
