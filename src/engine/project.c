/* project - detects the image for a command or a project; see project.h. */
#include "engine/project.h"

#include "base/mem.h"
#include "policy/detect.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static char **list_names(const char *cwd, size_t *ret_count)
{
	DIR *dir = opendir(cwd);
	char **names = NULL;
	size_t count = 0;
	struct dirent *entry;

	while (dir && count < PROJECT_FILES_MAX && (entry = readdir(dir))) {
		if (entry->d_type == DT_DIR)
			continue;
		names = mem_grow(names, count + 1, sizeof(*names));
		names[count++] = mem_dup(entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	*ret_count = count;
	return names;
}

const char *project_detect(const char *cwd, const char *command, char *ret_origin,
			   size_t origin_size)
{
	const char *image = command ? detect_by_command(command) : NULL;
	const char *decider = command;
	char **names = NULL;
	size_t count = 0;

	if (!image && cwd) {
		names = list_names(cwd, &count);
		image = detect_by_files(names, count, &decider);
	}
	if (image)
		(void)snprintf(ret_origin, origin_size, "detected from '%s'", decider);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return image;
}
