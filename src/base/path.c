/* path - operations on path names as text; see path.h. */
#include "base/path.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Appends the components of `path` to the absolute path in `out`. False if ".." leaves "/". */
static bool append_parts(char *out, const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && memcmp(path, "..", 2) == 0) {
			char *slash = strrchr(out, '/');

			if (!slash)
				return false;
			*slash = '\0';
		} else if (len > 0 && !(len == 1 && *path == '.')) {
			strcat(out, "/");
			strncat(out, path, len);
		}
		path += len;
		path += *path == '/';
	}
	return true;
}

char *path_absolute(const char *base, const char *path)
{
	char *out = mem_alloc(strlen(base) + strlen(path) + 3);

	if ((path[0] != '/' && !append_parts(out, base)) || !append_parts(out, path)) {
		free(out);
		return NULL;
	}
	if (out[0] == '\0')
		strcpy(out, "/");
	return out;
}

bool path_is_within(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (strcmp(root, "/") == 0)
		return path[0] == '/';
	return strncmp(path, root, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
