/*
 * op_build - an image from a Dockerfile; see op_build.h.
 *
 * Theory of operation. The context is a directory that is opened once; an archive on stdin is
 * unpacked beneath the state directory first, by the confined helper, and a repository is cloned
 * there in a sandbox. The Dockerfile is found, read and planned before anything runs, so mistakes
 * are told at once.
 */
#include "ops/op_build.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "build/clonestep.h"
#include "build/ignore.h"
#include "engine/helper.h"
#include "engine/imagehelper.h"
#include "ops/events.h"
#include "host/mount.h"
#include "policy/environment.h"
#include "state/ak.h"
#include "state/audit.h"
#include "state/statedir.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DOCKERFILE "Dockerfile"
#define CONTEXTS_DIR "build-contexts"
#define EPOCH_MAX_S 253402300799ull /* the last second of the year 9999 */

/* All that a build is made of, while it runs. */
struct building {
	const struct op_build_args *args;
	const struct ak *ak;
	int context_fd;   /* -1: none */
	char *unpacked;   /* name of a context from stdin, beneath CONTEXTS_DIR; NULL: none */
	char *stdin_text; /* a Dockerfile from there; NULL: none */
	size_t stdin_len;
	struct dockerfile file;
	struct ignore *ignored;
	struct plan plan;
	char **given;
	struct builder_secret secrets[BUILDER_SECRETS_MAX];
	unsigned secret_count;
	uint64_t epoch_s;
};

static void building_done(struct building *b)
{
	cleanup_free char *dir = NULL;
	struct err ignored;

	plan_done(&b->plan);
	dockerfile_done(&b->file);
	ignore_free(b->ignored);
	keyrows_list_free(&b->given);
	for (unsigned i = 0; i < b->secret_count; i++) {
		explicit_bzero(b->secrets[i].value, b->secrets[i].len);
		free(b->secrets[i].id);
		free(b->secrets[i].value);
	}
	cleanup_closep(&b->context_fd);
	if (b->unpacked && statedir_path(b->ak, CONTEXTS_DIR, &dir, &ignored) == 0) {
		cleanup_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir_fd >= 0)
			(void)!owner_sweep(dir_fd, b->unpacked, &ignored);
	}
	free(b->unpacked);
	free(b->stdin_text);
}

/* ---- the context ---- */

static bool is_git(const char *text)
{
	size_t len = strlen(text);

	return strstr(text, "://") || strncmp(text, "git@", 4) == 0 ||
	       (len > 4 && strcmp(text + len - 4, ".git") == 0 && access(text, F_OK) < 0);
}

