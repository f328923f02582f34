/* main - the program agentkernel. */
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/title.h"
#include "cli/cli.h"
#include "worker/worker.h"
#include "state/ak.h"
#include "state/audit.h"
#include "named/named.h"
#include "named/portholder.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * A caller may have closed a standard stream. The next open() would get its number and the command
 * would use it as that stream, so the gaps are filled first.
 */
static void fill_streams(void)
{
	for (int stream = 0; stream < 3; stream++)
		if (fcntl(stream, F_GETFD) < 0)
			(void)open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY);
}

int main(int argc, char **argv)
{
	cleanup_free char **words = title_init(argv);
	CLEANUP(ak_close) struct ak ak = { 0 };

	mem_hold_group();
	fill_streams();
	/* with an inherited SIG_IGN, the kernel would reap our children before waitpid() */
	(void)signal(SIGCHLD, SIG_DFL);
	ak_open(&ak, environ);
	audit_identify_by(named_identify);
	/* "errand": the name that running servers of earlier builds use */
	if (argc == 2 && (strcmp(words[1], "worker") == 0 || strcmp(words[1], "errand") == 0))
		return worker_main(&ak);
	if (argc == 2 && strcmp(words[1], PORTHOLDER_COMMAND) == 0)
		return portholder_main(&ak);
	return cli_main(words, &ak);
}
