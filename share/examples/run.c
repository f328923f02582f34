#include <agentkernel.h>
#include <stdio.h>

static void print(void *context, int stream, const char *bytes, size_t length)
{
	fwrite(bytes, 1, length, stream == 1 ? stdout : context);
}

int main(void)
{
	const char *words[] = { "sh", "-c", "echo hello; exit 3", NULL };
	struct agentkernel_command command = { .size = sizeof(command), .words = words };
	struct agentkernel_events events = { .size = sizeof(events), .output = print, .context = stderr };
	struct agentkernel_result result = { .size = sizeof(result) };
	struct agentkernel_error error;
	agentkernel *ak = NULL;

	if (agentkernel_open(NULL, &ak, &error) < 0 || agentkernel_run(ak, &command, &events, &result, &error) < 0)
		return fprintf(stderr, "%s\n", error.message), 125;
	agentkernel_free(result.json);
	agentkernel_close(ak);
	return result.exit_code;
}
