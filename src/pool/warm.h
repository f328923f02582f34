#pragma once
/*
 * warm - the process of one pooled sandbox, which runs one command and is then discarded.
 *
 * The daemon's child. It builds the sandbox, reports that it is ready, and waits; it ends when the
 * other end of its socket is closed, by the daemon or, after a claim, by the client.
 */
#include "base/err.h"

#include <stdbool.h>

struct ak;

struct policy;

struct warm_options {
	const struct ak *ak;
	const struct policy *policy;
	const char *layers; /* required layers of the image; "": the host's programs */
	bool awaits_places; /* of the host: sandbox/placement.h */
	int channel_fd;     /* to the daemon, later to the client */
};

/* Runs in the daemon's child. */
_Noreturn void warm_main(const struct warm_options *o);
