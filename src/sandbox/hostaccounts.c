/* hostaccounts - /etc/passwd and /etc/group of the host image; see hostaccounts.h. */
#include "sandbox/hostaccounts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 7u

/* Splits "a:b:c" in place. Returns the number of fields. */
static unsigned split(char *line, char *fields[FIELDS_MAX])
{
	unsigned count = 0;

	while (count < FIELDS_MAX && line)
		fields[count++] = strsep(&line, ":");
	return count;
}

/* Does the id (third field) belong to a package's account? root, user and nobody are our own. */
static bool is_system_account(char *const *fields, unsigned count)
{
	char *end = NULL;
	unsigned long id;

	if (count < 4 || fields[0][0] < 'a' || fields[0][0] > 'z' || strcmp(fields[0], "user") == 0)
		return false;
	id = strtoul(fields[2], &end, 10);
	return end != fields[2] && *end == '\0' && id > 0 && id <= HOSTACCOUNTS_SYSTEM_ID_MAX;
}

typedef void add_line_fn(struct buf *out, char *const *fields, unsigned count);

static void add_accounts(int host_etc_fd, const char *file, add_line_fn *add, struct buf *out)
{
	/* not allocated: mapping memory costs more than the rest */
	static char text[HOSTACCOUNTS_FILE_MAX_BYTES + 1];
	char *rest = text, *line;

	if (file_read_text(host_etc_fd, file, text, sizeof(text)) < 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		char *fields[FIELDS_MAX];
		unsigned count = split(line, fields);

		if (is_system_account(fields, count))
			add(out, fields, count);
	}
}

/* Not by buf_addf(): there are dozens of lines at every start. */
static void add_all(struct buf *out, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buf_add_text(out, texts[i]);
}

static void add_passwd_line(struct buf *out, char *const *fields, unsigned count)
{
	const char *const texts[] = { fields[0], ":*:",     fields[2], ":",       fields[3],
				      "::",      fields[5], ":",       fields[6], "\n" };

	if (count == 7)
		add_all(out, texts, COUNT_OF(texts));
}

static void add_group_line(struct buf *out, char *const *fields, unsigned count)
{
	const char *const texts[] = { fields[0], ":x:", fields[2], ":\n" };

	(void)count;
	add_all(out, texts, COUNT_OF(texts));
}

/*
 * "user" gets the uid that the command runs as. The password field is "*" because there is no
 * shadow file, and su looks for one if the field is "x".
 */
void hostaccounts_format_passwd(int host_etc_fd, const struct policy *p, struct buf *out)
{
	uint32_t uid = p->uid ? p->uid : POLICY_USER_ID;
	uint32_t gid = p->gid ? p->gid : POLICY_USER_ID;

	buf_addf(out,
		 "root:*:0:0:root:%s:/bin/sh\n"
		 "user:*:%" PRIu32 ":%" PRIu32 ":user:%s:/bin/sh\n"
		 "nobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		 p->uid == 0 ? p->home_dir : "/root", uid, gid,
		 p->uid == 0 ? "/home/user" : p->home_dir);
	add_accounts(host_etc_fd, "passwd", add_passwd_line, out);
}

void hostaccounts_format_group(int host_etc_fd, const struct policy *p, struct buf *out)
{
	buf_addf(out, "root:x:0:\nuser:x:%" PRIu32 ":\nnogroup:x:65534:\n",
		 p->gid ? p->gid : POLICY_USER_ID);
	add_accounts(host_etc_fd, "group", add_group_line, out);
}
