#pragma once
/*
 * registryrequest - one question to a registry, until it is answered or it makes no sense to go on.
 *
 * Theory of operation
 *
 * The question goes to each mirror once, in order, and then to the registry itself. Whatever a
 * mirror answers but the thing itself passes on to the next place. The registry is given several
 * attempts: a 401 is answered and asked again at once; no answer, half of one, 408, 429 and 5xx
 * are asked again after a pause that doubles, or the longer one that the registry names; everything
 * else is final. A registry that has never answered is given fewer attempts: somebody without a
 * network waits.
 *
 * The owner starts an exchange with registryrequest_start(), turns the loop until it is done, and
 * lets registryrequest_judge() say what that means.
 */
#include "base/err.h"
#include "image/credentials.h"
#include "image/endpoint.h"
#include "image/httptransfer.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRYREQUEST_WHAT_MAX_BYTES 512u
#define REGISTRYREQUEST_DENIALS_MAX 2u /* with a login of the newest generation */

/* What all questions to one repository share. */
struct registryrequest_site {
	struct httptransfer_loop *loop;
	struct endpoint *endpoints; /* mirrors, then the registry */
	unsigned endpoint_count;
	const char *host, *path;
	char *scope;
	const struct credentials *credentials; /* for the registry, never for a mirror */
	bool is_insecure;
	bool has_private_redirects; /* from public addresses */
	uint64_t connect_max_ms, stall_max_s;
};

struct registryrequest {
	struct registryrequest_site *site;
	char what[REGISTRYREQUEST_WHAT_MAX_BYTES]; /* for people: "the tag 'x' of 'y'" */
	char *suffix;                              /* of the address: "manifests/x" */
	unsigned endpoint;                         /* that is asked now */
	unsigned attempts;                         /* that failed, there, without progress */
	unsigned denials;
	unsigned generation; /* of the login that was shown */
	bool has_login;      /* one was */
	uint64_t not_before_ms;
	struct httptransfer *exchange; /* NULL: none is under way */
};

enum registryrequest_verdict {
	REGISTRYREQUEST_ARRIVED, /* 200 or 206, whole */
	REGISTRYREQUEST_AGAIN,   /* not before not_before_ms */
	REGISTRYREQUEST_STOPPED, /* by on_body, whose error it is */
	REGISTRYREQUEST_FAILED,
};

struct registryrequest_options {
	const char *accept;
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

/* Of the exchange that is done; it stays until the next registryrequest_start(). `e` is filled for
 * REGISTRYREQUEST_STOPPED and REGISTRYREQUEST_FAILED. */
enum registryrequest_verdict registryrequest_judge(struct registryrequest *a, struct err *e);

/* The same for what only the owner can see is wrong with an answer; `e` says what. */
enum registryrequest_verdict
registryrequest_try_again(struct registryrequest *a,
			  struct err *e); /* after a pause, or elsewhere */
bool registryrequest_leave_mirror(
	struct registryrequest *a); /* false: it is the registry that was asked */

void registryrequest_note_progress(struct registryrequest *a); /* attempts count from here */
const char *registryrequest_endpoint_name(const struct registryrequest *a);
