#pragma once
/*
 * halt - ends a running sandbox: through its supervisor, or by killing that.
 */
#include "named/named.h"

/*
 * Asks the supervisor to end the sandbox, whose processes have timeout_ms after SIGTERM. Returns
 * when it has cleaned up: we hold the lock.
 */
ERR_CHECKED int halt_ask(struct named *n, uint64_t timeout_ms, struct err *e);

/*
 * Ends a sandbox through its supervisor if that answers within CONTROL_PROBE_MS; else kills the
 * supervisor and the processes in the sandbox's cgroups. Processes that have not ended when this
 * returns still hold the lock. ERR_NOT_FOUND: it is not running.
 */
ERR_CHECKED int halt_end(struct named *n, struct err *e);

/* The same, then takes the lock and records the end in the run file. */
ERR_CHECKED int halt_kill(const struct ak *ak, struct named *n, struct err *e);

/*
 * Cleans up after a killed supervisor. The caller holds the lock, so nobody runs the sandbox.
 * False: processes of the last run still exist, and the kernel does not end them.
 */
bool halt_clean_up(const struct ak *ak, const struct named *n);
