#pragma once
/*
 * project - what the caller's directory says about the image to use.
 */
#include <stddef.h>

#define PROJECT_FILES_MAX 4096u /* names that are looked at; a project has its files among them */

/*
 * The image for `command` (may be NULL) in the directory `cwd` (may be NULL), or NULL for none.
 * *ret_origin says what decided: "detected from 'package.json'".
 */
const char *project_detect(const char *cwd, const char *command, char *ret_origin,
			   size_t origin_size);
