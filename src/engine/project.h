#pragma once
/* project - detects the image for a command or a project. */
#include <stddef.h>

#define PROJECT_FILES_MAX 4096u /* examined names in the directory */

/*
 * The image for `command` (may be NULL) in the directory `cwd` (may be NULL), or NULL for none.
 * *ret_origin tells the reason: "detected from 'package.json'".
 */
const char *project_detect(const char *cwd, const char *command, char *ret_origin,
			   size_t origin_size);
