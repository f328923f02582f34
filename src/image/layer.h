#pragma once
/*
 * layer - one layer of an image, from a tar archive to a directory that overlay can use.
 *
 * layer_unpack() reads a plain, gzip or zstd tar from a descriptor and writes its entries beneath
 * a directory, which must be empty. Whiteouts become what an overlay mounted in a user namespace
 * with "userxattr" accepts: ".wh.NAME" a character device 0:0 called NAME, ".wh..wh..opq" the
 * attribute user.overlay.opaque=y on its directory. The archive is hostile: names are relative to
 * the directory, which is also the root for symbolic links on their way, every number has a
 * maximum, and the first entry that breaks a rule ends it with the entry's name and the rule.
 *
 * Runs in a process of its own that can do nothing else (layerconfine.h), as root of a user
 * namespace in which the image's ids are mapped.
 */
#include "base/err.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define LAYER_ENTRIES_MAX (4u << 20)
#define LAYER_BYTES_MAX (64ull << 30)         /* of all files together, as read: holes count */
#define LAYER_ARCHIVE_MAX_BYTES (80ull << 30) /* decompressed: the files and what is about them */
#define LAYER_NAME_MAX_BYTES 4096u            /* with the end: the kernel's own maximum */
#define LAYER_DEPTH_MAX 512u                  /* directories above an entry */
#define LAYER_LINKS_MAX 40u                   /* on the way to an entry: the kernel's own maximum */
#define LAYER_ID_MAX 65534u
#define LAYER_DIRECTORIES_MAX (1u << 19) /* those are remembered until the end */
#define LAYER_IMPLIED_MAX 65536u
/* Bytes out for a byte in, beyond the first LAYER_RATIO_FREE_BYTES. Programs and text stay below
 * 20; zeros reach 1032 in gzip, more in zstd. What is sparse in the archive takes no bytes out. */
#define LAYER_RATIO_MAX 100u
#define LAYER_RATIO_FREE_BYTES (1ull << 30)

enum layer_flags {
	LAYER_ONE_OWNER = 1 << 0,  /* only id 0 is mapped here: everything belongs to it */
	LAYER_HASH_INPUT = 1 << 1, /* the result has the digest of what was read, too */
};

struct layer_result {
	char diff_id[REFERENCE_DIGEST_MAX_BYTES]; /* of the uncompressed archive */
	char digest[REFERENCE_DIGEST_MAX_BYTES];  /* of what was read; LAYER_HASH_INPUT */
	uint64_t archive_bytes;                   /* its size */
	uint64_t entry_count;
	uint64_t file_bytes;
	/*
	 * The layer hides all that lies below it. Overlay does not look at the attribute on a
	 * layer's own root: whoever mounts has to leave the lower layers out.
	 */
	bool is_root_opaque;
	/*
	 * Directories that no entry names but that lie above one that does ("usr" for "usr/bin/x";
	 * "." for the root), parents first. They get mode 0755 and root here; a lower layer that
	 * has them knows better: layer_settle() copies its attributes.
	 */
	char **implied;
	unsigned implied_count;
};
void layer_result_done(struct layer_result *r); /* may run twice, and on a zeroed struct */

/* ERR_INVALID: a rule is broken. ERR_LIMIT: one of the maxima. What was written until then stays;
 * the caller throws the directory away. */
ERR_CHECKED int layer_unpack(int archive_fd, int dir_fd, unsigned flags, struct layer_result *ret,
			     struct err *e);

/* The maxima above as numbers, for tests that cannot make four million entries. */
struct layer_limits {
	uint64_t entries;
	uint64_t file_bytes;
	uint64_t archive_bytes;
	uint64_t ratio;
	uint64_t ratio_free_bytes;
	unsigned directories;
	unsigned implied;
};
struct layer_limits layer_default_limits(void);
ERR_CHECKED int layer_unpack_within(int archive_fd, int dir_fd, unsigned flags,
				    const struct layer_limits *limits, struct layer_result *ret,
				    struct err *e);

/*
 * Gives each implied directory of dir_fd the mode, owner, times and attributes that it has in the
 * highest of lower_fds (highest first) that has it, stopping where a layer hides it, this one
 * included. Not for a confined process: it looks into the lower layers.
 */
ERR_CHECKED int layer_settle(int dir_fd, const int *lower_fds, unsigned lower_count,
			     char *const *implied, unsigned implied_count, struct err *e);
