#pragma once
/*
 * layer - unpacks one image layer from a tar archive into a directory for overlay.
 *
 * layer_unpack() reads a plain, gzip or zstd tar from a descriptor and writes its entries to an
 * empty directory. Whiteouts become what an overlay mounted in a user namespace with "userxattr"
 * accepts: ".wh.NAME" a character device 0:0 called NAME, ".wh..wh..opq" the attribute
 * user.overlay.opaque=y on its directory. Hostile input: the archive. Names are relative to the
 * directory, which is also the root for symbolic links in paths, every number has a maximum, and
 * the first entry that violates a rule ends unpacking with the entry's name and the rule.
 *
 * Runs in a separate, confined process (layerconfine.h), as root of a user namespace that maps the
 * image's ids.
 */
#include "base/err.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define LAYER_ENTRIES_MAX (4u << 20)
#define LAYER_BYTES_MAX (64ull << 30)         /* of all files together, as read: holes count */
#define LAYER_ARCHIVE_MAX_BYTES (80ull << 30) /* decompressed: files and metadata */
#define LAYER_NAME_MAX_BYTES 4096u            /* with the NUL: the kernel's own maximum */
#define LAYER_DEPTH_MAX 512u                  /* directories above an entry */
#define LAYER_LINKS_MAX 40u                   /* in a path: the kernel's own maximum */
#define LAYER_ID_MAX 65534u
#define LAYER_DIRECTORIES_MAX (1u << 19) /* kept in memory until the end */
#define LAYER_IMPLIED_MAX 65536u
/* Ratio of output to input bytes, above the first LAYER_RATIO_FREE_BYTES. Programs and text stay
 * below 20; zeros reach 1032 in gzip, more in zstd. Holes of sparse files are not output. */
#define LAYER_RATIO_MAX 100u
#define LAYER_RATIO_FREE_BYTES (1ull << 30)

enum layer_flags {
	LAYER_ONE_OWNER = 1 << 0,  /* only id 0 is mapped: it owns everything */
	LAYER_HASH_INPUT = 1 << 1, /* also compute the digest of the input */
};

struct layer_result {
	char diff_id[REFERENCE_DIGEST_MAX_BYTES]; /* of the uncompressed archive */
	char digest[REFERENCE_DIGEST_MAX_BYTES];  /* of the input; LAYER_HASH_INPUT */
	uint64_t archive_bytes;                   /* its size */
	uint64_t entry_count;
	uint64_t file_bytes;
	/*
	 * The layer hides all below it. Overlay ignores this mark on the root of a layer: whoever
	 * mounts it must leave out the lower layers.
	 */
	bool is_root_opaque;
	/*
	 * Directories without an entry of their own but above one that has ("usr" for "usr/bin/x";
	 * "." for the root), parents first. They get mode 0755 and owner root here; layer_settle()
	 * copies the attributes of a lower layer that has them.
	 */
	char **implied;
	unsigned implied_count;
};
void layer_result_done(struct layer_result *r); /* may run twice, and on a zeroed struct */

/* ERR_INVALID: a rule was violated. ERR_LIMIT: a maximum was reached. Entries written before stay;
 * the caller discards the directory. */
ERR_CHECKED int layer_unpack(int archive_fd, int dir_fd, unsigned flags, struct layer_result *ret,
			     struct err *e);

/* The maxima above, for tests that cannot create four million entries. */
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
 * highest of lower_fds (highest first) that has it, stopping at a layer that hides it, this one
 * included. Not for a confined process: it reads the lower layers.
 */
ERR_CHECKED int layer_settle(int dir_fd, const int *lower_fds, unsigned lower_count,
			     char *const *implied, unsigned implied_count, struct err *e);
