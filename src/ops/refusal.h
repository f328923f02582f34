#pragma once
/*
 * refusal - explains failures of programs that need something every sandbox refuses.
 *
 * Their own messages ("Operation not permitted") do not name the sandbox as the reason, so we add a
 * remark after such a command fails. Only the name of the command's first word is compared:
 * programs started by a shell or another program are not recognized. One table, in refusal.c;
 * docs/COMPATIBILITY.md has the same rows for people.
 */
#include "engine/run.h"

#include <stdbool.h>

struct op_events;

/* Adds a remark if the command is such a program and failed; returns whether it did. */
bool refusal_explain(const struct op_events *ev, char *const *argv, const struct run_result *r);
