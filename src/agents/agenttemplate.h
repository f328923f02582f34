#pragma once
/*
 * agenttemplate - recipes of images for coding agents (share/templates), and what they are called
 * when they are built here. Nothing is fetched by that name: "localhost" is no registry.
 */
#include <stddef.h>

struct agenttemplate {
	const char *name;
	const char *about;
	const char *image; /* what a build of it is called */
	const char *text;  /* follows the text of the first one, base; its own for that */
};

extern const struct agenttemplate agenttemplate_all[];
extern const size_t agenttemplate_count;

/* NULL if there is none of that name. */
const struct agenttemplate *agenttemplate_find(const char *name);

/* The whole Dockerfile; the caller frees it. */
char *agenttemplate_format(const struct agenttemplate *t);
