/* wall - lets tests disable single protections; see wall.h. Not part of an ordinary build. */
#include "base/wall.h"

#ifdef AGENTKERNEL_TESTING

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "AGENTKERNEL_WALL_OFF"
#define VARIABLE_MAX_BYTES 512

_Static_assert(WALL_COUNT <= 64, "a bit for each wall");

static const char *const wall_name[WALL_COUNT] = {
#define WALL_NAME(symbol, name) [WALL_##symbol] = name,
	WALLS(WALL_NAME)
#undef WALL_NAME
};

/* An unknown name is an error: the test would be meaningless. */
static uint64_t find_bit(const char *name, size_t len)
{
	for (unsigned i = 0; i < WALL_COUNT; i++)
		if (strlen(wall_name[i]) == len && strncmp(wall_name[i], name, len) == 0)
			return 1ull << i;
	fprintf(stderr, VARIABLE ": no wall '%.*s'\n", (int)len, name);
	abort();
}

static uint64_t read_variable(void)
{
	const char *names = getenv(VARIABLE);
	uint64_t off = 0;

	while (names && *names) {
		size_t len = strcspn(names, ",");

		off |= find_bit(names, len);
		names += len + (names[len] == ',');
	}
	return off;
}

bool wall_stands(enum wall wall)
{
	static bool is_read;
	static uint64_t off;

	if (!is_read) {
		off = read_variable();
		is_read = true;
	}
	return !(off & 1ull << wall);
}

char *const *wall_environment(void)
{
	static char entry[VARIABLE_MAX_BYTES];
	static char *list[] = { entry, NULL };
	const char *names = getenv(VARIABLE);

	(void)snprintf(entry, sizeof(entry), VARIABLE "=%s", names ? names : "");
	return list;
}

#endif
