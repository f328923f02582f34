#pragma once
/*
 * idmap - maps the sandbox's users to host ids.
 *
 * A root caller's sandbox gets a private range of 65,536 host ids, locked while the sandbox lives;
 * root inside is the first of them, an id without an account on the host. An ordinary caller has
 * only its own id, which becomes the only user inside. For an image, whose files have many owners,
 * an ordinary caller may have more (host/subid): then root inside is the caller and the other
 * ids are the range that /etc/subuid assigns.
 */
#include "base/err.h"
#include "host/subid.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define IDMAP_RANGE_COUNT 65536u
#define IDMAP_MAPPED_COUNT (IDMAP_RANGE_COUNT - 1) /* the last id is for a helper outside */
/*
 * 0x70000000 to 0x7ffdffff: above what distributions, /etc/subuid and systemd hand out, below
 * the ids that break programs with signed arithmetic.
 */
#define IDMAP_FIRST_ID 0x70000000u
#define IDMAP_SLOT_COUNT 4094u
/*
 * 0x7ffe0000 to 0x7ffefffe, after the last sandbox's range: the owners on disk of files that a
 * sandbox gave to another user inside, in a host directory that a root caller shares. These ids are
 * the same for all sandboxes, so two sandboxes that share the directory see the same owners.
 */
#define IDMAP_FOREIGN_ID 0x7ffe0000u

enum idmap_kind {
	IDMAP_ONE,     /* one id, the caller's */
	IDMAP_PRIVATE, /* a root caller's range of its own */
	IDMAP_SUBIDS,  /* the caller's id and its range in /etc/subuid */
};

enum idmap_flags {
	IDMAP_WANTS_MANY = 1 << 0, /* more than one id, if this caller has them */
};

#define IDMAP_OWNERS_MAX_BYTES 48u

struct idmap {
	enum idmap_kind kind;
	uint32_t uid, gid;           /* inside: the ids that the command runs as */
	uint32_t host_uid, host_gid; /* the host id of inside id 0, or the caller's own */
	int lock_fd;                 /* IDMAP_PRIVATE: keeps the slot locked while any process
				      * has it */
	struct subid subid;          /* IDMAP_SUBIDS */

	/* IDMAP_PRIVATE: a namespace that idmap_open_owner_ns() would create, opened in advance */
	bool has_owner_ns;
	int owner_ns_fd;               /* borrowed */
	uint32_t owner_uid, owner_gid; /* the owner it was made for */
};

/* Chooses the map for a command that runs as uid:gid inside. */
ERR_CHECKED int idmap_init(struct idmap *m, uint32_t uid, uint32_t gid, unsigned flags,
			   struct err *e);
void idmap_done(struct idmap *m);

/* IDMAP_PRIVATE only: a host id for a helper of this sandbox, unused inside and outside. */
uint32_t idmap_helper_id(const struct idmap *m);

/* IDMAP_ONE only: writes the maps of this process, which is in the new user namespace. */
ERR_CHECKED int idmap_write_own(const struct idmap *m, struct err *e);

/* All kinds but IDMAP_ONE: writes the maps of process `pid` from outside its namespace. */
ERR_CHECKED int idmap_write_for(const struct idmap *m, pid_t pid, struct err *e);

/*
 * First step in the new user namespace once it has its maps: becomes root inside and drops the
 * caller's groups. Before this call file access still uses the caller's ids.
 */
ERR_CHECKED int idmap_become_inside_root(const struct idmap *m, struct err *e);

/*
 * IDMAP_PRIVATE only: creates a user namespace for mount_set_idmap() in which files of
 * owner_uid:owner_gid belong to the command's user, and files of IDMAP_FOREIGN_ID and up to the
 * sandbox's other ids. The caller closes *ret_fd.
 */
ERR_CHECKED int idmap_open_owner_ns(const struct idmap *m, uint32_t owner_uid, uint32_t owner_gid,
				    int *ret_fd, struct err *e);

/*
 * The image store keeps files with the owners that this caller's sandboxes need: for a root caller
 * as in the image (mounts map them), for others already mapped. idmap_open_store_ns() opens a user
 * namespace for writing and removing such files, idmap_format_owners() names the scheme.
 */
ERR_CHECKED int idmap_open_store_ns(int *ret_fd, struct err *e);
ERR_CHECKED int idmap_format_owners(char out[IDMAP_OWNERS_MAX_BYTES], struct err *e);
