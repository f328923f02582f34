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
#include "build/buildwork.h"

#include "base/cleanup.h"
#include "build/cachedirs.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/shown.h"
#include "engine/imagehelper.h"
#include "image/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 200
#define LINE_MAX_BYTES 4096u

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

static void format_step(const struct builder *b, const struct buildwork_job *j, char out[256])
{
	const struct buildwork_stage *s = &b->stages[j->stage];
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
static void end_line(struct builder *b, struct buildwork_job *j)
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

static void take_output(struct builder *b, struct buildwork_job *j, const char *bytes, size_t len)
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

static void tell_tail(const struct builder *b, struct buildwork_job *j)
{
	cleanup_free char *text = mem_dup_bytes(buf_text(&j->tail), j->tail.len);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line && !b->o->shows_output;
	     line = strtok_r(NULL, "\n", &save))
		tell(b, "#%u %s", j->number, line);
}

void builder_chomp(char *text)
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
	if (b->image_count == BUILDWORK_IMAGES_MAX)
		return err_set(e, ERR_LIMIT, "a build from more than %u images",
			       BUILDWORK_IMAGES_MAX);
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

int builder_find_from(struct builder *b, const char *from, char **ret_lower, char **ret_node,
		      struct err *e)
{
	const char *empty = b->store.empty;
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

/* ---- stages ---- */

static const struct dockerfile_instruction *current(const struct buildwork_stage *s,
						    const char **ret_file, const struct plan *p)
{
	if (s->at < s->trigger_count) {
		*ret_file = s->triggers[s->at].name;
		return &s->triggers[s->at].list[0];
	}
	*ret_file = p->file->name;
	return s->at - s->trigger_count < s->plan->count ? &s->plan->list[s->at - s->trigger_count]
							 : NULL;
}

static int take_triggers(struct builder *b, struct buildwork_stage *s, struct err *e)
{
	for (char **line = s->built.onbuild; line && *line; line++) {
		cleanup_free char *name = mem_format("ONBUILD of %.100s", s->plan->base);
		struct dockerfile *d = &s->triggers[s->trigger_count];

		if (s->trigger_count == BUILDWORK_TRIGGERS_MAX)
			return err_set(e, ERR_LIMIT, "'%s' has more than %u ONBUILD", s->plan->base,
				       BUILDWORK_TRIGGERS_MAX);
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

static int begin_stage(struct builder *b, struct buildwork_stage *s, struct err *e)
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
	buildstate_add_path(&s->built);
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
static _Noreturn void child_main(buildwork_fn *fn, void *context, int result_fd, int output_fd)
{
	struct buildwork_result result = { 0 };
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
	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++) {
		cleanup_closep(&b->jobs[i].lifeline_fd);
		cleanup_closep(&b->jobs[i].lock_fd);
	}
}

int builder_start_child(struct builder *b, struct buildwork_job *j, buildwork_fn *fn, void *context,
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

static struct buildwork_job *free_job(struct builder *b)
{
	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++)
		if (b->jobs[i].kind == JOB_NONE)
			return &b->jobs[i];
	return NULL;
}

static void job_init(struct buildwork_job *j)
{
	*j = (struct buildwork_job){
		.result_fd = -1, .output_fd = -1, .lifeline_fd = -1, .lock_fd = -1
	};
	buf_init(&j->line, LINE_MAX_BYTES + 1);
	buf_init(&j->tail, BUILDER_TAIL_MAX_BYTES + LINE_MAX_BYTES);
}

static void job_done(struct buildwork_job *j)
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

	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++)
		count += b->jobs[i].kind != JOB_NONE && (b->jobs[i].kind == JOB_PACK) == packs;
	return count;
}

/* ---- packing ---- */

struct packing {
	const struct builder *b;
	int dir_fd, blob_fd;
};

static int do_pack(void *context, struct buildwork_result *ret, struct err *e)
{
	const struct packing *p = context;

	return layertransfer_pack_step(p->dir_fd, p->blob_fd, (int64_t)p->b->o->epoch_s,
				       &ret->packed, e);
}

