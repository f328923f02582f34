#pragma once
/*
 * wake - connects to the supervisor of a sandbox that is to be used, also if it sleeps.
 *
 * A dozing sandbox (frozen) is woken by its supervisor when the request arrives; one that is asleep
 * (stopped) is started here. A sandbox that somebody stopped is not.
 */
#include "base/err.h"

struct ak;
struct named;

#define WAKE_WAIT_MS 30000u /* for one that is just falling asleep */

/* As control_connect(). *n is read again if the sandbox had to be started. */
ERR_CHECKED int wake_connect(const struct ak *ak, struct named *n, int *ret_fd, struct err *e);
