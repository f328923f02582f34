#pragma once
/*
 * refusal - programs that need what every sandbox refuses, and what to do instead.
 *
 * Their own messages ("Operation not permitted") do not say that the sandbox is the reason, so the
 * end of a command that failed tells it. A program is known by its name alone, as the first word of
 * the command: one that a shell or another program starts is not noticed. One table, in refusal.c;
 * docs/COMPATIBILITY.md has the same rows for people.
 */
#include "engine/run.h"

#include <stdbool.h>

struct op_events;

/* A remark if the command is such a program and failed. Returns whether it was told. */
bool refusal_explain(const struct op_events *ev, char *const *argv, const struct run_result *r);
