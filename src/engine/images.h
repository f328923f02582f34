#pragma once
/*
 * images - opens an image by name as layers that can be mounted.
 *
 * For an image in the store, one small file is read (image/record); the image helper pulls others.
 * If an image was only detected, ops/pickimage falls back to `host` when it is not available.
 */
#include "base/err.h"
#include "image/record.h"
#include "policy/policyimage.h"
#include "protocol/rootspec.h"

#include <stdbool.h>

struct ak;

#define IMAGES_DIR "images"
#define IMAGES_PINS_DIR "pins"   /* image/storegc.c keeps their targets */
#define IMAGES_PIN_MIN_AGE_S 600 /* younger ones may belong to a sandbox that is being created */
#define IMAGES_UNREACHABLE_MAX_AGE_S 600 /* then a failed pull is tried again */

enum images_pull { IMAGES_PULL_MISSING, IMAGES_PULL_ALWAYS, IMAGES_PULL_NEVER };

enum images_flags {
	IMAGES_DETECTED = 1 << 0, /* not requested by the user */
	IMAGES_QUIET = 1 << 1,    /* no progress on stderr */
};

/* An open image, which nobody can remove meanwhile. */
struct images {
	struct record record;
	int lock_fd;
	char *layers_path;
	char *lower;
	struct rootspec_image root; /* borrows from the above, except its tree */
};

void images_init(struct images *i);
void images_done(struct images *i); /* may run twice */

struct images_request {
	const char *reference; /* as typed */
	enum images_pull pull;
	unsigned flags;
	const struct ak *ak;
};

/* Finds or pulls the image. */
ERR_CHECKED int images_open(const struct images_request *q, struct images *ret, struct err *e);

/*
 * A pin keeps an image in the store for a sandbox or checkpoint, whatever happens to its name.
 * `reference` is needed if the image must be unpacked again.
 */
ERR_CHECKED int images_pin(const struct ak *ak, const struct images *i, const char *pin,
			   struct err *e);
ERR_CHECKED int images_open_pinned(const struct ak *ak, const char *pin, const char *reference,
				   struct images *ret, struct err *e);
void images_unpin(const struct ak *ak, const char *pin);
/* Adds another pin for the same image. */
ERR_CHECKED int images_copy_pin(const struct ak *ak, const char *from, const char *to,
				struct err *e);
bool images_have_same_pin(const struct ak *ak, const char *a, const char *b);
/* Removes pins not in `used` (NULL-terminated), except new ones. */
ERR_CHECKED int images_collect_pins(const struct ak *ak, char *const *used, unsigned *ret_count,
				    struct err *e);

/* For policyimage_apply(). */
struct policyimage images_config(const struct images *i);

/*
 * Composes the arguments: the image's entrypoint, then the command, or the image's own if there is
 * none. `entrypoint`: NULL keeps the image's, "" drops it, anything else replaces it. The caller
 * frees the array, whose texts are borrowed. NULL: there is nothing to execute.
 */
char **images_compose(const struct images *i, const char *entrypoint, char *const *command);

/* One name in the store. */
struct images_entry {
	char *name; /* short form */
	char *full_name;
	struct record record;
};

struct images_list {
	struct images_entry *entries; /* sorted by name */
	size_t count;
};

/* A missing store counts as empty. */
ERR_CHECKED int images_list(const struct ak *ak, struct images_list *ret, struct err *e);
void images_list_done(struct images_list *l); /* may run twice */

/* Remembers for a while that a detected image could not be pulled, to avoid another wait. */
bool images_was_unreachable(const char *reference, const struct ak *ak);
void images_note_unreachable(const char *reference, const struct ak *ak);
