#pragma once
/*
 * registry - the OCI distribution protocol, as a client that pulls.
 *
 * One struct registry talks to the registry of one repository: manifests by tag or digest, blobs in
 * parallel into files. It answers the registry's challenge (bearer token or basic), follows
 * redirects without taking credentials along, resumes a file that is partly there, tries again
 * after broken transfers, 429 and 5xx with growing pauses (Retry-After obeyed), and gives back only
 * bytes whose digest was checked. Progress is a byte beyond the highest that was ever reached: a
 * registry that ignores the Range and cuts every answer at the same place makes none.
 *
 * Mirrors are asked first, once each, and without credentials; whatever a mirror answers but the
 * thing itself passes on to the next, silently. Blobs and manifests by digest are safe with any
 * mirror. What a tag means is believed to the first that answers.
 */
#include "base/buf.h"
#include "base/err.h"
#include "image/credentials.h"
#include "image/manifest.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRY_PARALLEL_MAX 4u                /* blobs at once */
#define REGISTRY_ATTEMPTS_MAX 6u                /* without progress */
#define REGISTRY_ATTEMPTS_UNANSWERED_MAX 3u     /* of a host that has never answered */
#define REGISTRY_PROGRESS_MIN_BYTES (64u << 10) /* of a blob, for the attempts to count anew */
#define REGISTRY_PAUSE_FIRST_MS 250u
#define REGISTRY_PAUSE_MAX_MS 10000u
#define REGISTRY_RETRY_AFTER_MAX_MS 60000u /* a registry that wants more time is not waited for */
#define REGISTRY_CONNECT_MAX_MS 15000u
#define REGISTRY_STALL_MAX_S                                                                       \
	30u /* below HTTPTRANSFER_SPEED_MIN_BYTES a second for so long: broken */
#define REGISTRY_MANIFEST_MAX_MS 120000u /* for one attempt at a manifest, however it trickles */
#define REGISTRY_MIRRORS_MAX 16u
#define REGISTRY_WATCHED_MAX 64u

struct registry;

struct registry_options {
	const struct reference *reference; /* host and path; borrowed while the registry lives */
	const char *const *
		mirrors; /* base addresses to try before the host itself, NULL-ended; may be NULL */
	bool is_insecure; /* plain HTTP and unchecked certificates are fine. Loopback hosts may
			     always speak plain HTTP */
	bool has_private_redirects; /* a public registry may redirect to private addresses */
	uint64_t total_max_ms;      /* for everything, from registry_new() on; 0: no end */
	uint64_t answer_max_ms;     /* until registry_has_answered() is called; 0: no other end */
	uint64_t connect_max_ms;    /* 0: REGISTRY_CONNECT_MAX_MS */
	uint64_t stall_max_s;       /* 0: REGISTRY_STALL_MAX_S */
	const struct credentials *credentials; /* borrowed; may be NULL */
};

ERR_CHECKED int registry_new(const struct registry_options *o, struct registry **ret,
			     struct err *e);
/* The registry is there and has what was asked for: from now on total_max_ms alone counts. */
void registry_has_answered(struct registry *r);
void registry_free(struct registry *r);
void registry_freep(struct registry **r);

/*
 * The manifest or index called `name`, a tag or a digest. *ret_digest is that of the bytes; when
 * `name` is a digest it has been compared. ret_type is the Content-Type, "" when there was none.
 * ERR_NOT_FOUND: the registry answers that there is none. ERR_DENIED: it wants (other) credentials.
 * ERR_REMOTE: it cannot be reached or does not keep to the protocol.
 */
ERR_CHECKED int registry_get_manifest(struct registry *r, const char *name, struct buf *ret_bytes,
				      char ret_type[MANIFEST_TYPE_MAX_BYTES],
				      char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e);

enum registry_state { REGISTRY_WAITING, REGISTRY_MOVING, REGISTRY_PAUSED, REGISTRY_CHECKED };

/* One blob to fetch. */
struct registry_blob {
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
	int fd; /* read-write; holds the first bytes of an earlier attempt, or nothing. Borrowed */

	/* kept up to date */
	enum registry_state state;
	uint64_t done_bytes;
};

struct registry_events {
	void *context;
	/* A blob is complete and its digest right. -1 and `e` ends the whole fetch. */
	int (*on_blob)(void *context, unsigned index, struct err *e);
	/* At least ten times a second and whenever a watched descriptor is ready; same rule. */
	int (*on_tick)(void *context, struct err *e);
	/* Descriptors to wake up for (POLLIN), chosen anew before each wait; returns their count.
	 */
	unsigned (*get_watched)(void *context, int ret_fds[REGISTRY_WATCHED_MAX]);
};

/* All of them, in order but several at once. After a failure each file keeps its right beginning.
 */
ERR_CHECKED int registry_get_blobs(struct registry *r, struct registry_blob *blobs, unsigned count,
				   const struct registry_events *events, struct err *e);
