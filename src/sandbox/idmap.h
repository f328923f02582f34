#pragma once
/*
 * idmap - who the sandbox's users are on the host.
 *
 * Root callers get a private range of 65,536 ids that nobody else uses, locked while the
 * sandbox lives; root inside is the first of them and no one on the host. Ordinary callers have
 * one id to give, their own: it becomes the one user inside.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define IDMAP_RANGE_COUNT 65536u
#define IDMAP_MAPPED_COUNT (IDMAP_RANGE_COUNT - 1) /* the last one is a helper's, outside */
/*
 * 0x70000000 to 0x7ffdffff: above what distributions, /etc/subuid and systemd hand out, below
 * the ids that break programs with signed arithmetic.
 */
#define IDMAP_FIRST_ID 0x70000000u
#define IDMAP_SLOT_COUNT 4094u

struct idmap {
	bool is_range;
	uint32_t uid, gid;           /* inside: as whom the command runs */
	uint32_t host_uid, host_gid; /* of id 0 of the range, or the caller's own */
	int lock_fd;                 /* range: holds the slot while it is open anywhere */
};

/* Chooses the map for a command that runs as uid:gid inside. */
ERR_CHECKED int idmap_init(struct idmap *m, uint32_t uid, uint32_t gid, struct err *e);
void idmap_done(struct idmap *m);

/* Ranges only: an id that is nobody's, inside or out, for a helper of this sandbox. */
uint32_t idmap_helper_id(const struct idmap *m);

/* In the new user namespace, single id only: writes the maps of this process. */
ERR_CHECKED int idmap_write_own(const struct idmap *m, struct err *e);

/* From outside, ranges only. */
ERR_CHECKED int idmap_write_for(const struct idmap *m, pid_t pid, struct err *e);

/*
 * In the new user namespace, first thing once the maps are there: become inside-root (range)
 * and drop the caller's groups. Until then file access still is the caller's.
 */
ERR_CHECKED int idmap_become_inside_root(const struct idmap *m, struct err *e);

/*
 * A user namespace in which files owned by owner_uid:owner_gid belong to the command's user;
 * for mount_set_idmap(). The descriptor is the caller's to close. Ranges only.
 */
ERR_CHECKED int idmap_open_owner_ns(const struct idmap *m, uint32_t owner_uid, uint32_t owner_gid,
				    int *ret_fd, struct err *e);
