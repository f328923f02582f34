/* slots - how much may be under way at once; see slots.h. */
#include "http/slots.h"

#include <assert.h>
#include <string.h>

static const struct {
	unsigned max, owner_max;
	const char *words;
} limits[] = {
	[SLOTS_CALL] = { SLOTS_CALLS_MAX, SLOTS_CALLS_OF_OWNER_MAX, "Too many calls at once" },
	[SLOTS_STREAM] = { SLOTS_STREAMS_MAX, SLOTS_STREAMS_OF_OWNER_MAX,
			   "Too many clients listen to events" },
	[SLOTS_READER] = { SLOTS_READERS_MAX, SLOTS_READERS_MAX, "Too much is being read" },
};
_Static_assert(sizeof(limits) / sizeof(limits[0]) == SLOTS_KIND_COUNT, "a kind has no limit");

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

int slots_check(struct slots *s, enum slots_kind kind, const char *owner, struct err *e)
{
	const struct slots_owner *o = owner ? find_owner(s, owner) : NULL;

	if (s->count[kind] >= limits[kind].max || (o && o->count[kind] >= limits[kind].owner_max))
		return err_set(e, ERR_BUSY, "%s", limits[kind].words);
	return 0;
}

int slots_take(struct slots *s, enum slots_kind kind, const char *owner, struct err *e)
{
	if (slots_check(s, kind, owner, e) < 0)
		return -1;
	s->count[kind]++;
	if (owner)
		find_owner(s, owner)->count[kind]++;
	return 0;
}

void slots_give(struct slots *s, enum slots_kind kind, const char *owner)
{
	struct slots_owner *o = owner ? find_owner(s, owner) : NULL;

	assert(s->count[kind] > 0 && (!o || o->count[kind] > 0));
	s->count[kind]--;
	if (o)
		o->count[kind]--;
}
