#pragma once
/*
 * agentuse - counts the users of an agent's sandbox, so that the first starts it and the last stops
 * it.
 *
 * One process at a time begins or ends; in between any number use the sandbox. The state is in
 * locks on a file in the state directory, which the kernel releases when a process is killed.
 *
 * agentuse_begin()  excludes others that begin or end: make sure that the sandbox is running
 * agentuse_began()  lets others begin or end; marks the sandbox as used
 * agentuse_end()    excludes others again; true: this was the last user
 * agentuse_done()   unlocks
 */
#include "base/err.h"

#include <stdbool.h>

struct ak;

struct agentuse {
	int fd;
};

void agentuse_init(struct agentuse *u);
void agentuse_done(struct agentuse *u); /* may run twice */

/* Waits for other processes that begin or end. */
ERR_CHECKED int agentuse_begin(struct agentuse *u, const struct ak *ak, const char *name,
			       struct err *e);
void agentuse_began(struct agentuse *u);
bool agentuse_end(struct agentuse *u);
