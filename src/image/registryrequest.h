#pragma once
/*
 * registryrequest - one request to a registry with retries.
 *
 * Theory of operation
 *
 * The request goes to each mirror once, in order, and then to the registry itself. Any answer of a
 * mirror but the requested object leads to the next endpoint. The registry gets several attempts:
 * after a 401 we authenticate and retry at once; after no answer, an incomplete one, 408, 429 and
 * 5xx we retry after a pause that doubles, or a longer one that the registry asks for; everything
 * else is final. A registry that has never answered gets fewer attempts, because the user may have
 * no network.
 *
 * The owner starts a transfer with registryrequest_start(), runs the loop until it is done, and
 * calls registryrequest_judge() for the result.
 */
#include "base/err.h"
#include "image/credentials.h"
#include "image/endpoint.h"
#include "image/httptransfer.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRYREQUEST_WHAT_MAX_BYTES 512u
#define REGISTRYREQUEST_DENIALS_MAX 2u /* with the newest login */

/* Shared by all requests to one repository. */
struct registryrequest_site {
	struct httptransfer_loop *loop;
	struct endpoint *endpoints; /* mirrors, then the registry */
	unsigned endpoint_count;
	const char *host, *path;
	char *scope;
	const struct credentials *credentials; /* for the registry, never for a mirror */
	bool is_insecure;
	bool has_private_redirects; /* from public addresses */
	bool was_public;            /* the registry has answered from a public address */
	uint64_t connect_max_ms, stall_max_s;
};

struct registryrequest {
	struct registryrequest_site *site;
	char what[REGISTRYREQUEST_WHAT_MAX_BYTES]; /* for messages: "the tag 'x' of 'y'" */
	char *suffix;                              /* of the URL: "manifests/x" */
	unsigned endpoint;                         /* the current one */
	unsigned attempts;                         /* failed there, without progress */
	unsigned denials;
	unsigned generation; /* of the login that was used */
	bool has_login;      /* a login was used */
	bool accepts_any;    /* of 200 to 299, all mean that it was done: for a .method */
	uint64_t not_before_ms;
	struct httptransfer *exchange; /* NULL: none in progress */
};

enum registryrequest_verdict {
	REGISTRYREQUEST_ARRIVED, /* 200 or 206, complete */
	REGISTRYREQUEST_AGAIN,   /* retry, not before not_before_ms */
	REGISTRYREQUEST_STOPPED, /* by on_body, with its error */
	REGISTRYREQUEST_FAILED,
};

struct registryrequest_options {
	const char *accept;
	/* for an upload: httptransfer_options' */
	const char *method;
	int body_fd;
	uint64_t body_from, body_bytes;
	const char *const *fields;
	/*
	 * Instead of the suffix: an address that the registry named. It gets the login if it is the
	 * registry's own.
	 */
	const char *address;
	uint64_t range_from;
	uint64_t total_max_ms;
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
};

void registryrequest_init(struct registryrequest *a, struct registryrequest_site *site,
			  const char *suffix, const char *what);
void registryrequest_done(struct registryrequest *a); /* may run twice, and on a zeroed struct */

ERR_CHECKED int registryrequest_start(struct registryrequest *a,
				      const struct registryrequest_options *o, struct err *e);

/* Judges the finished transfer, which stays until the next registryrequest_start(). Sets `e` for
 * REGISTRYREQUEST_STOPPED and REGISTRYREQUEST_FAILED. */
enum registryrequest_verdict registryrequest_judge(struct registryrequest *a, struct err *e);

/* The same if the owner finds an answer wrong; `e` has the reason. */
enum registryrequest_verdict
registryrequest_try_again(struct registryrequest *a,
			  struct err *e); /* after a pause, or at the next endpoint */
bool registryrequest_leave_mirror(
	struct registryrequest *a); /* false: it was the registry itself */

void registryrequest_note_progress(struct registryrequest *a); /* resets the number of attempts */
const char *registryrequest_endpoint_name(const struct registryrequest *a);
