#pragma once
/*
 * account - users and groups of an image's passwd and group files.
 *
 * Hostile input: the text of both files. Malformed lines are skipped, as the C library does, and so
 * are ids above POLICY_ID_MAX. No system calls.
 */
#include "base/err.h"

#include <stdint.h>

#define ACCOUNT_FILE_MAX_BYTES (256u << 10) /* of each of the two files */
#define ACCOUNT_GROUPS_MAX 64u
#define ACCOUNT_NAME_MAX_BYTES 64u
#define ACCOUNT_HOME_MAX_BYTES 1024u

struct account {
	uint32_t uid, gid;
	uint32_t groups[ACCOUNT_GROUPS_MAX]; /* supplementary groups */
	unsigned group_count;
	char name[ACCOUNT_NAME_MAX_BYTES];
	char home[ACCOUNT_HOME_MAX_BYTES]; /* absolute; "/" if the files have none */
};

/*
 * Resolves "name", "name:group", "uid", "uid:gid" or a mixture, as in an image's User and in
 * --user. A number needs no line in the files; without one its group is 0, as in Docker. A named
 * user without an explicit group also gets the supplementary groups that list it.
 */
ERR_CHECKED int account_find(const char *passwd, const char *group, const char *text,
			     struct account *ret, struct err *e);
