/* account - users and groups of an image's passwd and group files; see account.h. */
#include "policy/account.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 7u
enum { FIELD_NAME = 0, FIELD_ID = 2, FIELD_GROUP_ID = 3, FIELD_MEMBERS = 3, FIELD_HOME = 5 };

struct field {
	const char *text;
	size_t len;
};

/* Splits the line at *text into fields and moves *text to the next line. False at the end. */
static bool next_line(const char **text, struct field fields[FIELDS_MAX], unsigned *ret_count)
{
	const char *p = *text;
	size_t left = strcspn(p, "\n");
	unsigned count = 0;

	if (*p == '\0')
		return false;
	*text = p + left + (p[left] == '\n');
	while (count < FIELDS_MAX) {
		const char *colon = memchr(p, ':', left);
		size_t len = colon ? (size_t)(colon - p) : left;

		fields[count++] = (struct field){ p, len };
		if (!colon)
			break;
		p += len + 1;
		left -= len + 1;
	}
	*ret_count = count;
	return true;
}

static bool field_is(const struct field *f, const char *text)
{
	return strlen(text) == f->len && memcmp(f->text, text, f->len) == 0;
}

static bool read_number(const struct field *f, uint32_t *ret)
{
	uint64_t value = 0;

	if (f->len == 0 || f->len > 9)
		return false;
	for (size_t i = 0; i < f->len; i++) {
		if (f->text[i] < '0' || f->text[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(f->text[i] - '0');
	}
	if (value > POLICY_ID_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool is_number(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static void take_home(const struct field *f, struct account *a)
{
	if (f->len > 0 && f->text[0] == '/' && f->len < sizeof(a->home))
		(void)snprintf(a->home, sizeof(a->home), "%.*s", (int)f->len, f->text);
}

/* Finds a user by name, or by number if `is_by_id`. */
static bool find_user(const char *passwd, const char *text, bool is_by_id, uint32_t id,
		      struct account *a)
{
	struct field fields[FIELDS_MAX];
	unsigned count;

	while (next_line(&passwd, fields, &count)) {
		uint32_t uid, gid;

		if (count <= FIELD_HOME || fields[FIELD_NAME].len == 0 ||
		    !read_number(&fields[FIELD_ID], &uid) ||
		    !read_number(&fields[FIELD_GROUP_ID], &gid))
			continue;
		if (is_by_id ? uid != id : !field_is(&fields[FIELD_NAME], text))
			continue;
		a->uid = uid;
		a->gid = gid;
		if (fields[FIELD_NAME].len < sizeof(a->name))
			(void)snprintf(a->name, sizeof(a->name), "%.*s",
				       (int)fields[FIELD_NAME].len, fields[FIELD_NAME].text);
		take_home(&fields[FIELD_HOME], a);
		return true;
	}
	return false;
}

static bool find_group(const char *group, const char *text, uint32_t *ret)
{
	struct field fields[FIELDS_MAX];
	unsigned count;

	while (next_line(&group, fields, &count))
		if (count > FIELD_ID && field_is(&fields[FIELD_NAME], text) &&
		    read_number(&fields[FIELD_ID], ret))
			return true;
	return false;
}

static bool is_member(const struct field *members, const char *name)
{
	const char *p = members->text;
	size_t left = members->len;

	while (left > 0) {
		const char *comma = memchr(p, ',', left);
		size_t len = comma ? (size_t)(comma - p) : left;

		if (field_is(&(struct field){ p, len }, name))
			return true;
		if (!comma)
			break;
		p += len + 1;
		left -= len + 1;
	}
	return false;
}

static void find_memberships(const char *group, struct account *a)
{
	struct field fields[FIELDS_MAX];
	unsigned count;
	uint32_t gid;

	while (a->group_count < ACCOUNT_GROUPS_MAX && next_line(&group, fields, &count))
		if (count > FIELD_MEMBERS && read_number(&fields[FIELD_ID], &gid) &&
		    gid != a->gid && is_member(&fields[FIELD_MEMBERS], a->name))
			a->groups[a->group_count++] = gid;
}

static int read_user(const char *passwd, const char *text, struct account *a, struct err *e)
{
	uint64_t id = 0;

	if (find_user(passwd, text, false, 0, a))
		return 0;
	if (!is_number(text))
		return err_set(e, ERR_NOT_FOUND, "no user '%s' inside", text);
	if (parse_count(text, 0, POLICY_ID_MAX, &id, e) < 0)
		return -1;
	if (!find_user(passwd, NULL, true, (uint32_t)id, a))
		a->uid = (uint32_t)id;
	return 0;
}

static int read_group(const char *group, const char *text, struct account *a, struct err *e)
{
	uint64_t id = 0;

	if (find_group(group, text, &a->gid))
		return 0;
	if (!is_number(text))
		return err_set(e, ERR_NOT_FOUND, "no group '%s' inside", text);
	if (parse_count(text, 0, POLICY_ID_MAX, &id, e) < 0)
		return -1;
	a->gid = (uint32_t)id;
	return 0;
}

int account_find(const char *passwd, const char *group, const char *text, struct account *ret,
		 struct err *e)
{
	cleanup_free char *user = mem_dup(text);
	struct account a = { .home = "/" };
	char *colon = strchr(user, ':');

	if (colon)
		*colon = '\0';
	if (read_user(passwd, user, &a, e) < 0)
		return -1;
	if (colon && read_group(group, colon + 1, &a, e) < 0)
		return -1;
	if (!colon && a.name[0])
		find_memberships(group, &a);
	*ret = a;
	return 0;
}
