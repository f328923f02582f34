#pragma once
/*
 * agentuse - who uses an agent's sandbox, so that it is started once and stopped by the last.
 *
 * One at a time begins or ends; in between any number use it. What holds this are locks on a file
 * in the state directory: whoever is killed lets go of them.
 *
 *	agentuse_begin()  nobody else begins or ends: make sure that it runs
 *	agentuse_began()  others may, and it is in use
 *	agentuse_end()    nobody else begins or ends again; true: nobody else uses it either
 *	agentuse_done()
 */
#include "base/err.h"

#include <stdbool.h>

struct ak;

struct agentuse {
	int fd;
};

void agentuse_init(struct agentuse *u);
void agentuse_done(struct agentuse *u); /* may run twice */

/* Waits for who is just beginning or ending. */
ERR_CHECKED int agentuse_begin(struct agentuse *u, const struct ak *ak, const char *name,
			       struct err *e);
void agentuse_began(struct agentuse *u);
bool agentuse_end(struct agentuse *u);