static int unpack_into(const char *path, int archive_fd, struct err *e)
{
	CLEANUP(helper_done) struct helper program = { .fd = -1 };
	cleanup_fd int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct imagehelper_transfer t = { .operation = "files-unpack",
					  .dir_fd = dir_fd,
					  .stdin_fd = archive_fd,
					  .stdout_fd = -1,
					  .answer_fd = -1,
					  .program = &program };
	struct imagehelper_job job = { .report_fd = -1 };
	int r;

	if (dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (helper_open(TOOL_PROGRAM, &program, e) < 0)
		return -1;
	r = imagehelper_start(&t, &job, e);
	if (r == 0)
		r = imagehelper_wait(&job, e);
	imagehelper_job_done(&job);
	return r;
}

/* A directory of ours for a context that is not one already; its name goes into .unpacked. */
static int make_place(struct building *b, char **ret_path, struct err *e)
{
	cleanup_free char *dir = NULL;
	char id[RECORD_ID_BYTES + 1];
	int r;

	if (statedir_path(b->ak, CONTEXTS_DIR, &dir, e) < 0)
		return -1;
	r = file_make_dirs(dir, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", dir);
	(void)snprintf(id, sizeof(id), "%d-%lx", getpid(), (unsigned long)time(NULL));
	*ret_path = mem_format("%s/%s", dir, id);
	if (mkdir(*ret_path, 0700) < 0)
		return err_sys(e, errno, "create '%s'", *ret_path);
	b->unpacked = mem_dup(id);
	return 0;
}

/* The repository's files without its history, as other builders take them. */
static int clone_context(struct building *b, struct err *e)
{
	cleanup_free char *path = NULL, *subdir = NULL;
	cleanup_fd int dir_fd = -1;

	if (make_place(b, &path, e) < 0 ||
	    clonestep_run(b->ak, &b->args->request->policy, b->args->context, path, &subdir, e) < 0)
		return -1;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (owner_sweep(dir_fd, ".git", e) < 0)
		return -1;
	b->context_fd =
		mount_open_in_root(dir_fd, subdir[0] ? subdir : ".", O_RDONLY | O_DIRECTORY);
	return b->context_fd < 0
		       ? err_sys(e, -b->context_fd, "open '%.200s' of the repository", subdir)
		       : 0;
}

/* An archive, or a Dockerfile without a context: the first byte of text is none of an archive's. */
static int read_stdin(struct building *b, bool may_be_archive, struct err *e)
{
	cleanup_free char *dir = NULL, *path = NULL;
	cleanup_fd int fd = -1;
	char head[512] = "";
	ssize_t n;
	int r;

	if (statedir_path(b->ak, CONTEXTS_DIR, &dir, e) < 0)
		return -1;
	r = file_make_dirs(dir, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", dir);
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : file_copy(STDIN_FILENO, fd, OP_BUILD_CONTEXT_MAX_BYTES);
	if (r < 0)
		return err_sys(e, -r, "read stdin");
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "read stdin");
	if (!may_be_archive || !memchr(head, '\0', (size_t)n)) {
		r = file_read_fd(fd, DOCKERFILE_MAX_BYTES, &b->stdin_text, &b->stdin_len);
		return r < 0 ? err_sys(e, -r, "read the Dockerfile from stdin") : 0;
	}
	if (make_place(b, &path, e) < 0)
		return -1;
	if (unpack_into(path, fd, e) < 0)
		return err_wrap(e, "the context on stdin");
	b->context_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return b->context_fd < 0 ? err_sys(e, errno, "open '%s'", path) : 0;
}

static int open_context(struct building *b, struct err *e)
{
	const char *context = b->args->context;
	bool has_stdin_file = b->args->file && strcmp(b->args->file, "-") == 0;

	if (b->args->text) {
		b->stdin_text = mem_dup(b->args->text);
		b->stdin_len = strlen(b->stdin_text);
		return 0;
	}
	if (!context)
		return err_set(
			e, ERR_INVALID,
			"what to build from is missing: agentkernel build [options] DIRECTORY "
			"('.' is this one)");
	if (strcmp(context, "-") == 0) {
		if (has_stdin_file)
			return err_set(e, ERR_INVALID,
				       "the Dockerfile and the context cannot both be stdin");
		return read_stdin(b, true, e);
	}
	if (is_git(context))
		return clone_context(b, e);
	b->context_fd = open(context, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->context_fd < 0 && errno == ENOTDIR)
		return err_set(
			e, ERR_INVALID,
			"'%s' is a file: what is named is a directory, and -f %s the Dockerfile",
			context, context);
	if (b->context_fd < 0)
		return err_sys(e, errno, "open the context '%s'", context);
	return has_stdin_file ? read_stdin(b, false, e) : 0;
}

/* ---- the Dockerfile ---- */

static int parse_file(struct building *b, const char *name, const char *text, size_t len,
		      struct err *e)
{
	if (dockerfile_parse(name, text, len, &b->file, e) < 0)
		return -1;
	return plan_make(&b->file, b->given, b->args->target, &b->plan, e);
}

/*
 * Reads a file of the context without leaving it: a repository or an archive may hold a link to a
 * file of the user, whose lines an error would show. dir_fd AT_FDCWD: a file that the user named.
 */
static int read_within(int dir_fd, const char *path, size_t max_bytes, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = -1;
	struct stat st;

	if (dir_fd == AT_FDCWD)
		return file_read_at(dir_fd, path, max_bytes, ret, ret_len);
	fd = mount_open_in_root(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? file_read_fd(fd, max_bytes, ret, ret_len) : -EINVAL;
}

static int read_file(struct building *b, struct err *e)
{
	const char *file = b->args->file;
	cleanup_free char *text = NULL, *ignore_name = NULL, *ignore_text = NULL;
	int dir_fd = file && !b->unpacked ? AT_FDCWD : b->context_fd, r;
	size_t len = 0;

	if (b->stdin_text)
		r = parse_file(b, DOCKERFILE, b->stdin_text, b->stdin_len, e);
	else {
		if (!file)
			file = DOCKERFILE;
		r = read_within(dir_fd, file, DOCKERFILE_MAX_BYTES, &text, &len);
		if (r == -ENOENT)
			return err_set(e, ERR_NOT_FOUND,
				       "there is no '%s'%s (-f names another Dockerfile)", file,
				       dir_fd == AT_FDCWD ? "" : " in the context");
		if (r < 0)
			return err_sys(e, -r, "read '%s'", file);
		r = parse_file(b, file, text, len, e);
	}
	if (r < 0 || b->context_fd < 0)
		return r;
	if (file && strcmp(file, "-") != 0) {
		ignore_name = mem_format("%s.dockerignore", file);
		r = read_within(dir_fd, ignore_name, IGNORE_FILE_MAX_BYTES, &ignore_text, &len);
	} else {
		r = -ENOENT;
	}
	if (r == -ENOENT) {
		free(ignore_name);
		ignore_name = mem_dup(".dockerignore");
		r = read_within(b->context_fd, ignore_name, IGNORE_FILE_MAX_BYTES, &ignore_text,
				&len);
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "read '%s'", ignore_name);
	return ignore_parse(ignore_name, ignore_text, len, &b->ignored, e);
}

/* ---- arguments and secrets ---- */

static int read_build_args(struct building *b, struct err *e)
{
	for (char *const *arg = b->args->build_args; arg && *arg; arg++) {
		const char *own = NULL;
		cleanup_free char *row = NULL;

		if (!strchr(*arg, '=')) {
			own = environment_get(b->ak->caller.environ_list, *arg);
			if (!own)
				continue;
			row = mem_format("%s=%s", *arg, own);
		}
		if (!keyrows_list_add(&b->given, row ? row : *arg))
			return err_set(e, ERR_LIMIT, "more than %u --build-arg", KEYROWS_LIST_MAX);
	}
	return 0;
}

/* --build-arg SOURCE_DATE_EPOCH=..., or the caller's variable. */
static int read_epoch(struct building *b, struct err *e)
{
	static const char name[] = "SOURCE_DATE_EPOCH";
	const char *text = b->given ? environment_get(b->given, name) : NULL;

	if (!text)
		text = environment_get(b->ak->caller.environ_list, name);
	if (!text || !text[0])
		return 0;
	if (!keyrows_read_number(text, EPOCH_MAX_S, &b->epoch_s))
		return err_set(e, ERR_INVALID, "%s=%.40s is no number of seconds since 1970", name,
			       text);
	return 0;
}

static int read_secret_value(struct building *b, struct builder_secret *s, const char *src,
			     const char *env, struct err *e)
{
	const char *value = NULL;
	int r;

	if (env || !src)
		value = environment_get(b->ak->caller.environ_list, env ? env : s->id);
	if (env && !value)
		return err_set(e, ERR_INVALID, "--secret: there is no variable '%.60s'", env);
	if (value) {
		s->value = mem_dup(value);
		s->len = strlen(value);
		return 0;
	}
	r = file_read_at(AT_FDCWD, src ? src : s->id, BUILDER_SECRET_MAX_BYTES, &s->value, &s->len);
	return r < 0 ? err_sys(e, -r, "--secret: read '%s'", src ? src : s->id) : 0;
}

static int read_secret(struct building *b, const char *text, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	const char *id = NULL, *src = NULL, *env = NULL;
	struct builder_secret *s = &b->secrets[b->secret_count];
	char *save = NULL;

	if (b->secret_count == BUILDER_SECRETS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u --secret", BUILDER_SECRETS_MAX);
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (strcmp(word, "id") == 0)
			id = value;
		else if (strcmp(word, "src") == 0 || strcmp(word, "source") == 0)
			src = value;
		else if (strcmp(word, "env") == 0)
			env = value;
		else if (strcmp(word, "type") != 0)
			return err_set(e, ERR_INVALID,
				       "--secret: there is no '%.40s' (id=NAME,src=FILE or "
				       "id=NAME,env=VARIABLE)",
				       word);
	}
	if (!id || !id[0] || strchr(id, '/'))
		return err_set(e, ERR_INVALID, "--secret %.60s: id=NAME is missing", text);
	s->id = mem_dup(id);
	s->value = NULL;
	b->secret_count++;
	return read_secret_value(b, s, src, env, e);
}

static int read_arguments(struct building *b, struct err *e)
{
	if (read_build_args(b, e) < 0 || read_epoch(b, e) < 0)
		return -1;
	for (char *const *secret = b->args->secrets; secret && *secret; secret++)
		if (read_secret(b, *secret, e) < 0)
			return -1;
	return 0;
}

/* ---- the policy ---- */

/* What a build has no use for is refused where somebody typed it; a file may have it for run. */
static int check_policy(const struct request *r, struct err *e)
{
	static const struct {
		enum policy_field field;
		const char *words;
	} refused[] = {
		{ POLICY_WORKSPACE, "a build sees its context alone" },
		{ POLICY_HOME, "a build sees its context alone" },
		{ POLICY_MOUNT, "a build sees its context alone (RUN --mount=type=bind)" },
		{ POLICY_DISK, "a step's disk is the store's: a build stops before that is full" },
		{ POLICY_PUBLISH, "nothing in a build is reached from outside" },
	};

	for (size_t i = 0; i < COUNT_OF(refused); i++)
		for (size_t n = 0; n < r->settings.count; n++)
			if (r->settings.list[n].field == refused[i].field &&
			    r->settings.list[n].layer == POLICY_BY_COMMAND_LINE &&
			    r->settings.list[n].kind == POLICY_ORIGIN_SETTING)
				return err_set(e, ERR_INVALID, "%s: %s", r->settings.list[n].origin,
					       refused[i].words);
	return 0;
}

static int resolve(struct building *b, const struct op_events *ev, struct err *e)
{
	struct request *r = b->args->request;
	const struct policy_setting image = { POLICY_IMAGE, "scratch", "FROM",
					      POLICY_BY_COMMAND_LINE };

	if (b->ak->view.is_for_face || r->server)
		return err_set(e, ERR_DENIED,
			       "images are built by the user, with 'agentkernel build'");
	if (check_policy(r, e) < 0)
		return -1;
	/* no image is detected for a build; each command gets its stage */
	if (settings_add(&r->settings, &image, e) < 0)
		return -1;
	return request_resolve(r, NULL, ev, e);
}

static int choose_pull(const struct request *r, enum images_pull *ret, struct err *e)
{
	*ret = IMAGES_PULL_MISSING;
	if (!r->pull || strcmp(r->pull, "missing") == 0)
		return 0;
	if (strcmp(r->pull, "always") != 0 && strcmp(r->pull, "never") != 0)
		return err_set(e, ERR_INVALID, "--pull: no '%s' (use missing, always or never)",
			       r->pull);
	*ret = r->pull[0] == 'a' ? IMAGES_PULL_ALWAYS : IMAGES_PULL_NEVER;
	return 0;
}

static void audit(const struct ak *ak, const char *verb, const char *sandbox, const char *image,
		  const char *digest, const char *why)
{
	cleanup_free char *what = mem_format("%s%s%s", verb, image ? " " : "", image ? image : "");
	const struct audit_event event = { .type = AUDITLINE_BUILD,
					   .sandbox = sandbox,
					   .what = what,
					   .result = why,
					   .detail = why ? NULL : digest };

	(void)audit_write(ak, &event);
}

static int check_name(const char *name, struct err *e)
{
	struct reference ref;

	if (reference_parse(name, &ref, e) < 0)
		return -1;
	return ref.digest[0]
		       ? err_set(e, ERR_INVALID,
				 "'%s': an image is named without a digest, which follows from "
				 "what is in it",
				 name)
		       : 0;
}

int op_commit(struct ak *ak, const struct op_commit_args *args, const struct op_events *ev,
	      struct committer_result *ret, struct err *e)
{
	int r;

	(void)ev;
	if (ak->view.is_for_face)
		return err_set(e, ERR_DENIED,
			       "images are made by the user, with 'agentkernel commit'");
	if (check_name(args->image, e) < 0)
		return -1;
	r = committer_run(ak, args->name, args->image, ret, e);
	audit(ak, "commit", args->name, args->image, ret->digest, r < 0 ? e->msg : NULL);
	return r;
}

int op_build(struct ak *ak, const struct op_build_args *args, const struct op_events *ev,
	     struct op_build_result *ret, struct err *e)
{
	struct building b = { .args = args, .ak = ak, .context_fd = -1 };
	struct builder_options o = { .ak = ak,
				     .policy = &args->request->policy,
				     .plan = &b.plan,
				     .name = args->name,
				     .has_no_cache = args->has_no_cache,
				     .shows_output = args->shows_output,
				     .is_quiet = args->request->is_quiet,
				     .say = args->say,
				     .context = args->say_context };
	int r;

	*ret = (struct op_build_result){ 0 };
	r = args->name ? check_name(args->name, e) : 0;
	if (r == 0 &&
	    (read_arguments(&b, e) < 0 || resolve(&b, ev, e) < 0 || open_context(&b, e) < 0 ||
	     read_file(&b, e) < 0 || choose_pull(args->request, &o.pull, e) < 0))
		r = -1;
	if (r == 0) {
		o.context_fd = b.context_fd;
		o.ignored = b.ignored;
		o.secrets = b.secrets;
		o.secret_count = b.secret_count;
		o.epoch_s = b.epoch_s;
		r = builder_run(&o, &ret->built, e);
		audit(ak, "build", NULL, args->name, ret->built.digest, r < 0 ? e->msg : NULL);
	}
	building_done(&b);
	return r;
}

/* ---- the image of a request ---- */

/* Tells of steps that are done, not of those that were. */
struct telling {
	const struct op_events *ev;
	char *held; /* the line about a step that may turn out to be done already */
};

static void tell(void *context, const char *line)
{
	struct telling *t = context;
	const char *word = strchr(line, ' ');

	if (word && strcmp(word, " CACHED") == 0) {
		free(take_ptr(t->held));
		return;
	}
	if (t->held)
		op_remark(t->ev, "%s", t->held);
	free(take_ptr(t->held));
	if (word && word[1] == '[')
		t->held = mem_dup(line);
	else
		op_remark(t->ev, "%s", line);
}

int op_build_for(struct request *r, const struct request_build *build, const struct op_events *ev,
		 struct err *e)
{
	struct telling telling = { .ev = ev };
	const struct op_build_args args = { .request = r,
					    .context = build->context,
					    .file = build->file,
					    .name = build->name,
					    .target = build->target,
					    .build_args = build->args };
	struct building b = { .args = &args, .ak = r->ak, .context_fd = -1 };
	struct builder_options o = { .ak = r->ak,
				     .policy = &r->policy,
				     .plan = &b.plan,
				     .name = build->name,
				     .is_quiet = r->is_quiet,
				     .say = tell,
				     .context = &telling };
	struct builder_result result = { 0 };
	int built = -1;

	if (read_arguments(&b, e) == 0 && open_context(&b, e) == 0 && read_file(&b, e) == 0) {
		o.context_fd = b.context_fd;
		o.ignored = b.ignored;
		o.epoch_s = b.epoch_s;
		built = builder_run(&o, &result, e);
		if (built < 0 || result.cached < result.steps)
			audit(r->ak, "build", NULL, build->name, result.digest,
			      built < 0 ? e->msg : NULL);
	}
	free(telling.held);
	building_done(&b);
	return built < 0 ? err_wrap(e, "build the image") : 0;
}
