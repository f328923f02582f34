#pragma once
/*
 * registry - client for pulling with the OCI distribution protocol.
 *
 * A struct registry accesses one repository: manifests by tag or digest, blobs in parallel into
 * files. It authenticates (bearer token or basic), follows redirects without sending credentials
 * along, resumes a partial file, retries after broken transfers, 429 and 5xx with growing pauses
 * (or Retry-After), and returns only bytes whose digest was checked. Progress means a byte beyond
 * the highest position ever reached: a registry that ignores the Range and cuts every answer at the
 * same place makes none.
 *
 * Mirrors are tried first, once each, and without credentials; any answer of a mirror but the
 * requested object leads to the next endpoint, silently. Blobs and manifests by digest are safe
 * with any mirror. For a tag the first answer is trusted.
 */
#include "base/buf.h"
#include "base/err.h"
#include "image/credentials.h"
#include "image/manifest.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRY_PARALLEL_MAX 4u                /* concurrent blobs */
#define REGISTRY_ATTEMPTS_MAX 6u                /* without progress */
#define REGISTRY_ATTEMPTS_UNANSWERED_MAX 3u     /* for a host that has never answered */
#define REGISTRY_PROGRESS_MIN_BYTES (64u << 10) /* of a blob, to reset the number of attempts */
#define REGISTRY_PAUSE_FIRST_MS 250u
#define REGISTRY_PAUSE_MAX_MS 10000u
#define REGISTRY_RETRY_AFTER_MAX_MS 60000u /* a registry that asks for more is not waited for */
#define REGISTRY_CONNECT_MAX_MS 15000u
#define REGISTRY_STALL_MAX_S                                                                       \
	30u /* slower than HTTPTRANSFER_SPEED_MIN_BYTES per second for so long: broken */
#define REGISTRY_MANIFEST_MAX_MS 120000u /* for one attempt at a manifest, however slow */
#define REGISTRY_MIRRORS_MAX 16u
#define REGISTRY_WATCHED_MAX 64u

struct registry;

struct registry_options {
	const struct reference *reference; /* host and path; borrowed while the registry exists */
	const char *const *
		mirrors; /* base addresses to try before the host itself, NULL-ended; may be NULL */
	bool is_insecure;  /* allow plain HTTP and unverified certificates; loopback hosts may
			    * always use plain HTTP */
	bool is_pushed_to; /* asks for the right to push, too */
	bool has_private_redirects; /* a public registry may redirect to private addresses */
	uint64_t total_max_ms;      /* for everything, from registry_new() on; 0: no limit */
	uint64_t answer_max_ms;     /* until registry_has_answered() is called; 0: no such limit */
	uint64_t connect_max_ms;    /* 0: REGISTRY_CONNECT_MAX_MS */
	uint64_t stall_max_s;       /* 0: REGISTRY_STALL_MAX_S */
	const struct credentials *credentials; /* borrowed; may be NULL */
};

ERR_CHECKED int registry_new(const struct registry_options *o, struct registry **ret,
			     struct err *e);
/* The registry has answered with the requested object: from now on only total_max_ms applies. */
void registry_has_answered(struct registry *r);
void registry_free(struct registry *r);
void registry_freep(struct registry **r);

/* For image/upload. */
struct registryrequest_site *registry_get_site(struct registry *r);

/* Pauses, with ticks. */
ERR_CHECKED int registry_pause_until(struct registry *r, uint64_t not_before_ms, struct err *e);

/*
 * Downloads the manifest or index `name`, a tag or a digest. *ret_digest is the digest of the
 * bytes, compared if `name` is a digest. ret_type is the Content-Type, "" if there was none.
 * ERR_NOT_FOUND: it does not exist. ERR_DENIED: the registry requires (other) credentials.
 * ERR_REMOTE: it cannot be reached or violates the protocol.
 */
ERR_CHECKED int registry_get_manifest(struct registry *r, const char *name, struct buf *ret_bytes,
				      char ret_type[MANIFEST_TYPE_MAX_BYTES],
				      char ret_digest[REFERENCE_DIGEST_MAX_BYTES], struct err *e);

enum registry_state { REGISTRY_WAITING, REGISTRY_MOVING, REGISTRY_PAUSED, REGISTRY_CHECKED };

/* One blob to download. */
struct registry_blob {
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
	int fd; /* read-write; has the first bytes from an earlier attempt, or none. Borrowed */

	/* updated during the download */
	enum registry_state state;
	uint64_t done_bytes;
};

struct registry_events {
	void *context;
	/* A blob is complete and its digest is right. -1 with `e` ends the whole download. */
	int (*on_blob)(void *context, unsigned index, struct err *e);
	/* At least ten times a second and when a watched descriptor is ready; likewise. */
	int (*on_tick)(void *context, struct err *e);
	/* Descriptors to wait for (POLLIN), queried before each wait; returns their number. */
	unsigned (*get_watched)(void *context, int ret_fds[REGISTRY_WATCHED_MAX]);
};

/* Downloads all blobs, several at once. After a failure each file keeps its valid beginning. */
ERR_CHECKED int registry_get_blobs(struct registry *r, struct registry_blob *blobs, unsigned count,
				   const struct registry_events *events, struct err *e);
