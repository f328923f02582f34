#pragma once
/*
 * claimed - runs a command in its own sandbox: a matching one from the pool if available
 * (pool/claim), else a new one (engine/run).
 */
#include "engine/run.h"

/* Like run_command(); ret->was_warm tells whether the sandbox came from the pool. */
ERR_CHECKED int claimed_run(const struct run_options *o, struct run_result *ret, struct err *e);
