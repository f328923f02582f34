#pragma once
/* procwalk - iterates over the processes in /proc, or the threads of one. */
#include <stdbool.h>

/* Called for each process or thread; returns false to stop the iteration. */
typedef bool procwalk_fn(int dir_fd, const char *id, void *context);

/* Returns 0, or -errno if the directory could not be opened. */
int procwalk_each(int at_fd, const char *path, procwalk_fn *fn, void *context);
