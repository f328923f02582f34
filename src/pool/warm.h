#pragma once
/*
 * warm - the process of one sandbox that waits ready, for one command, and is then thrown away.
 *
 * The daemon's child. It builds the sandbox, says so, and waits; when whoever has the other end of
 * its socket goes, first the daemon and then the client, all is over.
 */
#include "base/err.h"

#include <stdbool.h>

struct ak;

struct policy;

struct warm_options {
	const struct ak *ak;
	const struct policy *policy;
	const char *layers; /* that the image must have; "": the host's programs */
	bool awaits_places; /* of the host: sandbox/placement.h */
	int channel_fd;     /* to the daemon, later to the client */
};

/* In the daemon's child. */
_Noreturn void warm_main(const struct warm_options *o);
