/* agentprogram - finds an agent's program on this machine; see agentprogram.h. */
#include "agents/agentprogram.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODE_MODULES "/node_modules/"
#define ENV_LINE "#!/usr/bin/env "
#define FIRST_LINE_MAX_BYTES 128

void agentprogram_done(struct agentprogram *p)
{
	free(p->path);
	for (unsigned i = 0; i < p->mount_count; i++)
		free(p->mounts[i]);
	free(p->search_path);
	*p = (struct agentprogram){ 0 };
}

/* Finds the program on the caller's PATH; returns its real path, which the caller frees. */
static char *find_on_path(const struct ak *ak, const char *program)
{
	const char *list = environment_get(ak->caller.environ_list, "PATH");
	cleanup_free char *copy = mem_dup(list ? list : ENVIRONMENT_PATH);
	char *rest = copy, *dir;

	while ((dir = strsep(&rest, ":"))) {
		cleanup_free char *path = mem_format("%s/%s", dir, program);
		struct stat st;

		if (dir[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0)
			return realpath(path, NULL);
	}
	return NULL;
}

static bool is_in_host_image(const char *path)
{
	return path_is_within(path, "/usr") || path_is_within(path, "/opt") ||
	       path_is_within(path, "/nix");
}

/* The whole node_modules, because it has the package's dependencies; else just the file. */
static char *find_package(const char *path)
{
	const char *modules = strstr(path, NODE_MODULES);

	if (!modules)
		return mem_dup(path);
	return mem_dup_bytes(path, (size_t)(modules - path) + strlen(NODE_MODULES) - 1);
}

static void add_mount(struct agentprogram *p, const char *path)
{
	cleanup_free char *package = find_package(path);

	if (is_in_host_image(path) || p->mount_count == AGENTPROGRAM_MOUNTS_MAX)
		return;
	for (unsigned i = 0; i < p->mount_count; i++)
		if (path_is_within(package, p->mounts[i]))
			return;
	p->mounts[p->mount_count++] = take_ptr(package);
}

/* "#!/usr/bin/env node": env searches PATH, so the sandbox must have the interpreter there. */
static int add_interpreter(const struct ak *ak, struct agentprogram *p, struct err *e)
{
	char line[FIRST_LINE_MAX_BYTES + 1] = "";
	cleanup_fd int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	cleanup_free char *interpreter = NULL;
	const char *name;

	if (fd < 0 || read(fd, line, FIRST_LINE_MAX_BYTES) < 0)
		return 0;
	if (strncmp(line, ENV_LINE, strlen(ENV_LINE)) != 0)
		return 0;
	name = line + strlen(ENV_LINE);
	if (strncmp(name, "-S ", 3) == 0)
		name += 3;
	line[(name - line) + (ptrdiff_t)strcspn(name, " \t\r\n")] = '\0';
	interpreter = find_on_path(ak, name);
	if (!interpreter)
		return err_set(e, ERR_NOT_FOUND, "'%s' needs '%s', which is not on PATH", p->path,
			       name);
	add_mount(p, interpreter);
	if (!is_in_host_image(interpreter))
		p->search_path =
			mem_format("%.*s:" ENVIRONMENT_PATH,
				   (int)(strrchr(interpreter, '/') - interpreter), interpreter);
	return 0;
}

int agentprogram_find(const struct ak *ak, const char *program, struct agentprogram *ret,
		      struct err *e)
{
	CLEANUP(agentprogram_done) struct agentprogram p = { 0 };

	p.path = find_on_path(ak, program);
	if (!p.path)
		return err_set(e, ERR_NOT_FOUND, "'%s' is not on PATH", program);
	add_mount(&p, p.path);
	if (add_interpreter(ak, &p, e) < 0)
		return -1;
	*ret = p;
	p = (struct agentprogram){ 0 };
	return 0;
}
