/* agenthome - writes an agent's settings into its sandbox's home; see agenthome.h. */
#include "agents/agenthome.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "named/files.h"
#include "policy/environment.h"

#include <string.h>

#define FILE_MODE 0600

/*
 * Is the path on the sandbox's own disk? A mount may be the caller's own ~/.codex, where settings
 * for inside (no nested sandbox) would be wrong for the agent outside.
 */
static bool is_own(const struct policy *policy, const char *path)
{
	if (policy->home && path_is_within(path, policy->home))
		return false;
	if (policy->workspace && path_is_within(path, policy->workspace))
		return false;
	for (unsigned i = 0; i < policy->mount_count; i++)
		if (path_is_within(path, policy->mounts[i].target))
			return false;
	return true;
}

static bool is_wanted(const struct agent_file *file, char *const *given)
{
	const char *value;

	if (!file->key)
		return true;
	value = given ? environment_get(given, file->key) : NULL;
	return value && value[0];
}

int agenthome_fill(const struct ak *ak, const char *sandbox, const struct policy *policy,
		   const struct agent *a, char *const *given, struct err *e)
{
	CLEANUP(files_close) struct files f;

	files_init(&f);
	if (!a->files[0].path)
		return 0;
	if (files_open(ak, sandbox, &f, e) < 0)
		return -1;
	for (const struct agent_file *file = a->files; file->path; file++) {
		cleanup_free char *path = mem_format("%s/%s", policy->home_dir, file->path);

		if (!is_wanted(file, given) || !is_own(policy, path))
			continue;
		if (files_write(&f, path, FILES_WRITE | FILES_NEW | FILES_PARENTS, FILE_MODE,
				file->text, strlen(file->text), e) < 0 &&
		    e->code != ERR_EXISTS)
			return -1;
	}
	return 0;
}
