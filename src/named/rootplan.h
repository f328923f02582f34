#pragma once
/*
 * rootplan - collects what a named sandbox's root is mounted from: the layers of its image and its
 * checkpoints, and its disk.
 */
#include "base/err.h"
#include "protocol/rootspec.h"

#include <stdint.h>

struct ak;

struct images;
struct named;
struct policy;

struct rootplan {
	struct rootspec_image root; /* borrows from the other members */
	int disk_fd;           /* its disk, for access from outside */
	char *disk_path;
	char *layers_path;
	char *checkpoints; /* layer names, highest first, separated by ':' */
};

void rootplan_init(struct rootplan *p);
void rootplan_done(struct rootplan *p); /* may run twice */
/*
 * Changes the limit of a limited disk: 0 if it applies at once, ROOTPLAN_AT_NEXT_START if
 * rootplan_open() will apply it.
 */
#define ROOTPLAN_AT_NEXT_START 1
ERR_CHECKED int rootplan_change_disk(const struct ak *ak, const struct named *n,
				     uint64_t limit_bytes, struct err *e);

ERR_CHECKED int rootplan_open(struct rootplan *p, const struct ak *ak, const struct named *n,
			      const struct policy *policy, const struct images *image,
			      struct err *e);
