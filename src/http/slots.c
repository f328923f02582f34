/* slots - limits concurrent calls; see slots.h. */
#include "http/slots.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct {
	unsigned max, owner_max, sandbox_max;
	const char *words;
} limits[] = {
	[SLOTS_CALL] = { SLOTS_CALLS_MAX, SLOTS_CALLS_OF_OWNER_MAX, SLOTS_CALLS_OF_SANDBOX_MAX,
			 "Too many calls at once" },
	[SLOTS_CARE] = { SLOTS_CARES_MAX, SLOTS_CARES_OF_OWNER_MAX, SLOTS_CARES_OF_SANDBOX_MAX,
			 "Too many calls at once" },
	[SLOTS_STREAM] = { SLOTS_STREAMS_MAX, SLOTS_STREAMS_OF_OWNER_MAX, SLOTS_STREAMS_MAX,
			   "Too many clients listen to events" },
	[SLOTS_READER] = { SLOTS_READERS_MAX, SLOTS_READERS_MAX, SLOTS_READERS_MAX,
			   "Too much is being read" },
};
_Static_assert(sizeof(limits) / sizeof(limits[0]) == SLOTS_KIND_COUNT, "a kind has no limit");

void slots_set_sandbox(struct slots_place *p, const char *name)
{
	p->sandbox[0] = '\0';
	if (name && strlen(name) < sizeof(p->sandbox))
		(void)snprintf(p->sandbox, sizeof(p->sandbox), "%s", name);
}

/* There are at most as many owners as keys. */
static struct slots_owner *find_owner(struct slots *s, const char *owner)
{
	for (unsigned i = 0; i < s->owner_count; i++)
		if (strcmp(s->owners[i].owner, owner) == 0)
			return &s->owners[i];
	assert(s->owner_count < KEYS_MAX);
	s->owners[s->owner_count].owner = owner;
	return &s->owners[s->owner_count++];
}

/* NULL: no call is about this sandbox. */
static struct slots_sandbox *find_sandbox(struct slots *s, const char *name)
{
	for (unsigned i = 0; i < s->sandbox_count; i++)
		if (strcmp(s->sandboxes[i].name, name) == 0)
			return &s->sandboxes[i];
	return NULL;
}

int slots_check(struct slots *s, const struct slots_place *p, struct err *e)
{
	const struct slots_owner *o = p->owner ? find_owner(s, p->owner) : NULL;
	const struct slots_sandbox *b = find_sandbox(s, p->sandbox);

	if (s->count[p->kind] >= limits[p->kind].max ||
	    (o && o->count[p->kind] >= limits[p->kind].owner_max))
		return err_set(e, ERR_BUSY, "%s", limits[p->kind].words);
	if (b && b->count[p->kind] >= limits[p->kind].sandbox_max)
		return err_set(e, ERR_BUSY, "%s for sandbox '%s'", limits[p->kind].words,
			       p->sandbox);
	return 0;
}

static void count_sandbox(struct slots *s, const struct slots_place *p)
{
	struct slots_sandbox *b = find_sandbox(s, p->sandbox);

	if (!b) {
		assert(s->sandbox_count < sizeof(s->sandboxes) / sizeof(s->sandboxes[0]));
		b = &s->sandboxes[s->sandbox_count++];
		*b = (struct slots_sandbox){ 0 };
		memcpy(b->name, p->sandbox, sizeof(b->name));
	}
	b->count[p->kind]++;
}

int slots_take(struct slots *s, const struct slots_place *p, struct err *e)
{
	if (slots_check(s, p, e) < 0)
		return -1;
	s->count[p->kind]++;
	if (p->owner)
		find_owner(s, p->owner)->count[p->kind]++;
	if (p->sandbox[0] && (p->kind == SLOTS_CALL || p->kind == SLOTS_CARE))
		count_sandbox(s, p);
	return 0;
}

void slots_give(struct slots *s, const struct slots_place *p)
{
	struct slots_owner *o = p->owner ? find_owner(s, p->owner) : NULL;
	struct slots_sandbox *b = p->sandbox[0] ? find_sandbox(s, p->sandbox) : NULL;

	assert(s->count[p->kind] > 0 && (!o || o->count[p->kind] > 0));
	s->count[p->kind]--;
	if (o)
		o->count[p->kind]--;
	if (!b || b->count[p->kind] == 0)
		return;
	b->count[p->kind]--;
	if (b->count[SLOTS_CALL] + b->count[SLOTS_CARE] == 0)
		*b = s->sandboxes[--s->sandbox_count];
}
