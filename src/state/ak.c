/* ak - who uses agentkernel in this process, and where its files are; see ak.h. */
#include "state/ak.h"

#include "policy/environment.h"
#include "state/statedir.h"

#include <stdlib.h>
#include <unistd.h>

void ak_open(struct ak *ak, char *const *environ_list)
{
	const char *home = environ_list ? environment_get(environ_list, "HOME") : NULL;

	*ak = (struct ak){
		.caller = { .home = home && home[0] == '/' ? home : NULL,
			    .environ_list = environ_list },
		.state_dir = statedir_find(environ_list),
		.runtime_dir = statedir_find_runtime(environ_list),
	};
	ak->caller.cwd = getcwd(ak->cwd, sizeof(ak->cwd));
}

void ak_close(struct ak *ak)
{
	free(ak->state_dir);
	free(ak->runtime_dir);
	ak->state_dir = ak->runtime_dir = NULL;
}
