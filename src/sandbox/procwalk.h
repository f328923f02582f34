#pragma once
/* procwalk - the processes in /proc, or the threads of one of them. */
#include <stdbool.h>

/* False: enough seen. */
typedef bool procwalk_fn(int dir_fd, const char *id, void *context);

/* 0, or -errno: the directory could not be opened. */
int procwalk_each(int at_fd, const char *path, procwalk_fn *fn, void *context);
