#pragma once
/*
 * stopall - every process inside stopped by a signal, where there is no freezer.
 *
 * Weaker than a freezer: a process sees that it was stopped, and what was stopped before goes on
 * with the others afterwards.
 */
#include <stdbool.h>

/*
 * In init: stops all processes and waits until none of them does anything more. False: one of them
 * goes on after all that time.
 */
bool stopall_begin(void);
void stopall_end(void);
