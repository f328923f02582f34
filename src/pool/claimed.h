#pragma once
/*
 * claimed - a command in a sandbox of its own: one that waited ready, where there is just the one
 * that is asked for (pool/claim), else a fresh one (engine/run).
 */
#include "engine/run.h"

/* As run_command(); ret->was_warm says which it was. */
ERR_CHECKED int claimed_run(const struct run_options *o, struct run_result *ret, struct err *e);
