/*
 * builder - does what a plan says; see builder.h.
 *
 * Theory of operation. One process, one loop. Each wanted stage is at one of its instructions;
 * those that only describe are applied at once, the others become a job: a child process whose
 * result comes through a pipe. A stage waits for the stages that it needs and for its job; all that
 * can go on does, up to a number of jobs. RUN and COPY write a directory in the store's making/;
 * when it is complete it gets its final name, and a further job packs it into a blob while the
 * stage goes on. Only a COPY from the context is packed first: what it depends on is the digest of
 * what it copied, so that a context that was fetched anew gives the same step.
 *
 * A step that is done is written down when its blob is there. So whatever is interrupted, what is
 * written down is complete, and the next build goes on from it.
 *
 * The store's lock is held shared from beginning to end: nobody removes what no image names yet.
 */
#include "build/builder.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/shown.h"
#include "build/buildstate.h"
#include "build/copylist.h"
#include "build/copystep.h"
#include "build/ignore.h"
#include "build/runstep.h"
#include "build/stepcache.h"
#include "engine/helper.h"
#include "engine/imagehelper.h"
#include "host/idmap.h"
#include "image/room.h"
#include "named/layertransfer.h"
#include "state/ak.h"
#include "state/statedir.h"
#include "tree/owner.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 16u
#define LOOK_AGAIN_MS 200
#define LINE_MAX_BYTES 4096u
#define COMPOSE_ANSWER_MAX_BYTES 256u
#define IMAGES_MAX 64u /* that one build is made from */
#define TRIGGERS_MAX 256u
#define WORK_PREFIX "build-"

/* ---- what there is ---- */

struct result { /* of a job, through its pipe */
	struct err error;
	struct runstep_result run;
	struct layertransfer_result packed;
};

enum job_kind { JOB_NONE, JOB_RUN, JOB_COPY, JOB_PACK };

struct job {
	enum job_kind kind;
	unsigned stage, number; /* of the step */
	const struct dockerfile_instruction *instruction;
	const char *file; /* that the instruction is in */
	pid_t pid;
	int result_fd, output_fd, lifeline_fd, lock_fd;
	uint64_t started_ms;
	char work[64];                   /* beneath the layers: "making/..." */
	char layer[RECORD_ID_BYTES + 1]; /* JOB_PACK: its name; "" while it is in .work */
	unsigned layer_index;            /* JOB_PACK: of the stage's layers */
	char *key;                       /* that the step will be found by */
	char *content_key; /* of a COPY from the context, to which the digest is added; NULL: none
			    */
	char *blob;        /* name of the blob in partial/ */
	char node[RECORD_ID_BYTES + 1];
	uint64_t made_s;
	bool returns;          /* the last byte of its output was a carriage return */
	struct buf line, tail; /* output: the line that is not complete, and the last of it */
};

enum stage_state { STAGE_WAITS, STAGE_RUNS, STAGE_DONE };

struct stage {
	const struct plan_stage *plan;
	enum stage_state state;
	struct buildstate built;
	struct dockerfile triggers[TRIGGERS_MAX]; /* ONBUILD of the image below */
	unsigned trigger_count;
	unsigned at;    /* instruction, triggers first */
	unsigned packs; /* layers that are being packed */
	bool has_job;
	bool waits_for_lock;
	unsigned steps, step; /* for people */
};

struct builder {
	const struct builder_options *o;
	struct stage *stages;
	struct job jobs[JOBS_MAX];
	struct stepcache cache;
	char *store, *layers_path, *work; /* "making/build-..." */
	int lock_fd, work_lock_fd, layers_fd, steps_fd, blobs_fd, partial_fd;
	struct images images[IMAGES_MAX];
	char *image_names[IMAGES_MAX];
	unsigned image_count;
	struct helper program;
	unsigned work_count, step_count, cached_count, jobs_max;
	bool has_failed;
	struct err failure;
};

static volatile sig_atomic_t is_interrupted;

static void on_signal(int number)
{
	is_interrupted = number;
}

/* ---- telling ---- */

static void tell(const struct builder *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void tell(const struct builder *b, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES + 128];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	shown_replace(line);
	if (b->o->say)
		b->o->say(b->o->context, line);
}

static void format_step(const struct builder *b, const struct job *j, char out[256])
{
	const struct stage *s = &b->stages[j->stage];
	char keyword[24];

	(void)snprintf(keyword, sizeof(keyword), "%s", j->instruction->keyword);
	for (char *c = keyword; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	if (b->o->plan->count > 1)
		(void)snprintf(out, 256, "[%.60s %u/%u] %s %.120s", s->plan->name, s->step,
			       s->steps, keyword, j->instruction->rest);
	else
		(void)snprintf(out, 256, "[%u/%u] %s %.120s", s->step, s->steps, keyword,
			       j->instruction->rest);
}

/* A line of a step's output, and the last of it for when it fails. */
static void end_line(struct builder *b, struct job *j)
{
	if (b->o->shows_output)
		tell(b, "#%u %s", j->number, buf_text(&j->line));
	if (j->tail.len + j->line.len + 1 > BUILDER_TAIL_MAX_BYTES) {
		size_t half = j->tail.len / 2;
		const char *newline =
			j->tail.len ? memchr(j->tail.bytes + half, '\n', j->tail.len - half) : NULL;
		size_t cut = newline ? (size_t)(newline + 1 - j->tail.bytes) : j->tail.len;

		if (j->tail.len)
			memmove(j->tail.bytes, j->tail.bytes + cut, j->tail.len - cut);
		j->tail.len -= cut;
	}
	buf_add(&j->tail, buf_text(&j->line), j->line.len);
	buf_add_text(&j->tail, "\n");
	j->line.len = 0;
	if (j->line.bytes)
		j->line.bytes[0] = '\0';
}

static void take_output(struct builder *b, struct job *j, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\n' || j->line.len >= LINE_MAX_BYTES)
			end_line(b, j);
		else if (j->returns) /* what follows is written over the line */
			j->line.len = 0;
		j->returns = bytes[i] == '\r';
		if (bytes[i] != '\n' && bytes[i] != '\r')
			buf_add(&j->line, bytes + i, 1);
	}
}

static void tell_tail(const struct builder *b, struct job *j)
{
	cleanup_free char *text = mem_dup_bytes(buf_text(&j->tail), j->tail.len);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line && !b->o->shows_output;
	     line = strtok_r(NULL, "\n", &save))
		tell(b, "#%u %s", j->number, line);
}

/* ---- the store ---- */

static int open_at(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
	if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s' in the image store", name);
	*ret_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open '%s' in the image store", name) : 0;
}

static int take_lock(int dir_fd, const char *name, int how, int *ret_fd, struct err *e)
{
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (*ret_fd < 0 || flock(*ret_fd, how) < 0)
		if (*ret_fd < 0 || errno != EINTR)
			return err_sys(e, errno, "lock the image store");
	return 0;
}

