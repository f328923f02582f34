#pragma once
/*
 * namedfile - files of a sandbox's directory that are written whole, or not at all, and two small
 * ones: `rules` and `notices`.
 *
 * A file is written under another name and renamed, so a reader sees the old or the new one.
 * Nothing is synced: after a power cut the last seconds may be lost; a killed process loses
 * nothing.
 */
#include "named/named.h"

struct buf;
struct egress;

enum namedfile_flags {
	/* for files that need not survive a power cut: ext4 flushes a file that is renamed over
	 * another one at once, and the caller would wait for that */
	NAMEDFILE_SWAP = 1 << 0,
};

/* Replaces the file completely or not at all, also on a full disk. */
ERR_CHECKED int namedfile_replace(int dir_fd, const char *name, const struct buf *bytes,
				  unsigned flags, struct err *e);
/* Is this errno that of a full disk? */
bool namedfile_is_full(int sys);

/* Saves the rules of its creation once, before the first change; restores them into *rules. */
ERR_CHECKED int namedfile_keep_rules(const struct named *n, const struct egress *rules,
				     struct err *e);
ERR_CHECKED int namedfile_restore_rules(const struct named *n, struct egress *rules, struct err *e);

/*
 * Notices about the workspace that no client has seen (workspace/newnames), NUL-terminated; taking
 * them returns a list and removes them. A failure leaves *ret unchanged.
 */
#define NAMEDFILE_NOTICES_MAX_BYTES (256u << 10)
ERR_CHECKED int namedfile_save_notices(const struct named *n, const struct buf *texts,
				       struct err *e);
void namedfile_take_notices(const struct named *n, char ***ret);
