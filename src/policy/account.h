#pragma once
/*
 * account - users and groups as an image's own passwd and group files name them.
 *
 * The files are text from outside: a line that is not well-formed is passed over, as the C library
 * does, and ids beyond POLICY_ID_MAX do not exist for us. Pure code.
 */
#include "base/err.h"

#include <stdint.h>

#define ACCOUNT_FILE_MAX_BYTES (256u << 10) /* of each of the two files */
#define ACCOUNT_GROUPS_MAX 64u
#define ACCOUNT_NAME_MAX_BYTES 64u
#define ACCOUNT_HOME_MAX_BYTES 1024u

struct account {
	uint32_t uid, gid;
	uint32_t groups[ACCOUNT_GROUPS_MAX]; /* besides gid */
	unsigned group_count;
	char name[ACCOUNT_NAME_MAX_BYTES];
	char home[ACCOUNT_HOME_MAX_BYTES]; /* absolute, "/" when the files do not say */
};

/*
 * "name", "name:group", "uid", "uid:gid" and mixtures, as in an image's User and in --user. A
 * number needs no line in the files; without one its group is 0, as Docker has it. A named user
 * without a named group also gets the groups that list it.
 */
ERR_CHECKED int account_find(const char *passwd, const char *group, const char *text,
			     struct account *ret, struct err *e);
