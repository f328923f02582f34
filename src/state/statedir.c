/* statedir - the directories for persistent and runtime state; see statedir.h. */
#include "state/statedir.h"

#include "base/file.h"
#include "base/mem.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <unistd.h>

#define ROOT_DIR "/var/lib/agentkernel"
#define ROOT_RUNTIME_DIR "/run/agentkernel"

static const char *absolute(char *const *environ_list, const char *variable)
{
	const char *value = environ_list ? environment_get(environ_list, variable) : NULL;

	return value && value[0] == '/' ? value : NULL;
}

char *statedir_find(char *const *environ_list)
{
	const char *own = absolute(environ_list, "AGENTKERNEL_HOME");
	const char *data = absolute(environ_list, "XDG_DATA_HOME");
	const char *home = absolute(environ_list, "HOME");

	if (own)
		return mem_dup(own);
	if (geteuid() == 0)
		return mem_dup(ROOT_DIR);
	if (data)
		return mem_format("%s/agentkernel", data);
	return home ? mem_format("%s/.local/share/agentkernel", home) : NULL;
}

char *statedir_find_runtime(char *const *environ_list)
{
	const char *directory = absolute(environ_list, "XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		return mem_dup(ROOT_RUNTIME_DIR);
	return directory ? mem_format("%s/agentkernel", directory) : NULL;
}

int statedir_path(const struct ak *ak, const char *name, char **ret, struct err *e)
{
	if (!ak->state_dir)
		return err_set(e, ERR_NOT_FOUND,
			       "no directory to keep things in (set HOME or AGENTKERNEL_HOME)");
	*ret = mem_format("%s/%s", ak->state_dir, name);
	return 0;
}

int statedir_make_path(const struct ak *ak, const char *name, char **ret, struct err *e)
{
	int r = ak->state_dir ? file_make_dirs(ak->state_dir, 0700) : 0;

	if (r < 0)
		return err_sys(e, -r, "create '%s'", ak->state_dir);
	return statedir_path(ak, name, ret, e);
}
