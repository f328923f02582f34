#pragma once
/*
 * detect - which image a command or a project asks for, when nobody says.
 *
 * Two tables, in detect.c: commands by name, and files of a project by name. To add a runtime, add
 * a row there. Pure code: the caller lists the directory.
 */
#include <stddef.h>

/* The image for a command's first word; NULL when it is in no row, or holds a '/'. */
const char *detect_by_command(const char *command);

/*
 * The image for a directory that holds these names. The first row of the table that matches one of
 * them wins, whatever order they come in. *ret_name is the name that decided. NULL: none does.
 */
const char *detect_by_files(char *const *names, size_t count, const char **ret_name);
