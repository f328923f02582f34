#pragma once
/*
 * images - from the name of an image to layers that can be mounted.
 *
 * An image that is in the store is one small file to read (image/record); one that is not is
 * pulled by the image helper. An image that was only detected, not asked for, gives way to `host`
 * when it cannot be had.
 */
#include "base/err.h"
#include "image/record.h"
#include "policy/policyimage.h"
#include "sandbox/imageroot.h"

#include <stdbool.h>

struct ak;

#define IMAGES_DIR "images"
#define IMAGES_PINS_DIR "pins"           /* image/storegc.c keeps what these lead to */
#define IMAGES_PIN_MIN_AGE_S 600         /* a younger one may be of a sandbox that is just made */
#define IMAGES_UNREACHABLE_MAX_AGE_S 600 /* how long a failed attempt is remembered */

enum images_pull { IMAGES_PULL_MISSING, IMAGES_PULL_ALWAYS, IMAGES_PULL_NEVER };

enum images_flags {
	IMAGES_DETECTED = 1 << 0, /* nobody asked for it */
	IMAGES_QUIET = 1 << 1,    /* no progress on stderr */
};

/* An image that is being used. While it is open nobody removes it. */
struct images {
	struct record record;
	int lock_fd;
	char *layers_path;
	char *lower;
	struct imageroot root; /* borrows from the above, but for its tree */
};

void images_init(struct images *i);
void images_done(struct images *i); /* may run twice */

struct images_request {
	const char *reference; /* as typed */
	enum images_pull pull;
	unsigned flags;
	const struct ak *ak;
};

/* Finds it or pulls it. */
ERR_CHECKED int images_open(const struct images_request *q, struct images *ret, struct err *e);

/*
 * A pin keeps an image in the store for a sandbox or checkpoint, whatever becomes of its name, and
 * finds it again. `reference` is for an image that has to be unpacked anew.
 */
ERR_CHECKED int images_pin(const struct ak *ak, const struct images *i, const char *pin,
			   struct err *e);
ERR_CHECKED int images_open_pinned(const struct ak *ak, const char *pin, const char *reference,
				   struct images *ret, struct err *e);
void images_unpin(const struct ak *ak, const char *pin);
/* Another pin on the same image. */
ERR_CHECKED int images_copy_pin(const struct ak *ak, const char *from, const char *to,
				struct err *e);
bool images_have_same_pin(const struct ak *ak, const char *a, const char *b);
/* Removes pins that are none of `used` (ended by NULL) and not just being made. */
ERR_CHECKED int images_collect_pins(const struct ak *ak, char *const *used, unsigned *ret_count,
				    struct err *e);

/* For policyimage_apply(). */
struct policyimage images_config(const struct images *i);

/*
 * The words to execute: the image's entrypoint, then the command, or the image's own when there is
 * none. `entrypoint`: NULL keeps the image's, "" drops it, anything else replaces it. The array is
 * the caller's to free, its texts are borrowed. NULL: there is nothing to execute.
 */
char **images_compose(const struct images *i, const char *entrypoint, char *const *command);

/* One name of the store. */
struct images_entry {
	char *name; /* as people type it */
	char *full_name;
	struct record record;
};

struct images_list {
	struct images_entry *entries; /* sorted by name */
	size_t count;
};

/* A store that is not there is empty. */
ERR_CHECKED int images_list(const struct ak *ak, struct images_list *ret, struct err *e);
void images_list_done(struct images_list *l); /* may run twice */

/*
 * A detected image could not be had lately: not worth another wait. `note` remembers that it could
 * not be had now.
 */
bool images_was_unreachable(const char *reference, const struct ak *ak);
void images_note_unreachable(const char *reference, const struct ak *ak);
