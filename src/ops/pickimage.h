#pragma once
/*
 * pickimage - opens the image of a request, pulling it if necessary; a detected image that is not
 * available is replaced by this machine's programs.
 */
#include "base/err.h"

#include <stdbool.h>

struct images;
struct op_events;
struct request;

/*
 * Opens the policy's image and applies its configuration to the policy; opens nothing for the
 * host's programs. `command` may be NULL.
 */
ERR_CHECKED int pickimage_open(struct request *r, const char *command, const struct op_events *ev,
			       struct images *ret, struct err *e);

/* Does this machine have a program of that name? True for anything with a '/'. */
bool pickimage_is_on_host(const char *command);
