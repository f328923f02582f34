/*
 * runstep - RUN; see runstep.h.
 *
 * Theory of operation. The sandbox is one of engine/run, under the policy of the build's request;
 * only what a build has no use for (workspace, home, ports, the caller's variables) is taken away.
 * Before it starts, the paths that a start creates are looked up in the layers below; after it,
 * those that the layers did not have and that are still empty are removed from the upper directory,
 * and so are the files about names (/etc/hosts), which are never the image's.
 *
 * Hostile input: the upper directory, which the command wrote. No link is followed in it.
 */
#include "build/runstep.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "build/runclean.h"
#include "engine/run.h"
#include "image/layeraccounts.h"
#include "image/record.h"
#include "policy/policyimage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DENIALS_SHOWN 3u

/* ---- the sandbox ---- */

static int describe(struct rootspec_dir *dir, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	*dir = (struct rootspec_dir){
		.path = path, .device = st.st_dev, .inode = st.st_ino, .tree_fd = -1
	};
	return 0;
}

static void set_text(char **text, char *value)
{
	free(*text);
	*text = value;
}

static int add_mounts(struct policy *p, const struct runstep *s, struct err *e)
{
	p->mount_count = 0;
	p->tmpfs_count = 0;
	for (unsigned i = 0; i < s->mount_count; i++) {
		const struct runstep_mount *m = &s->mounts[i];

		if (p->mount_count == POLICY_MOUNTS_MAX || p->tmpfs_count == POLICY_TMPFS_MAX)
			return err_set(e, ERR_LIMIT, "more than %u mounts", POLICY_MOUNTS_MAX);
		if (m->source)
			p->mounts[p->mount_count++] =
				(struct policy_mount){ mem_dup(m->source), mem_dup(m->target),
						       m->is_read_only, true };
		else
			p->tmpfs[p->tmpfs_count++] =
				(struct policy_tmpfs){ mem_dup(m->target), m->size_bytes };
	}
	return 0;
}

/* The policy of this command: the request's, less what is the caller's own. */
static int shape_policy(const struct runstep *s, struct err *e)
{
	struct policy *p = s->policy;
	const char *names[RECORD_LAYERS_MAX + 1];
	cleanup_free char *list = mem_dup(s->lower), *passwd = NULL, *group = NULL;
	struct policyimage image = { .env = s->env, .user = s->user, .workdir = s->workdir };
	unsigned count = 0;
	char *save = NULL;

	for (char *name = strtok_r(list, ":", &save); name && count < COUNT_OF(names);
	     name = strtok_r(NULL, ":", &save))
		names[count++] = name;
	passwd = layeraccounts_read(s->layers_fd, names, count, "etc/passwd");
	group = layeraccounts_read(s->layers_fd, names, count, "etc/group");
	image.passwd = passwd;
	image.group = group;
	set_text(&p->workspace, NULL);
	set_text(&p->home, NULL);
	set_text(&p->user_text, NULL);
	p->publish = NULL;
	p->places = NULL;
	p->passed = NULL;
	p->passes_env = p->is_clone = p->is_workdir_asked = p->is_read_only = false;
	if (s->has_no_network)
		p->has_network = false;
	if (add_mounts(p, s, e) < 0)
		return -1;
	return policyimage_apply(p, &image, e);
}

static void explain(const struct run_result *r, const struct policy *p, struct runstep_result *ret)
{
	char amount[PARSE_FORMAT_MAX_BYTES];
	size_t len;

	switch (r->end) {
	case RUN_OUT_OF_MEMORY:
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it ran out of memory: its limit is %s (raise it with --memory)",
			       parse_format_bytes(p->memory_bytes, amount));
		return;
	case RUN_OUT_OF_PIDS:
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it had too many processes (raise the limit with --pids)");
		return;
	case RUN_TIMED_OUT:
		(void)snprintf(ret->words, sizeof(ret->words), "it took longer than --timeout");
		return;
	case RUN_OUT_OF_CPU:
		(void)snprintf(ret->words, sizeof(ret->words), "it used up its --cpu-time");
		return;
	case RUN_SIGNALLED:
		(void)snprintf(ret->words, sizeof(ret->words), "it was ended by signal %d",
			       r->signal_number);
		return;
	case RUN_SANDBOX_ENDED:
		(void)snprintf(ret->words, sizeof(ret->words), "its sandbox ended");
		return;
	case RUN_EXITED:
		break;
	}
	if (r->reached_pids)
		(void)snprintf(ret->words, sizeof(ret->words),
			       "it reached its limit of processes (raise it with --pids)");
	for (unsigned i = 0; i < r->denial_count && i < DENIALS_SHOWN; i++) {
		len = strlen(ret->words);
		(void)snprintf(ret->words + len, sizeof(ret->words) - len,
			       "%sthe network policy denied %.100s: %.100s%s%.60s%s",
			       len ? "; " : "", r->denials[i].host, r->denials[i].reason,
			       r->denials[i].fix[0] ? " (add " : "", r->denials[i].fix,
			       r->denials[i].fix[0] ? ")" : "");
	}
}

/* Takes what is not the command's out of the layer. */
static int clean(const struct runstep *s, struct err *e)
{
	const char *paths[RUNSTEP_MOUNTS_MAX + 3];
	cleanup_free char *upper = mem_format("%s/upper", s->work);
	unsigned count = 0;

	for (unsigned i = 0; i < s->mount_count; i++)
		paths[count++] = s->mounts[i].target;
	paths[count++] = s->policy->workdir;
	paths[count++] = s->policy->home_dir;
	paths[count] = NULL;
	return runclean_upper(s->layers_fd, s->lower, upper, paths, 0, e);
}

int runstep_run(const struct runstep *s, struct runstep_result *ret, struct err *e)
{
	cleanup_free char *disk = mem_format("%s/%s", s->layers_path, s->work);
	CLEANUP(run_result_done) struct run_result result = { 0 };
	struct rootspec_image root;
	const struct run_options options = {
		.policy = s->policy,
		.ak = s->ak,
		.root = &root,
		.argv = s->argv,
		.tty = STREAMS_TTY_OFF,
		.lifeline_fd = s->lifeline_fd,
	};

	rootspec_init(&root);
	root.layers = s->lower;
	if (shape_policy(s, e) < 0 ||
	    describe(&root.dirs[ROOTSPEC_LAYERS], s->layers_path, e) < 0 ||
	    describe(&root.dirs[ROOTSPEC_DISK], disk, e) < 0 ||
	    run_command(&options, &result, e) < 0)
		return -1;
	ret->exit_code = result.exit_code;
	if (result.exit_code != 0) {
		explain(&result, s->policy, ret);
		return 0;
	}
	return clean(s, e);
}
