#pragma once
/*
 * hostaccounts - /etc/passwd and /etc/group of the host image.
 *
 * root, user and nobody are the sandbox's own. The host's system accounts, which packages created
 * and their programs look up (www-data, sshd, postgres), are added with name and number, but
 * without members, passwords and comments. Accounts of people are left out.
 */
struct policy;
struct buf;

#define HOSTACCOUNTS_FILE_MAX_BYTES (256u << 10) /* of the host's file; a larger one is ignored */
#define HOSTACCOUNTS_TEXT_MAX_BYTES (64u << 10)  /* of the generated file */
#define HOSTACCOUNTS_SYSTEM_ID_MAX 999u

void hostaccounts_format_passwd(int host_etc_fd, const struct policy *p, struct buf *out);
void hostaccounts_format_group(int host_etc_fd, const struct policy *p, struct buf *out);