/* Packs the layer .layer, or what is in .work, into a blob. Takes over the other job's rest. */
static int start_pack(struct builder *b, struct buildwork_job *j, struct err *e)
{
	cleanup_free char *dir = j->layer[0] ? mem_dup(j->layer) : mem_format("%s/upper", j->work);
	cleanup_fd int dir_fd = -1, blob_fd = -1;
	struct packing p = { .b = b };

	free(take_ptr(j->blob));
	dir_fd = openat(b->store.layers_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir_fd < 0)
		return err_sys(e, errno, "pack a layer");
	if (buildstore_begin_blob(&b->store, &j->blob, &blob_fd, e) < 0)
		return -1;
	p.dir_fd = dir_fd;
	p.blob_fd = blob_fd;
	j->kind = JOB_PACK;
	return builder_start_child(b, j, do_pack, &p, false, e);
}

/* ---- results ---- */

static uint64_t now_s(const struct builder *b)
{
	uint64_t now = (uint64_t)time(NULL);

	return b->o->epoch_s && b->o->epoch_s < now ? b->o->epoch_s : now;
}

/* The stage has the step of this record, and goes on. */
static int apply_record(struct builder *b, struct buildwork_stage *s, const struct steprecord *r,
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

	if (!key) /* it has to be looked at every time */
		return;
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
static void finish_empty(struct builder *b, struct buildwork_job *j)
{
	struct buildwork_stage *s = &b->stages[j->stage];
	struct steprecord r = { .made_s = j->made_s };
	struct err e;

	memcpy(r.node, j->node, sizeof(r.node));
	remember(b, j->key, &r);
	if (apply_record(b, s, &r, j->instruction, &e) < 0)
		fail(b, &e);
	s->has_job = false;
	job_done(j);
}

static void tell_done(const struct builder *b, const struct buildwork_job *j)
{
	uint64_t ms = clock_now_ms() - j->started_ms;

	tell(b, "#%u DONE %" PRIu64 ".%" PRIu64 "s", j->number, ms / 1000, ms % 1000 / 100);
}

/* Is the upper directory empty, and its root as below? */
static bool is_unchanged(const struct builder *b, const struct buildwork_job *j)
{
	cleanup_free char *upper = mem_format("%s/upper", j->work);
	const char *empty = b->store.empty;
	cleanup_free char *lower = buildstate_lower(&b->stages[j->stage].built, empty);
	struct stat st, below;
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;
	int fd;

	lower[strcspn(lower, ":")] = '\0';
	fd = openat(b->store.layers_fd, upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || fstatat(b->store.layers_fd, lower, &below, 0) < 0 ||
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
static int finish_run(struct builder *b, struct buildwork_job *j, struct err *e)
{
	struct buildwork_stage *s = &b->stages[j->stage];
	cleanup_free char *upper = mem_format("%s/upper", j->work);
	struct buildstate_layer *l = &s->built.layers[s->built.layer_count];

	if (s->built.layer_count == RECORD_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "an image has at most %u layers", RECORD_LAYERS_MAX);
	stepcache_choose_id(j->layer);
	if (buildstore_move_layer(&b->store, upper, j->layer, e) < 0)
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

static int refuse_run(struct builder *b, struct buildwork_job *j, const struct runstep_result *r,
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

static int end_step(struct builder *b, struct buildwork_job *j, const struct buildwork_result *r,
		    struct err *e)
{
	j->made_s = now_s(b);
	if (j->line.len)
		end_line(b, j);
	if (r->error.code != ERR_NONE) {
		tell_tail(b, j);
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
static int settle_copy(struct builder *b, struct buildwork_job *j,
		       const struct layertransfer_result *packed, struct steprecord *r,
		       struct err *e)
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
		if (buildstore_move_layer(&b->store, upper, j->layer, e) < 0)
			return -1;
		memcpy(r->layer, j->layer, sizeof(r->layer));
		remember(b, key, r);
	}
	return 0;
}

static int end_pack(struct builder *b, struct buildwork_job *j,
		    const struct buildwork_result *result, struct err *e)
{
	struct buildwork_stage *s = &b->stages[j->stage];
	const struct layertransfer_result *packed = &result->packed;
	struct steprecord r = { .made_s = j->made_s, .size_bytes = packed->bytes };
	bool is_copy = j->content_key;

	if (result->error.code != ERR_NONE) {
		buildstore_drop_blob(&b->store, j->blob);
		*e = result->error;
		return dockerfile_err_wrap(j->file, j->instruction, e);
	}
	if (buildstore_keep_blob(&b->store, j->blob, packed, e) < 0)
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
static void end_job(struct builder *b, struct buildwork_job *j)
{
	struct buildwork_result r = { 0 };
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

/* ---- starting a step ---- */

void builder_announce(struct builder *b, struct buildwork_job *j)
{
	char text[256];

	j->number = ++b->step_count;
	b->stages[j->stage].step++;
	format_step(b, j, text);
	tell(b, "#%u %s", j->number, text);
}

/* 1: it was done before; 0: it has to be done, and is ours to do; 2: another build is at it. */
int builder_look_up(struct builder *b, struct buildwork_stage *s, struct buildwork_job *j,
		    struct err *e)
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
	builder_announce(b, j);
	tell(b, "#%u CACHED", j->number);
	b->cached_count++;
	return apply_record(b, s, &r, j->instruction, e) < 0 ? -1 : 1;
}

static int begin_step(struct builder *b, unsigned at, const struct dockerfile_instruction *i,
		      const char *file, struct buildwork_job *j, struct err *e)
{
	struct buildwork_stage *s = &b->stages[at];

	job_init(j);
	j->stage = at;
	j->instruction = i;
	j->file = file;
	j->started_ms = clock_now_ms();
	if (strcmp(i->keyword, "run") == 0)
		return buildrun_begin(b, s, j, e);
	if (strcmp(i->keyword, "workdir") == 0)
		return buildcopy_begin_workdir(b, s, j, e);
	return buildcopy_begin(b, s, j, e);
}

/* Does what can be done at once; true if the stage has moved. */
static bool advance(struct builder *b, unsigned at)
{
	struct buildwork_stage *s = &b->stages[at];
	const struct dockerfile_instruction *i;
	const char *file;
	struct buildwork_job *j;
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

	if (fstatvfs(b->store.layers_fd, &fs) < 0)
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
	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++) {
		struct buildwork_job *j = &b->jobs[i];

		if (j->kind == JOB_RUN)
			cleanup_closep(&j->lifeline_fd);
		else if (j->kind == JOB_COPY && j->pid > 0)
			(void)kill(j->pid, SIGTERM); /* our child, not yet reaped */
	}
}

static void wait_for_jobs(struct builder *b, bool is_waiting_for_lock)
{
	struct pollfd polled[2 * BUILDWORK_JOBS_MAX];
	struct buildwork_job *of[2 * BUILDWORK_JOBS_MAX];
	nfds_t count = 0;
	int timeout = LOOK_AGAIN_MS;

	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++) {
		struct buildwork_job *j = &b->jobs[i];

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
	const struct buildwork_stage *s = &b->stages[b->o->plan->target];
	uint64_t created_s = b->o->epoch_s     ? b->o->epoch_s
			     : s->built.made_s ? s->built.made_s
					       : now_s(b);
	cleanup_buf struct buf text;

	buf_init(&text, DOCKERFILE_MAX_BYTES);
	buildstate_format(&s->built, created_s, &text);
	return buildstore_compose(&b->store, &text, b->o->name, ret->digest, ret->id, e);
}

static void tidy(struct builder *b)
{
	const struct imagehelper_request q = { .operation = "tidy", .ak = b->o->ak };
	struct err ignored;

	cachedirs_prune(b->o->ak);
	if (b->store.steps_fd < 0 || stepcache_prune(&b->cache) == 0)
		return;
	cleanup_closep(&b->store.lock_fd);
	(void)!imagehelper_run(&q, &ignored);
}

static void init(struct builder *b, const struct builder_options *o)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*b = (struct builder){ .o = o,
			       .program = { .fd = -1 },
			       .jobs_max = cpus < 2 ? 2
					   : cpus > (long)(BUILDWORK_JOBS_MAX / 2)
						   ? BUILDWORK_JOBS_MAX / 2
						   : (unsigned)cpus };
	buildstore_init(&b->store);
	for (unsigned i = 0; i < BUILDWORK_JOBS_MAX; i++)
		job_init(&b->jobs[i]);
	b->stages = mem_alloc(o->plan->count * sizeof(*b->stages));
	for (unsigned i = 0; i < o->plan->count; i++) {
		b->stages[i].plan = &o->plan->stages[i];
		buildstate_init(&b->stages[i].built);
	}
}

static void done(struct builder *b)
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
	buildstore_close(&b->store);
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

	init(&b, o);
	*ret = (struct builder_result){ 0 };
	watch_signals(old);
	r = helper_open(TOOL_PROGRAM, &b.program, e);
	if (r == 0)
		r = buildstore_open(&b.store, o->ak, e);
	if (r == 0)
		r = stepcache_init(&b.cache, b.store.steps_fd, b.store.layers_fd, b.store.blobs_fd,
				   b.store.owners, e);
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
	done(&b);
	return r;
}
