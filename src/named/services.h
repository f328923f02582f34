#pragma once
/*
 * services - the services of a named sandbox: the file `services` in its directory.
 *
 * A service is a command that runs as long as its sandbox does. It may have a port, on which it is
 * reached and whose first connection shows that it is ready, and services that it needs. The file
 * has them in the order in which they were added, which is a legal order of starting.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct named;

#define SERVICE_NAME_MAX_BYTES 32u
#define SERVICES_MAX 32u        /* of one sandbox */
#define SERVICE_NEEDS_MAX 32u   /* other services, of one */
#define SERVICE_WORDS_MAX 4096u /* of its command */
#define SERVICES_FILE_MAX_BYTES (1u << 20)
#define SERVICE_MAIN "main" /* the command that `create` or `run -d` was given */

struct service {
	char name[SERVICE_NAME_MAX_BYTES + 1]; /* a-z, 0-9, '-', '_', '.' */
	uint32_t port;                         /* 0: none */
	bool is_once;                          /* not started again before the sandbox is */
	uint32_t task_id;                      /* runs already as this command; 0: does not */
	char **needs;                          /* names of earlier services; or NULL */
	char **words;                          /* the command */
	char **env;                            /* "NAME=value"; or NULL */
	char *workdir;                         /* NULL: the sandbox's */
};

struct services {
	struct service *list;
	unsigned count;
};

void services_done_one(struct service *s); /* may run twice */
void services_done(struct services *s);    /* may run twice */
void services_copy_one(const struct service *from, struct service *to);

/* Replaces the service of that name, or adds one. Takes *s. ERR_INVALID, ERR_LIMIT. */
ERR_CHECKED int services_put(struct services *all, struct service *s, struct err *e);
/* ERR_NOT_FOUND; ERR_BUSY if another one needs it. */
ERR_CHECKED int services_remove(struct services *all, const char *name, struct err *e);
const struct service *services_find(const struct services *all, const char *name); /* or NULL */
bool services_is_equal(const struct service *a, const struct service *b);

/* A sandbox without the file has none. */
ERR_CHECKED int services_load(const struct named *n, struct services *ret, struct err *e);
ERR_CHECKED int services_save(const struct named *n, const struct services *s, struct err *e);
