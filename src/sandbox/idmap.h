#pragma once
/*
 * idmap - who the sandbox's users are on the host.
 *
 * Root callers get a private range of 65,536 ids that nobody else uses, locked while the
 * sandbox lives; root inside is the first of them and no one on the host. Ordinary callers have
 * one id to give, their own: it becomes the one user inside. For an image, whose files have many
 * owners, they may have more (sandbox/subid): then root inside is the caller and the others are
 * the range that /etc/subuid gives.
 */
#include "base/err.h"
#include "sandbox/subid.h"

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
/*
 * 0x7ffe0000 to 0x7ffefffe, behind the last sandbox's: on disk, in a directory of the host that a
 * root caller shows, the owners of files that a sandbox gave to others than its own user. They are
 * the same for all sandboxes: what one has left there, another with that directory has too.
 */
#define IDMAP_FOREIGN_ID 0x7ffe0000u

enum idmap_kind {
	IDMAP_ONE,     /* one id, the caller's */
	IDMAP_PRIVATE, /* a root caller's range, nobody else's */
	IDMAP_SUBIDS,  /* the caller's id and its range */
};

enum idmap_flags {
	IDMAP_WANTS_MANY = 1 << 0, /* more than one id where this caller has them */
};

#define IDMAP_OWNERS_MAX_BYTES 48u

struct idmap {
	enum idmap_kind kind;
	uint32_t uid, gid;           /* inside: as whom the command runs */
	uint32_t host_uid, host_gid; /* of id 0 of the range, or the caller's own */
	int lock_fd;                 /* IDMAP_PRIVATE: holds the slot while it is open anywhere */
	struct subid subid;          /* IDMAP_SUBIDS */

	/* IDMAP_PRIVATE: what idmap_open_owner_ns() would make for the files of one owner, made
	 * already */
	bool has_owner_ns;
	int owner_ns_fd;               /* borrowed */
	uint32_t owner_uid, owner_gid; /* that owner */
};

/* Chooses the map for a command that runs as uid:gid inside. */
ERR_CHECKED int idmap_init(struct idmap *m, uint32_t uid, uint32_t gid, unsigned flags,
			   struct err *e);
void idmap_done(struct idmap *m);

/* IDMAP_PRIVATE only: an id that is nobody's, inside or out, for a helper of this sandbox. */
uint32_t idmap_helper_id(const struct idmap *m);

/* In the new user namespace, IDMAP_ONE only: writes the maps of this process. */
ERR_CHECKED int idmap_write_own(const struct idmap *m, struct err *e);

/* From outside, not for IDMAP_ONE. */
ERR_CHECKED int idmap_write_for(const struct idmap *m, pid_t pid, struct err *e);

/*
 * In the new user namespace, first thing once the maps are there: become inside-root (range)
 * and drop the caller's groups. Until then file access still is the caller's.
 */
ERR_CHECKED int idmap_become_inside_root(const struct idmap *m, struct err *e);

/*
 * A user namespace in which files owned by owner_uid:owner_gid belong to the command's user, and
 * those of IDMAP_FOREIGN_ID and up to the sandbox's others; for mount_set_idmap(). The descriptor
 * is the caller's to close. IDMAP_PRIVATE only.
 */
ERR_CHECKED int idmap_open_owner_ns(const struct idmap *m, uint32_t owner_uid, uint32_t owner_gid,
				    int *ret_fd, struct err *e);

/*
 * The store of images keeps files with the owners that this caller's sandboxes see through their
 * maps: a root caller's as the image has them (mounts translate), others' mapped already.
 * A user namespace for writing and removing such files, and a name for how owners are written.
 */
ERR_CHECKED int idmap_open_store_ns(int *ret_fd, struct err *e);
ERR_CHECKED int idmap_format_owners(char out[IDMAP_OWNERS_MAX_BYTES], struct err *e);