/* What a killed build left, whose lock is free by now. */
static void sweep_stale(struct builder *b)
{
	int fd = openat(b->layers_fd, "making", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct err ignored;

	while (dir && (entry = readdir(dir))) {
		cleanup_free char *lock = mem_format("making/%s.lock", entry->d_name);
		cleanup_fd int lock_fd = -1;

		if (strncmp(entry->d_name, WORK_PREFIX, strlen(WORK_PREFIX)) != 0 ||
		    strchr(entry->d_name, '.'))
			continue;
		lock_fd = openat(b->layers_fd, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (owner_sweep(dirfd(dir), entry->d_name, &ignored) == 0)
			(void)unlinkat(b->layers_fd, lock, 0);
	}
	if (dir)
		(void)closedir(dir);
}

static int open_store(struct builder *b, struct err *e)
{
	cleanup_fd int store_fd = -1, blobs_fd = -1, all_fd = -1, making_fd = -1, dir_fd = -1;
	char owners[IDMAP_OWNERS_MAX_BYTES], unique[RECORD_ID_BYTES + 1];
	cleanup_free char *lock = NULL;

	int r;

	if (statedir_path(b->o->ak, IMAGES_DIR, &b->store, e) < 0 ||
	    idmap_format_owners(owners, e) < 0)
		return -1;
	r = file_make_dirs(b->store, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", b->store);
	store_fd = open(b->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_fd < 0)
		return err_sys(e, errno, "open '%s'", b->store);
	if (take_lock(store_fd, "lock", LOCK_SH, &b->lock_fd, e) < 0 ||
	    open_at(store_fd, "blobs", &blobs_fd, e) < 0 ||
	    open_at(blobs_fd, "sha256", &b->blobs_fd, e) < 0 ||
	    open_at(blobs_fd, "partial", &b->partial_fd, e) < 0 ||
	    open_at(store_fd, STEPRECORD_DIR, &b->steps_fd, e) < 0 ||
	    open_at(store_fd, "layers", &all_fd, e) < 0 ||
	    open_at(all_fd, owners, &b->layers_fd, e) < 0 ||
	    open_at(b->layers_fd, "making", &making_fd, e) < 0)
		return -1;
	sweep_stale(b);
	stepcache_choose_id(unique);
	b->work = mem_format("making/" WORK_PREFIX "%.12s", unique);
	b->layers_path = mem_format("%s/layers/%s", b->store, owners);
	lock = mem_format("%s.lock", b->work);
	if (take_lock(b->layers_fd, lock, LOCK_EX, &b->work_lock_fd, e) < 0 ||
	    open_at(b->layers_fd, b->work, &dir_fd, e) < 0)
		return -1;
	if (mkdirat(dir_fd, "empty", 0755) < 0)
		return err_sys(e, errno, "prepare the build");
	return stepcache_init(&b->cache, b->steps_fd, b->layers_fd, b->blobs_fd, owners, e);
}

static void close_store(struct builder *b)
{
	cleanup_free char *lock = b->work ? mem_format("%s.lock", b->work) : NULL;
	cleanup_fd int making_fd = b->layers_fd < 0 ? -1
						    : openat(b->layers_fd, "making",
							     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err ignored;

	/* what cannot be removed now, the next build or prune removes */
	if (making_fd >= 0 && b->work &&
	    owner_sweep(making_fd, path_base_name(b->work), &ignored) == 0)
		(void)unlinkat(b->layers_fd, lock, 0);
	cleanup_closep(&b->work_lock_fd);
	cleanup_closep(&b->layers_fd);
	cleanup_closep(&b->steps_fd);
	cleanup_closep(&b->blobs_fd);
	cleanup_closep(&b->partial_fd);
	cleanup_closep(&b->lock_fd);
	free(b->store);
	free(b->layers_path);
	free(b->work);
}

/* A directory for a step, beneath the layers: "making/build-x/3". */
static int make_work(struct builder *b, char out[64], struct err *e)
{
	(void)snprintf(out, 64, "%s/%u", b->work, ++b->work_count);
	if (mkdirat(b->layers_fd, out, 0700) < 0)
		return err_sys(e, errno, "prepare a step");
	return 0;
}

struct renaming {
	int dir_fd;
	const char *from, *to;
};

static int do_rename(void *context, struct err *e)
{
	const struct renaming *r = context;

	if (renameat(r->dir_fd, r->from, r->dir_fd, r->to) < 0)
		return err_sys(e, errno, "put a layer into the store");
	return 0;
}

/* The directory may belong to another id of the image. */
static int move_layer(const struct builder *b, const char *from, const char *to, struct err *e)
{
	struct renaming r = { b->layers_fd, from, to };

	if (do_rename(&r, e) == 0)
		return 0;
	if (e->sys != EACCES && e->sys != EPERM)
		return -1;
	return owner_run(do_rename, &r, NULL, 0, e);
}

/* ---- images ---- */

static int open_image(struct builder *b, const char *name, const struct images **ret, struct err *e)
{
	const struct images_request q = { .reference = name,
					  .pull = b->o->pull,
					  .flags = b->o->is_quiet ? IMAGES_QUIET : 0,
					  .ak = b->o->ak };

	for (unsigned i = 0; i < b->image_count; i++) {
		if (strcmp(b->image_names[i], name) == 0) {
			*ret = &b->images[i];
			return 0;
		}
	}
	if (b->image_count == IMAGES_MAX)
		return err_set(e, ERR_LIMIT, "a build from more than %u images", IMAGES_MAX);
	if (strcmp(name, POLICY_HOST_IMAGE) == 0)
		return err_set(e, ERR_INVALID,
			       "'host', this machine's own programs, is no image to build from");
	images_init(&b->images[b->image_count]);
	if (images_open(&q, &b->images[b->image_count], e) < 0)
		return -1;
	b->image_names[b->image_count] = mem_dup(name);
	*ret = &b->images[b->image_count++];
	return 0;
}

/* ---- stages ---- */

static const struct dockerfile_instruction *current(const struct stage *s, const char **ret_file,
						    const struct plan *p)
{
	if (s->at < s->trigger_count) {
		*ret_file = s->triggers[s->at].name;
		return &s->triggers[s->at].list[0];
	}
	*ret_file = p->file->name;
	return s->at - s->trigger_count < s->plan->count ? &s->plan->list[s->at - s->trigger_count]
							 : NULL;
}

static int take_triggers(struct builder *b, struct stage *s, struct err *e)
{
	for (char **line = s->built.onbuild; line && *line; line++) {
		cleanup_free char *name = mem_format("ONBUILD of %.100s", s->plan->base);
		struct dockerfile *d = &s->triggers[s->trigger_count];

		if (s->trigger_count == TRIGGERS_MAX)
			return err_set(e, ERR_LIMIT, "'%s' has more than %u ONBUILD", s->plan->base,
				       TRIGGERS_MAX);
		if (dockerfile_parse_line(name, *line, d, e) < 0)
			return -1;
		s->trigger_count++;
		if (d->count != 1)
			return err_set(e, ERR_INVALID, "%s: it is not one instruction", name);
		if (strcmp(d->list[0].keyword, "from") == 0)
			return err_set(e, ERR_INVALID, "%s: FROM may not be in an ONBUILD", name);
		if (plan_check(d, &d->list[0], e) < 0)
			return -1;
	}
	(void)b;
	keyrows_list_free(&s->built.onbuild);
	return 0;
}

static int begin_stage(struct builder *b, struct stage *s, struct err *e)
{
	const struct plan *p = b->o->plan;
	const struct images *image = NULL;

	if (s->plan->base_stage != PLAN_NO_STAGE) {
		buildstate_copy(&b->stages[s->plan->base_stage].built, &s->built);
	} else if (strcmp(s->plan->base, "scratch") == 0) {
		(void)snprintf(s->built.node, sizeof(s->built.node), "scratch");
	} else {
		if (open_image(b, s->plan->base, &image, e) < 0)
			return dockerfile_err_wrap(p->file->name, s->plan->from, e);
		buildstate_take_record(&s->built, &image->record, image->lower);
	}
	if (take_triggers(b, s, e) < 0)
		return -1;
	for (unsigned i = 0; i < s->trigger_count + s->plan->count; i++) {
		const struct dockerfile_instruction *n =
			i < s->trigger_count ? &s->triggers[i].list[0]
					     : &s->plan->list[i - s->trigger_count];

		s->steps += !buildstate_only_describes(n);
	}
	s->state = STAGE_RUNS;
	return 0;
}

/* ---- processes ---- */

typedef int child_fn(void *context, struct result *ret, struct err *e);

static void close_child_ends(int fds[2])
{
	cleanup_closep(&fds[0]);
	cleanup_closep(&fds[1]);
}

/* The child's streams: nothing to read; what it writes is the step's output. */
static void set_streams(int output_fd)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(output_fd >= 0 ? output_fd : null_fd, STDOUT_FILENO);
	(void)dup2(output_fd >= 0 ? output_fd : null_fd, STDERR_FILENO);
}

/* The child has to outlive a signal that only it can act upon, and ends with us. */
static _Noreturn void child_main(child_fn *fn, void *context, int result_fd, int output_fd)
{
	struct result result = { 0 };
	struct err e = { 0 };

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	set_streams(output_fd);
	if (fn(context, &result, &e) < 0)
		result.error = e;
	(void)!file_write_all(result_fd, &result, sizeof(result));
	_exit(0);
}

/* A lifeline ends when its last writer closes it, a lock when its last holder does: that is us. */
static void close_others(struct builder *b)
{
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		cleanup_closep(&b->jobs[i].lifeline_fd);
		cleanup_closep(&b->jobs[i].lock_fd);
	}
}

static int start_child(struct builder *b, struct job *j, child_fn *fn, void *context,
		       bool has_output, struct err *e)
{
	int result[2] = { -1, -1 }, output[2] = { -1, -1 };
	pid_t pid;

	if (pipe2(result, O_CLOEXEC) < 0 || (has_output && pipe2(output, O_CLOEXEC) < 0)) {
		(void)err_sys(e, errno, "create a pipe");
		close_child_ends(result);
		return -1;
	}
	pid = fork();
	if (pid == 0) {
		close_others(b);
		child_main(fn, context, result[1], output[1]);
	}
	if (pid < 0) {
		(void)err_sys(e, errno, "start a process");
		close_child_ends(result);
		close_child_ends(output);
		return -1;
	}
	(void)close(result[1]);
	cleanup_closep(&output[1]);
	j->pid = pid;
	j->result_fd = result[0];
	j->output_fd = output[0];
	return 0;
}

static struct job *free_job(struct builder *b)
{
	for (unsigned i = 0; i < JOBS_MAX; i++)
		if (b->jobs[i].kind == JOB_NONE)
			return &b->jobs[i];
	return NULL;
}

static void job_init(struct job *j)
{
	*j = (struct job){ .result_fd = -1, .output_fd = -1, .lifeline_fd = -1, .lock_fd = -1 };
	buf_init(&j->line, LINE_MAX_BYTES + 1);
	buf_init(&j->tail, BUILDER_TAIL_MAX_BYTES + LINE_MAX_BYTES);
}

static void job_done(struct job *j)
{
	cleanup_closep(&j->result_fd);
	cleanup_closep(&j->output_fd);
	cleanup_closep(&j->lifeline_fd);
	cleanup_closep(&j->lock_fd);
	free(j->key);
	free(j->content_key);
	free(j->blob);
	buf_done(&j->line);
	buf_done(&j->tail);
	job_init(j);
}

static unsigned count_jobs(const struct builder *b, bool packs)
{
	unsigned count = 0;

	for (unsigned i = 0; i < JOBS_MAX; i++)
		count += b->jobs[i].kind != JOB_NONE && (b->jobs[i].kind == JOB_PACK) == packs;
	return count;
}

/* ---- packing ---- */

struct packing {
	const struct builder *b;
	int dir_fd, blob_fd;
};

static int do_pack(void *context, struct result *ret, struct err *e)
{
	const struct packing *p = context;

	return layertransfer_pack_step(p->dir_fd, p->blob_fd, (int64_t)p->b->o->epoch_s,
				       &ret->packed, e);
}

/* Packs the layer .layer, or what is in .work, into a blob. Takes over the other job's rest. */
static int start_pack(struct builder *b, struct job *j, struct err *e)
{
	cleanup_free char *dir = j->layer[0] ? mem_dup(j->layer) : mem_format("%s/upper", j->work);
	char unique[RECORD_ID_BYTES + 1];
	cleanup_fd int dir_fd = -1, blob_fd = -1;
	struct packing p = { .b = b };

	stepcache_choose_id(unique);
	free(j->blob);
	j->blob = mem_format("build-%s", unique);
	dir_fd = openat(b->layers_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	blob_fd = openat(b->partial_fd, j->blob, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (dir_fd < 0 || blob_fd < 0)
		return err_sys(e, errno, "pack a layer");
	p.dir_fd = dir_fd;
	p.blob_fd = blob_fd;
	j->kind = JOB_PACK;
	return start_child(b, j, do_pack, &p, false, e);
}

static int keep_blob(const struct builder *b, const struct job *j,
		     const struct layertransfer_result *r, struct err *e)
{
	const char *hex = r->digest + sizeof("sha256:") - 1;

	if (!reference_is_digest(r->digest) || !reference_is_digest(r->content))
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	if (faccessat(b->blobs_fd, hex, F_OK, 0) == 0) {
		(void)unlinkat(b->partial_fd, j->blob, 0);
		return 0;
	}
	if (fchmodat(b->partial_fd, j->blob, 0400, 0) < 0 ||
	    renameat(b->partial_fd, j->blob, b->blobs_fd, hex) < 0)
		return err_sys(e, errno, "put a blob into the store");
	return 0;
}

/* ---- results ---- */

static uint64_t now_s(const struct builder *b)
{
	uint64_t now = (uint64_t)time(NULL);

	return b->o->epoch_s && b->o->epoch_s < now ? b->o->epoch_s : now;
}

/* The stage has the step of this record, and goes on. */
static int apply_record(struct builder *b, struct stage *s, const struct steprecord *r,
			const struct dockerfile_instruction *i, struct err *e)
{
	struct buildstate *built = &s->built;

	(void)b;
	if (r->layer[0]) {
		struct buildstate_layer *l = &built->layers[built->layer_count];

		if (built->layer_count == RECORD_LAYERS_MAX)
			return err_set(e, ERR_LIMIT, "an image has at most %u layers",
				       RECORD_LAYERS_MAX);
		*l = (struct buildstate_layer){ .size_bytes = r->size_bytes };
		memcpy(l->name, r->layer, sizeof(l->name));
		(void)snprintf(l->diff_id, sizeof(l->diff_id), "%s", r->diff_id);
		(void)snprintf(l->digest, sizeof(l->digest), "%s", r->digest);
		built->layer_count++;
	}
	(void)snprintf(built->node, sizeof(built->node), "%s", r->node);
	if (r->made_s > built->made_s)
		built->made_s = r->made_s;
	buildstate_note(built, i, r->layer[0]);
	s->at++;
	return 0;
}

/* Writes the step down; a failure only costs doing it again. */
static void remember(struct builder *b, char *key, const struct steprecord *like)
{
	struct steprecord r = *like;
	struct err why;

	r.key = key;
	if (stepcache_put(&b->cache, &r, &why) < 0)
		tell(b, "the step is not kept for the next build: %s", why.msg);
}

static void fail(struct builder *b, const struct err *why)
{
	if (!b->has_failed)
		b->failure = *why;
	b->has_failed = true;
}

/* The step has changed nothing: no layer. */
static void finish_empty(struct builder *b, struct job *j)
{
	struct stage *s = &b->stages[j->stage];
	struct steprecord r = { .made_s = j->made_s };
	struct err e;

	memcpy(r.node, j->node, sizeof(r.node));
	remember(b, j->key, &r);
	if (apply_record(b, s, &r, j->instruction, &e) < 0)
		fail(b, &e);
	s->has_job = false;
	job_done(j);
}

static void tell_done(const struct builder *b, const struct job *j)
{
	uint64_t ms = clock_now_ms() - j->started_ms;

	tell(b, "#%u DONE %" PRIu64 ".%" PRIu64 "s", j->number, ms / 1000, ms % 1000 / 100);
}

/* Is the upper directory empty, and its root as below? */
static bool is_unchanged(const struct builder *b, const struct job *j)
{
	cleanup_free char *upper = mem_format("%s/upper", j->work);
	cleanup_free char *empty = mem_format("%s/empty", b->work);
	cleanup_free char *lower = buildstate_lower(&b->stages[j->stage].built, empty);
	struct stat st, below;
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;
	int fd;

	lower[strcspn(lower, ":")] = '\0';
	fd = openat(b->layers_fd, upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || fstatat(b->layers_fd, lower, &below, 0) < 0 ||
	    st.st_mode != below.st_mode || st.st_uid != below.st_uid || st.st_gid != below.st_gid ||
	    !(dir = fdopendir(fd))) {
		cleanup_closep(&fd);
		return false;
	}
	while ((entry = readdir(dir)))
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	(void)closedir(dir);
	return count == 0;
}

/* The directory becomes a layer; the stage goes on while it is packed. */
static int finish_run(struct builder *b, struct job *j, struct err *e)
{
	struct stage *s = &b->stages[j->stage];
	cleanup_free char *upper = mem_format("%s/upper", j->work);
	struct buildstate_layer *l = &s->built.layers[s->built.layer_count];

	if (s->built.layer_count == RECORD_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "an image has at most %u layers", RECORD_LAYERS_MAX);
	stepcache_choose_id(j->layer);
	if (move_layer(b, upper, j->layer, e) < 0)
		return -1;
	*l = (struct buildstate_layer){ .diff_id = "" };
	memcpy(l->name, j->layer, sizeof(l->name));
	j->layer_index = s->built.layer_count++;
	(void)snprintf(s->built.node, sizeof(s->built.node), "%s", j->node);
	if (j->made_s > s->built.made_s)
		s->built.made_s = j->made_s;
	buildstate_note(&s->built, j->instruction, true);
	s->at++;
	s->packs++;
	s->has_job = false;
	return start_pack(b, j, e);
}

static int refuse_run(struct builder *b, struct job *j, const struct runstep_result *r,
		      struct err *e)
{
	char what[200];

	(void)snprintf(what, sizeof(what), "'%.150s'", j->instruction->rest);
	tell_tail(b, j);
	(void)err_set(e, ERR_INVALID, "%s failed with exit status %d%s%.200s", what, r->exit_code,
		      r->words[0] ? ": " : "", r->words);
	shown_replace(e->msg);
	return dockerfile_err_wrap(j->file, j->instruction, e);
}

static int end_step(struct builder *b, struct job *j, const struct result *r, struct err *e)
{
	j->made_s = now_s(b);
	if (j->line.len)
		end_line(b, j);
	if (r->error.code != ERR_NONE) {
		*e = r->error;
		return dockerfile_err_wrap(j->file, j->instruction, e);
	}
	if (j->kind == JOB_RUN && r->run.exit_code != 0)
		return refuse_run(b, j, &r->run, e);
	tell_done(b, j);
	stepcache_choose_id(j->node);
	if (is_unchanged(b, j)) {
		finish_empty(b, j);
		return 0;
	}
	if (j->content_key)
		return start_pack(b, j, e);
	return finish_run(b, j, e);
}

/* What was copied is known by its digest now: perhaps the same was copied before. */
static int settle_copy(struct builder *b, struct job *j, const struct layertransfer_result *packed,
		       struct steprecord *r, struct err *e)
{
	cleanup_free char *key = mem_format("%scontent=%s\n", j->content_key, packed->same);
	cleanup_free char *upper = mem_format("%s/upper", j->work);
	CLEANUP(steprecord_done) struct steprecord known = { 0 };

	if (!b->o->has_no_cache && stepcache_find(&b->cache, key, &known)) {
		*r = known;
		r->key = NULL;
		(void)snprintf(j->layer, sizeof(j->layer), "%s", known.layer);
	} else {
		stepcache_choose_id(j->layer);
		if (move_layer(b, upper, j->layer, e) < 0)
			return -1;
		memcpy(r->layer, j->layer, sizeof(r->layer));
		remember(b, key, r);
	}
	return 0;
}

static int end_pack(struct builder *b, struct job *j, const struct result *result, struct err *e)
{
	struct stage *s = &b->stages[j->stage];
	const struct layertransfer_result *packed = &result->packed;
	struct steprecord r = { .made_s = j->made_s, .size_bytes = packed->bytes };
	bool is_copy = j->content_key;

	if (result->error.code != ERR_NONE) {
		(void)unlinkat(b->partial_fd, j->blob, 0);
		*e = result->error;
		return dockerfile_err_wrap(j->file, j->instruction, e);
	}
	if (keep_blob(b, j, packed, e) < 0)
		return -1;
	memcpy(r.node, j->node, sizeof(r.node));
	memcpy(r.layer, j->layer, sizeof(r.layer));
	(void)snprintf(r.diff_id, sizeof(r.diff_id), "%.71s", packed->content);
	(void)snprintf(r.digest, sizeof(r.digest), "%.71s", packed->digest);
	if (is_copy && settle_copy(b, j, packed, &r, e) < 0)
		return -1;
	remember(b, j->key, &r);
	if (is_copy) {
		s->has_job = false;
		if (apply_record(b, s, &r, j->instruction, e) < 0)
			return -1;
	} else {
		struct buildstate_layer *l = &s->built.layers[j->layer_index];

		(void)snprintf(l->diff_id, sizeof(l->diff_id), "%s", r.diff_id);
		(void)snprintf(l->digest, sizeof(l->digest), "%s", r.digest);
		l->size_bytes = r.size_bytes;
		s->packs--;
	}
	job_done(j);
	return 0;
}

/* Its pipe has ended or has something: the child is at its end. */
static void end_job(struct builder *b, struct job *j)
{
	struct result r = { 0 };
	struct err e;
	int n;

	if (!file_read_exactly(j->result_fd, &r, sizeof(r)))
		(void)err_set(&r.error, ERR_SYSTEM, "the process of the step died");
	else if (r.error.code != ERR_NONE)
		err_sanitize(&r.error);
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	j->pid = 0;
	cleanup_closep(&j->result_fd);
	cleanup_closep(&j->lifeline_fd);
	if (j->output_fd >= 0) { /* what is left of its output */
		char bytes[4096];

		while ((n = (int)read(j->output_fd, bytes, sizeof(bytes))) > 0)
			take_output(b, j, bytes, (size_t)n);
		cleanup_closep(&j->output_fd);
	}
	r.run.words[sizeof(r.run.words) - 1] = '\0';
	if ((j->kind == JOB_PACK ? end_pack(b, j, &r, &e) : end_step(b, j, &r, &e)) == 0)
		return;
	fail(b, &e);
	b->stages[j->stage].has_job = false;
	job_done(j);
}

/* ---- RUN ---- */

struct run_work {
	struct builder *b;
	const struct job *job;
	const struct stage *stage;
	struct runstep_mount mounts[RUNSTEP_MOUNTS_MAX];
	unsigned mount_count;
	bool has_no_network;
	char **argv, **env;
	char *lower;
	int lifeline_fd;
};

static void run_work_done(struct run_work *w)
{
	for (unsigned i = 0; i < w->mount_count; i++) {
		free(w->mounts[i].source);
		free(w->mounts[i].target);
	}
	keyrows_list_free(&w->argv);
	keyrows_list_free(&w->env);
	free(w->lower);
}

static int do_run(void *context, struct result *ret, struct err *e)
{
	const struct run_work *w = context;
	const struct runstep s = {
		.ak = w->b->o->ak,
		.policy = w->b->o->policy,
		.layers_path = w->b->layers_path,
		.layers_fd = w->b->layers_fd,
		.work = w->job->work,
		.lower = w->lower,
		.argv = w->argv,
		.env = w->env,
		.user = w->stage->built.user,
		.workdir = w->stage->built.workdir[0] ? w->stage->built.workdir : "/",
		.has_no_network = w->has_no_network,
		.mounts = w->mounts,
		.mount_count = w->mount_count,
		.lifeline_fd = w->lifeline_fd,
	};

	return runstep_run(&s, &ret->run, e);
}

static void chomp(char *text)
{
	char *to = text;
	bool is_start = true;

	for (const char *from = text; *from; from++) {
		if (is_start && *from == '\t')
			continue;
		is_start = *from == '\n';
		*to++ = *from;
	}
	*to = '\0';
}

/* Is the text nothing but "<<NAME"? */
static bool is_only_heredoc(const char *text)
{
	return strncmp(text, "<<", 2) == 0 && !strpbrk(text, " \t\n;|&>");
}

/* A file for the command: a secret, or a script with "#!". Beneath the build's own directory. */
static int write_file(struct builder *b, const char *work, const char *name, const char *bytes,
		      size_t len, mode_t mode, char **ret_path, struct err *e)
{
	cleanup_free char *path = mem_format("%s/%s", work, name);
	cleanup_fd int fd =
		openat(b->layers_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_write_all(fd, bytes, len);

	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "write a file for the step");
	*ret_path = mem_format("%s/%s", b->layers_path, path);
	return 0;
}

static struct runstep_mount *add_mount(struct run_work *w, struct err *e)
{
	if (w->mount_count == RUNSTEP_MOUNTS_MAX) {
		(void)err_set(e, ERR_LIMIT, "more than %u --mount", RUNSTEP_MOUNTS_MAX);
		return NULL;
	}
	return &w->mounts[w->mount_count++];
}

/* The words to execute. A here-document alone is a script of the shell, or of its "#!". */
static int compose_command(struct run_work *w, const struct dockerfile_instruction *i,
			   struct err *e)
{
	static const char *const usual[] = { "/bin/sh", "-c" };
	char *const *shell = w->stage->built.shell;
	cleanup_buf struct buf text = { .max = DOCKERFILE_MAX_BYTES };
	struct runstep_mount *m;

	if (i->is_json) {
		for (unsigned n = 0; n < i->word_count; n++)
			(void)keyrows_list_add(&w->argv, i->words[n].text);
		return w->argv ? 0 : err_set(e, ERR_INVALID, "the list is empty");
	}
	if (i->heredoc_count == 1 && is_only_heredoc(i->rest)) {
		cleanup_free char *script = mem_dup(i->heredocs[0].content);

		if (i->heredocs[0].is_chomp)
			chomp(script);
		if (strncmp(script, "#!", 2) == 0) {
			m = add_mount(w, e);
			if (!m || write_file(w->b, w->job->work, "script", script, strlen(script),
					     0755, &m->source, e) < 0)
				return -1;
			m->target = mem_format("/run/heredoc/%s", i->heredocs[0].name);
			m->is_file = m->is_read_only = true;
			(void)keyrows_list_add(&w->argv, m->target);
			return 0;
		}
		buf_add_text(&text, script);
	} else {
		buf_add_text(&text, i->rest);
		for (unsigned n = 0; n < i->heredoc_count; n++)
			buf_addf(&text, "\n%s%s", i->heredocs[n].content, i->heredocs[n].name);
	}
	for (size_t n = 0; shell && shell[n]; n++)
		(void)keyrows_list_add(&w->argv, shell[n]);
	for (size_t n = 0; !(shell && shell[0]) && n < COUNT_OF(usual); n++)
		(void)keyrows_list_add(&w->argv, usual[n]);
	(void)keyrows_list_add(&w->argv, buf_text(&text));
	return 0;
}

/* The options of one --mount. */
struct mount_words {
	char *text;
	const char *type, *target, *source, *from, *id, *env;
	const char *size, *mode;
	bool is_read_only, is_writable, is_required;
};

static bool is_true(const char *value)
{
	return !value || strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
}

static int read_mount(const char *text, struct mount_words *m, struct err *e)
{
	char *save = NULL;

	*m = (struct mount_words){ .text = mem_dup(text), .type = "bind" };
	for (char *word = strtok_r(m->text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (strcmp(word, "type") == 0)
			m->type = value;
		else if (strcmp(word, "target") == 0 || strcmp(word, "dst") == 0 ||
			 strcmp(word, "destination") == 0)
			m->target = value;
		else if (strcmp(word, "source") == 0 || strcmp(word, "src") == 0)
			m->source = value;
		else if (strcmp(word, "from") == 0)
			m->from = value;
		else if (strcmp(word, "id") == 0)
			m->id = value;
		else if (strcmp(word, "env") == 0)
			m->env = value;
		else if (strcmp(word, "size") == 0)
			m->size = value;
		else if (strcmp(word, "mode") == 0)
			m->mode = value;
		else if (strcmp(word, "ro") == 0 || strcmp(word, "readonly") == 0)
			m->is_read_only = is_true(value);
		else if (strcmp(word, "rw") == 0 || strcmp(word, "readwrite") == 0)
			m->is_writable = is_true(value);
		else if (strcmp(word, "required") == 0)
			m->is_required = is_true(value);
		else if (strcmp(word, "sharing") != 0 && strcmp(word, "uid") != 0 &&
			 strcmp(word, "gid") != 0)
			return err_set(e, ERR_INVALID, "--mount: there is no option '%.40s'", word);
		if ((strcmp(word, "uid") == 0 || strcmp(word, "gid") == 0) &&
		    strcmp(value ? value : "", "0") != 0)
			return err_set(e, ERR_UNSUPPORTED,
				       "--mount: %s=%.20s: a mount belongs to the user that the "
				       "command runs as (leave it out)",
				       word, value ? value : "");
	}
	return 0;
}

static int mount_secret(struct run_work *w, const struct mount_words *m, struct err *e)
{
	const char *id = m->id ? m->id : m->target ? path_base_name(m->target) : "";
	const struct builder_secret *secret = NULL;
	char name[32];
	struct runstep_mount *mount;

	for (unsigned i = 0; i < w->b->o->secret_count; i++)
		if (strcmp(w->b->o->secrets[i].id, id) == 0)
			secret = &w->b->o->secrets[i];
	if (!secret)
		return m->is_required ? err_set(e, ERR_INVALID,
						"the secret '%.60s' is not given (add --secret "
						"id=%.60s,src=FILE)",
						id, id)
				      : 0;
	if (m->env) {
		cleanup_free char *value = mem_dup_bytes(secret->value, secret->len);
		cleanup_free char *row = mem_format("%s=%s", m->env, value);

		(void)keyrows_list_add(&w->env, row);
		if (!m->target)
			return 0;
	}
	mount = add_mount(w, e);
	(void)snprintf(name, sizeof(name), "secret-%u", w->mount_count);
	if (!mount || write_file(w->b, w->job->work, name, secret->value, secret->len, 0400,
				 &mount->source, e) < 0)
		return -1;
	mount->target = m->target ? mem_dup(m->target) : mem_format("/run/secrets/%s", id);
	mount->is_file = mount->is_read_only = true;
	return 0;
}

/* A directory that stays from build to build, by its id. */
static int mount_cache(struct run_work *w, const struct mount_words *m, struct err *e)
{
	const char *id = m->id ? m->id : m->target;
	cleanup_buf struct buf name = { .max = BUF_TEXT_MAX_BYTES };
	struct runstep_mount *mount = add_mount(w, e);
	cleanup_free char *dir = NULL;
	int r;

	if (!mount)
		return -1;
	if (m->from || m->source)
		return err_set(e, ERR_UNSUPPORTED,
			       "--mount=type=cache with from= or source= (copy "
			       "what the cache begins with in the command)");
	for (; *id && name.len < 200; id++)
		buf_addf(&name,
			 strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", *id) ? "%c" : "+%02x",
			 (unsigned char)*id);
	if (statedir_path(w->b->o->ak, "build-cache", &dir, e) < 0)
		return -1;
	r = file_make_dirs(dir, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", dir);
	mount->source = mem_format("%s/%s", dir, buf_text(&name));
	mount->target = mem_dup(m->target);
	mount->is_read_only = m->is_read_only;
	if (mkdir(mount->source, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create a cache for the build");
	return 0;
}

static int find_from(struct builder *b, const char *from, char **ret_lower, char **ret_node,
		     struct err *e)
{
	cleanup_free char *empty = mem_format("%s/empty", b->work);
	int stage = plan_find_stage(b->o->plan, from);
	const struct images *image = NULL;

	if (stage != PLAN_NO_STAGE) {
		*ret_lower = buildstate_lower(&b->stages[stage].built, empty);
		*ret_node = mem_dup(b->stages[stage].built.node);
		return 0;
	}
	if (open_image(b, from, &image, e) < 0)
		return err_wrap(e, "--from");
	*ret_lower = mem_dup(image->lower);
	*ret_node = mem_format("image-%s", image->record.id);
	return 0;
}

struct copy_work {
	struct copystep step;
};

static int do_copy(void *context, struct err *e)
{
	const struct copy_work *w = context;

	return copystep_run(&w->step, e);
}

/* What is bound is copied: so it is what .dockerignore leaves, and what is written to it goes. */
static int mount_bind(struct run_work *w, const struct mount_words *m, struct err *e)
{
	struct builder *b = w->b;
	const char *source = m->source ? m->source : ".";
	CLEANUP(copylist_done) struct copylist list = { 0 };
	const struct copylist_options options = { .root_fd = b->o->context_fd,
						  .ignored = b->o->ignored,
						  .where = "the context" };
	char *const words[] = { (char *)(uintptr_t)source, NULL };
	cleanup_free char *lower = NULL, *node = NULL, *empty = mem_format("%s/empty", b->work);
	struct runstep_mount *mount = add_mount(w, e);
	struct owner_job job = { 0 };
	char work[64];
	bool is_file = false;
	struct copy_work copy = { { .root = { b->layers_fd, b->layers_path, work, empty },
				    .context_fd = -1,
				    .where = m->from ? m->from : "the context",
				    .has_one_owner = strcmp(b->cache.owners, "one") == 0,
				    .destination = "/bound/" } };

	if (!mount || make_work(b, work, e) < 0)
		return -1;
	if (m->from) {
		if (find_from(b, m->from, &lower, &node, e) < 0)
			return -1;
		copy.step.from_lower = lower;
		copy.step.words = words;
	} else {
		if (b->o->context_fd < 0)
			return err_set(e, ERR_INVALID, "there is no context to bind from");
		if (copylist_add(&list, &options, source, e) < 0)
			return -1;
		copy.step.context_fd = b->o->context_fd;
		copy.step.list = &list;
		is_file = list.source_count == 1 && !list.sources[0].is_dir;
	}
	if (owner_start(do_copy, &copy, &job, e) < 0 || owner_finish(&job, e) < 0)
		return -1;
	mount->source = mem_format("%s/%s/upper/bound%s%s", b->layers_path, work,
				   is_file ? "/" : "", is_file ? path_base_name(source) : "");
	mount->target = mem_dup(m->target);
	mount->is_read_only = !m->is_writable;
	return 0;
}

static int mount_one(struct run_work *w, const struct mount_words *m, struct err *e)
{
	struct runstep_mount *mount;

	if (strcmp(m->type, "secret") == 0)
		return mount_secret(w, m, e);
	if (strcmp(m->type, "ssh") == 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "--mount=type=ssh: a build is not given your keys (use a secret: "
			       "--mount=type=secret)");
	if (!m->target || m->target[0] != '/')
		return err_set(e, ERR_INVALID, "--mount: target=/DIRECTORY is missing");
	if (strcmp(m->type, "cache") == 0)
		return mount_cache(w, m, e);
	if (strcmp(m->type, "bind") == 0)
		return mount_bind(w, m, e);
	if (strcmp(m->type, "tmpfs") != 0)
		return err_set(
			e, ERR_INVALID,
			"--mount: there is no type '%.40s' (use bind, cache, tmpfs or secret)",
			m->type);
	mount = add_mount(w, e);
	if (!mount)
		return -1;
	mount->target = mem_dup(m->target);
	return m->size ? parse_bytes(m->size, 4096, POLICY_DISK_MAX_BYTES, &mount->size_bytes, e)
		       : 0;
}

static int add_mounts(struct run_work *w, const struct dockerfile_instruction *i, struct err *e)
{
	for (unsigned n = 0;; n++) {
		const char *flag = plan_nth_flag(i, "mount", n);
		cleanup_free char *text = NULL;
		struct mount_words m;
		int r;

		if (!flag)
			return 0;
		if (buildstate_expand(&w->stage->built, w->b->o->plan, flag, &text, e) < 0)
			return -1;
		r = read_mount(text, &m, e);
		if (r == 0)
			r = mount_one(w, &m, e);
		free(m.text);
		if (r < 0)
			return -1;
	}
}

static int read_network(struct run_work *w, const struct dockerfile_instruction *i, struct err *e)
{
	const char *network = plan_flag(i, "network"), *security = plan_flag(i, "security");

	if (security && strcmp(security, "sandbox") != 0)
		return err_set(e, ERR_DENIED,
			       "--security=%.40s: a build's commands are in a sandbox", security);
	if (network && strcmp(network, "none") != 0 && strcmp(network, "default") != 0)
		return err_set(
			e, ERR_DENIED,
			"--network=%.40s: the network of a build is the gate's (use default or "
			"none)",
			network);
	w->has_no_network = network && strcmp(network, "none") == 0;
	return 0;
}

static char *key_of_run(const struct builder *b, const struct run_work *w,
			const struct dockerfile_instruction *i)
{
	const struct buildstate *s = &w->stage->built;
	cleanup_buf struct buf key;

	buf_init(&key, STEPRECORD_MAX_BYTES);
	buf_addf(&key, "run\nparent=%s\nepoch=%" PRIu64 "\nuser=%s\nworkdir=%s\n", s->node,
		 b->o->epoch_s, s->user, s->workdir);
	for (char **flag = i->flags; flag && *flag; flag++)
		buf_addf(&key, "flag=%s\n", *flag);
	for (char **word = w->argv; *word; word++)
		buf_addf(&key, "word=%zu %s\n", strlen(*word), *word);
	for (unsigned n = 0; n < i->heredoc_count; n++)
		buf_addf(&key, "text=%s\n", i->heredocs[n].content);
	for (char **env = w->env; env && *env; env++)
		buf_addf(&key, "env=%zu %s\n", strlen(*env), *env);
	return mem_dup(buf_text(&key));
}

/* ---- COPY, ADD, WORKDIR ---- */

static char *key_of_copy(const struct builder *b, const struct stage *s, const char *kind,
			 const struct copystep *c, const char *more)
{
	cleanup_buf struct buf key;

	buf_init(&key, STEPRECORD_MAX_BYTES);
	buf_addf(&key,
		 "%s\nparent=%s\nepoch=%" PRIu64 "\ndestination=%s\nowner=%s\nmode=%s\n%d %d\n",
		 kind, s->built.node, b->o->epoch_s, c->destination, c->owner ? c->owner : "",
		 c->mode ? c->mode : "", c->keeps_parents, c->unpacks);
	for (char *const *word = c->words; word && *word; word++)
		buf_addf(&key, "word=%zu %s\n", strlen(*word), *word);
	for (unsigned n = 0; n < c->text_count; n++)
		buf_addf(&key, "text=%s %zu %s\n", c->texts[n].name, strlen(c->texts[n].content),
			 c->texts[n].content);
	buf_addf(&key, "%s\n", more);
	return mem_dup(buf_text(&key));
}

/* All that belongs to one COPY while it is prepared and started. */
struct copy_prepared {
	struct copy_work work;
	struct copylist list;
	char **words;
	char *destination, *owner, *mode, *lower, *from_lower, *from_node, *where, *empty;
	struct copystep_text texts[DOCKERFILE_HEREDOCS_MAX];
	char *contents[DOCKERFILE_HEREDOCS_MAX];
	struct ignore *excluded;
};

static void copy_prepared_done(struct copy_prepared *c)
{
	char *texts[] = { c->destination, c->owner,     c->mode,  c->lower,
			  c->from_lower,  c->from_node, c->where, c->empty };

	copylist_done(&c->list);
	keyrows_list_free(&c->words);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < COUNT_OF(c->contents); i++)
		free(c->contents[i]);
	ignore_free(c->excluded);
}

static int expand_flag(const struct builder *b, const struct stage *s,
		       const struct dockerfile_instruction *i, const char *flag, char **ret,
		       struct err *e)
{
	const char *text = plan_flag(i, flag);

	return text ? buildstate_expand(&s->built, b->o->plan, text, ret, e) : 0;
}

static int read_excluded(const struct dockerfile_instruction *i, struct ignore **ret, struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, IGNORE_FILE_MAX_BYTES);
	for (unsigned n = 0; plan_nth_flag(i, "exclude", n); n++)
		buf_addf(&text, "%s\n", plan_nth_flag(i, "exclude", n));
	return text.len ? ignore_parse("--exclude", buf_text(&text), text.len, ret, e) : 0;
}

static bool is_heredoc_word(const struct dockerfile_instruction *i, const char *word)
{
	return i->heredoc_count > 0 && strncmp(word, "<<", 2) == 0;
}

static int read_texts(const struct builder *b, const struct stage *s,
		      const struct dockerfile_instruction *i, struct copy_prepared *c,
		      struct err *e)
{
	for (unsigned n = 0; n < i->heredoc_count; n++) {
		const struct dockerfile_heredoc *h = &i->heredocs[n];

		if (h->expands) {
			if (buildstate_expand_text(&s->built, b->o->plan, h->content,
						   &c->contents[n], e) < 0)
				return -1;
		} else {
			c->contents[n] = mem_dup(h->content);
		}
		if (h->is_chomp)
			chomp(c->contents[n]);
		c->texts[n] = (struct copystep_text){ h->name, c->contents[n] };
	}
	c->work.step.texts = c->texts;
	c->work.step.text_count = i->heredoc_count;
	return 0;
}

static int read_copy_words(struct builder *b, struct stage *s,
			   const struct dockerfile_instruction *i, struct copy_prepared *c,
			   struct err *e)
{
	unsigned last = i->word_count - 1;

	for (unsigned n = 0; n <= last; n++) {
		cleanup_free char *word = NULL;

		if (n < last && is_heredoc_word(i, i->words[n].text))
			continue;
		if (buildstate_expand(&s->built, b->o->plan, i->words[n].text, &word, e) < 0)
			return -1;
		if (n == last)
			return buildstate_path(&s->built, word, &c->destination, e);
		if (strstr(word, "://") || strncmp(word, "git@", 4) == 0)
			return err_set(
				e, ERR_UNSUPPORTED,
				"'%.100s': addresses are fetched by a RUN, whose network is the "
				"gate's (RUN curl -fLO ...)",
				word);
		if (!keyrows_list_add(&c->words, word))
			return err_set(e, ERR_LIMIT, "more than %u sources", KEYROWS_LIST_MAX);
	}
	return 0;
}

static int prepare_copy(struct builder *b, struct stage *s, const struct dockerfile_instruction *i,
			struct copy_prepared *c, struct err *e)
{
	struct copystep *step = &c->work.step;
	const char *from = plan_flag(i, "from");

	*c = (struct copy_prepared){ 0 };
	if (plan_flag(i, "checksum") || plan_flag(i, "keep-git-dir"))
		return err_set(
			e, ERR_UNSUPPORTED,
			"--%s is for addresses, which are fetched by a RUN, whose network is the "
			"gate's",
			plan_flag(i, "checksum") ? "checksum" : "keep-git-dir");
	if (read_copy_words(b, s, i, c, e) < 0 || expand_flag(b, s, i, "chown", &c->owner, e) < 0 ||
	    expand_flag(b, s, i, "chmod", &c->mode, e) < 0 || read_texts(b, s, i, c, e) < 0 ||
	    read_excluded(i, &c->excluded, e) < 0)
		return -1;
	c->empty = mem_format("%s/empty", b->work);
	c->lower = buildstate_lower(&s->built, c->empty);
	*step = (struct copystep){ .context_fd = -1,
				   .texts = step->texts,
				   .text_count = step->text_count,
				   .words = c->words,
				   .excluded = c->excluded,
				   .destination = c->destination,
				   .owner = c->owner,
				   .mode = c->mode,
				   .keeps_parents = plan_flag(i, "parents"),
				   .unpacks = strcmp(i->keyword, "add") == 0,
				   .program = &b->program };
	if (from) {
		if (find_from(b, from, &c->from_lower, &c->from_node, e) < 0)
			return -1;
		c->where = mem_format("'%.100s'", from);
		step->from_lower = c->from_lower;
	} else {
		c->where = mem_dup("the context");
	}
	step->where = c->where;
	return 0;
}

static int list_context(struct builder *b, struct copy_prepared *c, struct err *e)
{
	const struct copylist_options o = { .root_fd = b->o->context_fd,
					    .ignored = b->o->ignored,
					    .excluded = c->excluded,
					    .where = c->where };

	if (c->words && b->o->context_fd < 0)
		return err_set(e, ERR_INVALID,
			       "there is no context to copy from (name a directory)");
	for (char **word = c->words; word && *word; word++)
		if (copylist_add(&c->list, &o, *word, e) < 0)
			return -1;
	c->work.step.list = &c->list;
	c->work.step.context_fd = b->o->context_fd;
	return 0;
}

/* ---- starting a step ---- */

static void announce(struct builder *b, struct job *j)
{
	char text[256];

	j->number = ++b->step_count;
	b->stages[j->stage].step++;
	format_step(b, j, text);
	tell(b, "#%u %s", j->number, text);
}

/* 1: it was done before; 0: it has to be done, and is ours to do; 2: another build is at it. */
static int look_up(struct builder *b, struct stage *s, struct job *j, struct err *e)
{
	CLEANUP(steprecord_done) struct steprecord r = { 0 };

	if (b->o->has_no_cache)
		return 0;
	if (!stepcache_find(&b->cache, j->key, &r)) {
		if (!stepcache_lock(&b->cache, j->key, &j->lock_fd))
			return 2;
		/* it may have been done since we looked */
		if (!stepcache_find(&b->cache, j->key, &r))
			return 0;
	}
	announce(b, j);
	tell(b, "#%u CACHED", j->number);
	b->cached_count++;
	return apply_record(b, s, &r, j->instruction, e) < 0 ? -1 : 1;
}

static int begin_run(struct builder *b, struct stage *s, struct job *j, struct err *e)
{
	const struct dockerfile_instruction *i = j->instruction;
	CLEANUP(run_work_done) struct run_work w = { .b = b, .job = j, .stage = s };
	cleanup_free char *empty = mem_format("%s/empty", b->work);
	cleanup_fd int inner_fd = -1;
	int ends[2], found;

	w.env = buildstate_variables(&s->built, b->o->plan);
	if (make_work(b, j->work, e) < 0 || read_network(&w, i, e) < 0 ||
	    compose_command(&w, i, e) < 0)
		return -1;
	j->key = key_of_run(b, &w, i);
	found = look_up(b, s, j, e);
	if (found != 0)
		return found;
	announce(b, j);
	if (add_mounts(&w, i, e) < 0)
		return -1;
	w.lower = buildstate_lower(&s->built, empty);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	inner_fd = w.lifeline_fd = ends[0];
	j->lifeline_fd = ends[1];
	j->kind = JOB_RUN;
	return start_child(b, j, do_run, &w, true, e);
}

struct copy_child {
	const struct copy_work *work;
};

static int do_copy_job(void *context, struct result *ret, struct err *e)
{
	const struct copy_child *c = context;
	struct owner_job job = { 0 };

	(void)ret;
	if (owner_start(do_copy, (void *)(uintptr_t)c->work, &job, e) < 0)
		return -1;
	return owner_finish(&job, e);
}

static int start_copy(struct builder *b, struct job *j, struct copy_prepared *c, struct err *e)
{
	struct copy_child child = { &c->work };

	if (make_work(b, j->work, e) < 0)
		return -1;
	c->work.step.has_one_owner = strcmp(b->cache.owners, "one") == 0;
	c->work.step.root = (struct stageroot){ b->layers_fd, b->layers_path, j->work, c->lower };
	j->kind = JOB_COPY;
	return start_child(b, j, do_copy_job, &child, false, e);
}

static int begin_copy(struct builder *b, struct stage *s, struct job *j, struct err *e)
{
	CLEANUP(copy_prepared_done) struct copy_prepared c;
	char print[COPYLIST_PRINT_BYTES];
	cleanup_free char *more = NULL;
	int found;

	if (prepare_copy(b, s, j->instruction, &c, e) < 0)
		return -1;
	if (c.from_node) {
		more = mem_format("from=%s", c.from_node);
		j->key = key_of_copy(b, s, "copy", &c.work.step, more);
	} else {
		if (list_context(b, &c, e) < 0)
			return -1;
		copylist_fingerprint(&c.list, print);
		more = mem_format("print=%s", print);
		j->key = key_of_copy(b, s, "copy-files", &c.work.step, more);
		j->content_key = key_of_copy(b, s, "copy-content", &c.work.step, "");
	}
	found = look_up(b, s, j, e);
	if (found != 0)
		return found;
	announce(b, j);
	return start_copy(b, j, &c, e);
}

static int begin_workdir(struct builder *b, struct stage *s, struct job *j, struct err *e)
{
	CLEANUP(copy_prepared_done) struct copy_prepared c = { 0 };
	cleanup_free char *word = NULL, *path = NULL;
	size_t len;
	int found;

	if (buildstate_expand(&s->built, b->o->plan, j->instruction->words[0].text, &word, e) < 0 ||
	    buildstate_path(&s->built, word, &path, e) < 0)
		return -1;
	len = strlen(path);
	if (len > 1 && path[len - 1] == '/')
		path[len - 1] = '\0';
	c.empty = mem_format("%s/empty", b->work);
	c.lower = buildstate_lower(&s->built, c.empty);
	c.owner = s->built.user[0] ? mem_dup(s->built.user) : NULL;
	c.destination = mem_dup(path);
	c.work.step = (struct copystep){ .context_fd = -1,
					 .destination = c.destination,
					 .owner = c.owner,
					 .makes_directory = true };
	j->key = key_of_copy(b, s, "workdir", &c.work.step, "");
	free(s->built.workdir);
	s->built.workdir = take_ptr(path);
	found = look_up(b, s, j, e);
	if (found != 0)
		return found;
	announce(b, j);
	return start_copy(b, j, &c, e);
}

static int begin_step(struct builder *b, unsigned at, const struct dockerfile_instruction *i,
		      const char *file, struct job *j, struct err *e)
{
	struct stage *s = &b->stages[at];

	job_init(j);
	j->stage = at;
	j->instruction = i;
	j->file = file;
	j->started_ms = clock_now_ms();
	if (strcmp(i->keyword, "run") == 0)
		return begin_run(b, s, j, e);
	if (strcmp(i->keyword, "workdir") == 0)
		return begin_workdir(b, s, j, e);
	return begin_copy(b, s, j, e);
}

/* Does what can be done at once; true if the stage has moved. */
static bool advance(struct builder *b, unsigned at)
{
	struct stage *s = &b->stages[at];
	const struct dockerfile_instruction *i;
	const char *file;
	struct job *j;
	struct err e;
	int r;

	if (s->state == STAGE_WAITS) {
		for (unsigned n = 0; n < at; n++)
			if (s->plan->needs[n] && (b->stages[n].state != STAGE_DONE))
				return false;
		if (s->plan->base_stage != PLAN_NO_STAGE && b->stages[s->plan->base_stage].packs)
			return false; /* its layers are copied with their digests */
		if (begin_stage(b, s, &e) < 0)
			fail(b, &e);
		return true;
	}
	if (s->state == STAGE_DONE || s->has_job)
		return false;
	i = current(s, &file, b->o->plan);
	if (!i) {
		s->state = STAGE_DONE;
		return true;
	}
	if (buildstate_only_describes(i)) {
		if (buildstate_apply(&s->built, b->o->plan, i, &e) < 0)
			fail(b, &e);
		s->at++;
		return true;
	}
	j = free_job(b);
	if (!j || count_jobs(b, false) >= b->jobs_max || count_jobs(b, true) >= b->jobs_max)
		return false;
	r = begin_step(b, at, i, file, j, &e);
	if (r < 0) {
		(void)dockerfile_err_wrap(file, i, &e);
		fail(b, &e);
	}
	s->waits_for_lock = r == 2;
	if (r == 0) {
		s->has_job = true;
		return true;
	}
	j->kind = JOB_NONE;
	job_done(j);
	return r == 1;
}

/* ---- the loop ---- */

static void check_room(struct builder *b)
{
	struct statvfs fs;
	uint64_t reserve, left;

	if (fstatvfs(b->layers_fd, &fs) < 0)
		return;
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	reserve = (uint64_t)fs.f_blocks * fs.f_frsize / ROOM_RESERVE_PART;
	if (reserve > ROOM_RESERVE_MAX_BYTES)
		reserve = ROOM_RESERVE_MAX_BYTES;
	if (left >= reserve || b->has_failed)
		return;
	(void)err_set(
		&b->failure, ERR_LIMIT,
		"the disk is full: the build was stopped before it took what others need ('%s' "
		"frees what is not needed)",
		"agentkernel image prune --all");
	b->has_failed = true;
}

/* After a failure: commands end; what is being packed is finished, for the next try. */
static void end_commands(struct builder *b)
{
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		struct job *j = &b->jobs[i];

		if (j->kind == JOB_RUN)
			cleanup_closep(&j->lifeline_fd);
		else if (j->kind == JOB_COPY && j->pid > 0)
			(void)kill(j->pid, SIGTERM); /* our child, not yet reaped */
	}
}

static void wait_for_jobs(struct builder *b, bool is_waiting_for_lock)
{
	struct pollfd polled[2 * JOBS_MAX];
	struct job *of[2 * JOBS_MAX];
	nfds_t count = 0;
	int timeout = LOOK_AGAIN_MS;

	for (unsigned i = 0; i < JOBS_MAX; i++) {
		struct job *j = &b->jobs[i];

		if (j->kind == JOB_NONE)
			continue;
		if (j->output_fd >= 0) {
			of[count] = j;
			polled[count++] = (struct pollfd){ j->output_fd, POLLIN, 0 };
		}
		of[count] = j;
		polled[count++] = (struct pollfd){ j->result_fd, POLLIN, 0 };
	}
	if (is_waiting_for_lock)
		timeout = LOOK_AGAIN_MS / 4;
	if (poll(polled, count, timeout) < 0)
		return;
	for (nfds_t i = 0; i < count; i++) {
		char bytes[16384];
		ssize_t n;

		if (!polled[i].revents)
			continue;
		if (polled[i].fd == of[i]->output_fd) {
			n = read(of[i]->output_fd, bytes, sizeof(bytes));
			if (n > 0)
				take_output(b, of[i], bytes, (size_t)n);
			else
				cleanup_closep(&of[i]->output_fd);
		} else if (polled[i].fd == of[i]->result_fd && of[i]->kind != JOB_NONE) {
			end_job(b, of[i]);
		}
	}
}

static bool is_over(const struct builder *b)
{
	if (count_jobs(b, true) + count_jobs(b, false) > 0)
		return false;
	return b->has_failed || b->stages[b->o->plan->target].state == STAGE_DONE;
}

static void run_stages(struct builder *b)
{
	while (!is_over(b)) {
		bool has_moved = false, is_locked = false;

		for (unsigned i = 0; i < b->o->plan->count && !b->has_failed; i++) {
			while (!b->has_failed && b->stages[i].plan->is_wanted && advance(b, i))
				has_moved = true;
			is_locked = is_locked || b->stages[i].waits_for_lock;
		}
		if (is_interrupted && !b->has_failed) {
			(void)err_set(&b->failure, ERR_SYSTEM,
				      "interrupted; the steps that were done are kept");
			b->has_failed = true;
		}
		check_room(b);
		if (b->has_failed)
			end_commands(b);
		if ((!has_moved || b->has_failed) && !is_over(b))
			wait_for_jobs(b, is_locked);
	}
}

/* ---- the image ---- */

static int compose(struct builder *b, struct builder_result *ret, struct err *e)
{
	const struct stage *s = &b->stages[b->o->plan->target];
	uint64_t created_s = b->o->epoch_s     ? b->o->epoch_s
			     : s->built.made_s ? s->built.made_s
					       : now_s(b);
	cleanup_fd int in_fd = memfd_create("agentkernel-image", MFD_CLOEXEC);
	cleanup_fd int out_fd = memfd_create("agentkernel-image", MFD_CLOEXEC);
	cleanup_free char *name = b->o->name ? mem_format("reference=%s", b->o->name) : NULL;
	const char *words[] = { name, NULL };
	const struct imagehelper_request q = { .operation = "compose",
					       .words = words,
					       .ak = b->o->ak,
					       .in_fd = in_fd,
					       .out_fd = out_fd };
	cleanup_buf struct buf text;
	cleanup_free char *answer = NULL;
	size_t len = 0;
	int r;

	buf_init(&text, DOCKERFILE_MAX_BYTES);
	buildstate_format(&s->built, created_s, &text);
	r = in_fd < 0 || out_fd < 0 ? -errno : file_write_all(in_fd, text.bytes, text.len);
	if (r < 0 || lseek(in_fd, 0, SEEK_SET) < 0)
		return err_sys(e, r < 0 ? -r : errno, "describe the image");
	if (text.is_cut)
		return err_set(e, ERR_LIMIT, "the image's description is too long");
	if (imagehelper_run(&q, e) < 0)
		return -1;
	if (lseek(out_fd, 0, SEEK_SET) < 0 ||
	    file_read_fd(out_fd, COMPOSE_ANSWER_MAX_BYTES, &answer, &len) < 0 ||
	    sscanf(answer, "%79s %26s", ret->digest, ret->id) != 2)
		return err_set(e, ERR_REMOTE, "the image helper gave no digest");
	return 0;
}

static void tidy(struct builder *b)
{
	const struct imagehelper_request q = { .operation = "tidy", .ak = b->o->ak };
	struct err ignored;

	if (b->steps_fd < 0 || stepcache_prune(&b->cache) == 0)
		return;
	cleanup_closep(&b->lock_fd);
	(void)!imagehelper_run(&q, &ignored);
}

static void builder_init(struct builder *b, const struct builder_options *o)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*b = (struct builder){ .o = o,
			       .lock_fd = -1,
			       .work_lock_fd = -1,
			       .layers_fd = -1,
			       .steps_fd = -1,
			       .blobs_fd = -1,
			       .partial_fd = -1,
			       .program = { .fd = -1 },
			       .jobs_max = cpus < 2                      ? 2
					   : cpus > (long)(JOBS_MAX / 2) ? JOBS_MAX / 2
									 : (unsigned)cpus };
	for (unsigned i = 0; i < JOBS_MAX; i++)
		job_init(&b->jobs[i]);
	b->stages = mem_alloc(o->plan->count * sizeof(*b->stages));
	for (unsigned i = 0; i < o->plan->count; i++) {
		b->stages[i].plan = &o->plan->stages[i];
		buildstate_init(&b->stages[i].built);
	}
}

static void builder_done(struct builder *b)
{
	for (unsigned i = 0; i < b->o->plan->count; i++) {
		buildstate_done(&b->stages[i].built);
		for (unsigned n = 0; n < b->stages[i].trigger_count; n++)
			dockerfile_done(&b->stages[i].triggers[n]);
	}
	free(b->stages);
	for (unsigned i = 0; i < b->image_count; i++) {
		images_done(&b->images[i]);
		free(b->image_names[i]);
	}
	helper_done(&b->program);
	close_store(b);
}

static void watch_signals(struct sigaction old[3])
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		(void)sigaction(numbers[i], &action, &old[i]);
}

static void restore_signals(const struct sigaction old[3])
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		(void)sigaction(numbers[i], &old[i], NULL);
}

int builder_run(const struct builder_options *o, struct builder_result *ret, struct err *e)
{
	struct sigaction old[3];
	struct builder b;
	int r;

	builder_init(&b, o);
	*ret = (struct builder_result){ 0 };
	watch_signals(old);
	r = helper_open(TOOL_PROGRAM, &b.program, e);
	if (r == 0)
		r = open_store(&b, e);
	if (r == 0) {
		run_stages(&b);
		if (b.has_failed) {
			*e = b.failure;
			r = -1;
		}
	}
	if (r == 0)
		r = compose(&b, ret, e);
	ret->steps = b.step_count;
	ret->cached = b.cached_count;
	tidy(&b);
	restore_signals(old);
	builder_done(&b);
	return r;
}
