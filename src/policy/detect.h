#pragma once
/*
 * detect - chooses an image for a command or a project if the user named none.
 *
 * Two tables in detect.c: commands by name, and project files by name. To add a runtime, add a row
 * there. No system calls: the caller lists the directory.
 */
#include <stddef.h>

/* The image for a command's first word; NULL if no row has it, or if it contains a '/'. */
const char *detect_by_command(const char *command);

/*
 * The image for a directory that contains these names, or NULL. The first matching row of the table
 * wins, whatever the order of the names. *ret_name is the name that matched.
 */
const char *detect_by_files(char *const *names, size_t count, const char **ret_name);
