#pragma once
/*
 * stopall - stops every process inside with SIGSTOP, on hosts without a freezer.
 *
 * Weaker than a freezer: processes can notice that they were stopped, and stopall_end() also
 * continues processes that were stopped before.
 */
#include <stdbool.h>

/*
 * In init: stops all processes and waits until none runs. False if one is still running at the end
 * of the wait.
 */
bool stopall_begin(void);
void stopall_end(void);
