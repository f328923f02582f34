#pragma once
/*
 * pickimage - from a request to its image: pulled if need be; one that was only detected gives way
 * to this machine's own programs when it cannot be had.
 */
#include "base/err.h"

#include <stdbool.h>

struct images;
struct op_events;
struct request;

/*
 * Opens the image that the policy names, and lays what it says into the policy; none is open for
 * the host's. `command` may be NULL.
 */
ERR_CHECKED int pickimage_open(struct request *r, const char *command, const struct op_events *ev,
			       struct images *ret, struct err *e);

/* Is there a program of that name on this machine? Anything with a '/' is taken for one. */
bool pickimage_is_on_host(const char *command);
