/* settings - a growing list of policy settings; see settings.h. */
#include "policy/settings.h"

#include "base/mem.h"

#include <stdlib.h>

void settings_done(struct settings *s)
{
	for (size_t i = 0; i < s->owned_count; i++)
		free(s->owned[i]);
	free(s->owned);
	free(s->list);
	*s = (struct settings){ 0 };
}

const char *settings_keep(struct settings *s, char *text)
{
	s->owned = mem_grow(s->owned, s->owned_count + 1, sizeof(*s->owned));
	s->owned[s->owned_count++] = text;
	return text;
}

int settings_add(struct settings *s, const struct policy_setting *setting, struct err *e)
{
	if (s->count == SETTINGS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u options", SETTINGS_MAX);
	s->list = mem_grow(s->list, s->count + 1, sizeof(*s->list));
	s->list[s->count++] = *setting;
	return 0;
}

bool settings_have(const struct settings *s, enum policy_field field)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].field == field && s->list[i].layer != POLICY_MAXIMUM)
			return true;
	return false;
}
