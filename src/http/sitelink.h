#pragma once
/*
 * sitelink - links that open one port of one sandbox, without a key, until they expire.
 *
 * A token has the time of its end and a digest of that time, the sandbox's id and the port, made
 * with a secret that only the servers of this user have. The token in a link's query becomes a
 * cookie of the sandbox's name.
 */
#include <stdbool.h>
#include <stdint.h>

#define SITELINK_SECRET_BYTES 32u
#define SITELINK_TOKEN_MAX_BYTES 64u
#define SITELINK_NAME "agentkernel_access" /* of the query's parameter and of the cookie */
#define SITELINK_MAX_S (30u * 24 * 3600)
#define SITELINK_DEFAULT_S 3600u

struct sitelink {
	unsigned char secret[SITELINK_SECRET_BYTES];
};

/* `hex`: of the secret. False: it is none. */
bool sitelink_init(struct sitelink *l, const char *hex);
void sitelink_make(const struct sitelink *l, const char *id, uint32_t port, uint64_t end_s,
		   char out[SITELINK_TOKEN_MAX_BYTES]);
/* Takes the same time for each wrong token of the right length. */
bool sitelink_check(const struct sitelink *l, const char *token, const char *id, uint32_t port,
		    uint64_t now_s);
