#pragma once
/*
 * daemonclient - what a command asks a running daemon, other than for a sandbox (pool/claim).
 *
 * A daemon of another build refuses, with words that say how to renew it.
 */
#include "base/err.h"

#include <stdbool.h>

struct ak;

ERR_CHECKED int daemonclient_ask_status(const struct ak *ak, bool is_json, char **ret_text,
					struct err *e);
/* Waits until the daemon has ended. */
ERR_CHECKED int daemonclient_ask_stop(const struct ak *ak, struct err *e);

struct images;
struct policy;
ERR_CHECKED int daemonclient_ask_prewarm(const struct ak *ak, const struct policy *p,
					 const struct images *image, unsigned count, struct err *e);
