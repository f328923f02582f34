#pragma once
/*
 * hostaccounts - /etc/passwd and /etc/group of the host image.
 *
 * root, user and nobody are the sandbox's own. Beside them stand this machine's system accounts,
 * which packages made and their programs look for (www-data, sshd, postgres): their names and
 * numbers, without members, passwords and comments. Accounts of people do not show.
 */
struct policy;
struct buf;

#define HOSTACCOUNTS_FILE_MAX_BYTES                                                                \
	(256u << 10) /* of this machine's; from a larger one nothing shows */
#define HOSTACCOUNTS_TEXT_MAX_BYTES (64u << 10) /* of ours */
#define HOSTACCOUNTS_SYSTEM_ID_MAX 999u

void hostaccounts_format_passwd(int host_etc_fd, const struct policy *p, struct buf *out);
void hostaccounts_format_group(int host_etc_fd, const struct policy *p, struct buf *out);
