/*
 * buildrun - begins a RUN: its words, its variables, and what --mount shows it; see buildwork.h.
 *
 * What a mount shows is prepared before the command's process starts: a secret is a file in the
 * build's work directory, a cache a directory of its own that stays, and what is bound is a copy,
 * so that it is what .dockerignore leaves and what is written to it goes.
 */
#include "build/buildwork.h"

#include "build/cachedirs.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "build/copylist.h"
#include "build/copystep.h"
#include "state/statedir.h"
#include "tree/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_work {
	struct builder *b;
	const struct buildwork_job *job;
	const struct buildwork_stage *stage;
	struct runstep_mount mounts[RUNSTEP_MOUNTS_MAX];
	unsigned mount_count;
	/* the caches that the step uses, and those of them that one step at a time uses */
	const char *held[RUNSTEP_MOUNTS_MAX];
	bool is_held_alone[RUNSTEP_MOUNTS_MAX];
	unsigned held_count;
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

static int do_run(void *context, struct buildwork_result *ret, struct err *e)
{
	const struct run_work *w = context;
	const struct runstep s = {
		.ak = w->b->o->ak,
		.policy = w->b->o->policy,
		.layers_path = w->b->store.layers_path,
		.layers_fd = w->b->store.layers_fd,
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

	/* the locks go with this process */
	for (unsigned i = 0; i < w->held_count; i++)
		if (cachedirs_hold(w->held[i], w->is_held_alone[i] ? LOCK_EX : LOCK_SH, e) < 0)
			return -1;
	return runstep_run(&s, &ret->run, e);
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
		openat(b->store.layers_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_write_all(fd, bytes, len);

	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "write a file for the step");
	*ret_path = mem_format("%s/%s", b->store.layers_path, path);
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
			builder_chomp(script);
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
	const char *size, *mode, *sharing;
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
		else if (strcmp(word, "sharing") == 0)
			m->sharing = value;
		else if (strcmp(word, "uid") != 0 && strcmp(word, "gid") != 0)
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

static bool read_mode(const char *text, mode_t *ret)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	*ret = (mode_t)mode;
	return text[0] && !*end && mode <= 0777;
}

static int mount_secret(struct run_work *w, const struct mount_words *m, struct err *e)
{
	mode_t mode = 0400;
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
	if (m->mode && !read_mode(m->mode, &mode))
		return err_set(e, ERR_INVALID, "--mount: mode=%.20s is no octal mode, as 0400 is",
			       m->mode);
	mount = add_mount(w, e);
	(void)snprintf(name, sizeof(name), "secret-%u", w->mount_count);
	if (!mount || write_file(w->b, w->job->work, name, secret->value, secret->len, mode,
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
	mode_t mode = 0755;
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
	if (statedir_path(w->b->o->ak, CACHEDIRS_DIR, &dir, e) < 0)
		return -1;
	r = file_make_dirs(dir, 0700);
	if (r < 0)
		return err_sys(e, -r, "create '%s'", dir);
	mount->source = mem_format("%s/%s", dir, buf_text(&name));
	mount->target = mem_dup(m->target);
	mount->is_read_only = m->is_read_only;
	if (m->sharing && strcmp(m->sharing, "shared") != 0 && strcmp(m->sharing, "locked") != 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "--mount: sharing=%.20s (a cache is shared, or locked by a step)",
			       m->sharing);
	w->is_held_alone[w->held_count] = m->sharing && strcmp(m->sharing, "locked") == 0;
	w->held[w->held_count++] = mount->source;
	if (m->mode && !read_mode(m->mode, &mode))
		return err_set(e, ERR_INVALID, "--mount: mode=%.20s is no octal mode, as 0755 is",
			       m->mode);
	if (mkdir(mount->source, mode) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create a cache for the build");
	return 0;
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
	cleanup_free char *lower = NULL, *node = NULL, *empty = mem_dup(b->store.empty);
	struct runstep_mount *mount = add_mount(w, e);
	struct owner_job job = { 0 };
	char work[BUILDSTORE_WORK_MAX_BYTES];
	struct copystep copy = { .root = { b->store.layers_fd, b->store.layers_path, work, empty },
				 .context_fd = -1,
				 .where = m->from ? m->from : "the context",
				 .has_one_owner = strcmp(b->store.owners, "one") == 0,
				 .destination = "/bound" };

	if (!mount || buildstore_make_work(&b->store, work, e) < 0)
		return -1;
	if (m->from) {
		if (builder_find_from(b, m->from, &lower, &node, e) < 0)
			return -1;
		copy.from_lower = lower;
		copy.words = words;
	} else {
		if (b->o->context_fd < 0)
			return err_set(e, ERR_INVALID, "there is no context to bind from");
		if (copylist_add(&list, &options, source, e) < 0)
			return -1;
		copy.context_fd = b->o->context_fd;
		copy.list = &list;
	}
	if (owner_start(buildcopy_work, &copy, &job, e) < 0 || owner_finish(&job, e) < 0)
		return -1;
	mount->source = mem_format("%s/%s/upper/bound", b->store.layers_path, work);
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
	if (m->mode)
		return err_set(e, ERR_UNSUPPORTED,
			       "--mount: mode= of a tmpfs (chmod in the command)");
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

int buildrun_begin(struct builder *b, struct buildwork_stage *s, struct buildwork_job *j,
		   struct err *e)
{
	const struct dockerfile_instruction *i = j->instruction;
	CLEANUP(run_work_done) struct run_work w = { .b = b, .job = j, .stage = s };
	const char *empty = b->store.empty;
	cleanup_fd int inner_fd = -1;
	int ends[2], found;

	w.env = buildstate_variables(&s->built, b->o->plan);
	if (buildstore_make_work(&b->store, j->work, e) < 0 || read_network(&w, i, e) < 0 ||
	    compose_command(&w, i, e) < 0)
		return -1;
	j->key = key_of_run(b, &w, i);
	found = builder_look_up(b, s, j, e);
	if (found != 0)
		return found;
	builder_announce(b, j);
	if (add_mounts(&w, i, e) < 0)
		return -1;
	w.lower = buildstate_lower(&s->built, empty);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	inner_fd = w.lifeline_fd = ends[0];
	j->lifeline_fd = ends[1];
	j->kind = JOB_RUN;
	return builder_start_child(b, j, do_run, &w, true, e);
}
