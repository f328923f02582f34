#pragma once
/*
 * ask - one question to a registry, until it is answered or it makes no sense to go on.
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
 * The owner starts an exchange with ask_start(), turns the loop until it is done, and lets
 * ask_judge() say what that means.
 */
#include "base/err.h"
#include "image/credentials.h"
#include "image/endpoint.h"
#include "image/exchange.h"

#include <stdbool.h>
#include <stdint.h>

#define ASK_WHAT_MAX_BYTES 512u
#define ASK_DENIALS_MAX 2u /* with a login of the newest generation */

/* What all questions to one repository share. */
struct ask_site {
	struct exchange_loop *loop;
	struct endpoint *endpoints; /* mirrors, then the registry */
	unsigned endpoint_count;
	const char *host, *path;
	char *scope;
	const struct credentials *credentials; /* for the registry, never for a mirror */
	bool is_insecure;
	bool has_private_redirects; /* from public addresses */
	uint64_t connect_max_ms, stall_max_s;
};

struct ask {
	struct ask_site *site;
	char what[ASK_WHAT_MAX_BYTES]; /* for people: "the tag 'x' of 'y'" */
	char *suffix;                  /* of the address: "manifests/x" */
	unsigned endpoint;             /* that is asked now */
	unsigned attempts;             /* that failed, there, without progress */
	unsigned denials;
	unsigned generation; /* of the login that was shown */
	bool has_login;      /* one was */
	uint64_t not_before_ms;
	struct exchange *exchange; /* NULL: none is under way */
};

enum ask_verdict {
	ASK_ARRIVED, /* 200 or 206, whole */
	ASK_AGAIN,   /* not before not_before_ms */
	ASK_STOPPED, /* by on_body, whose error it is */
	ASK_FAILED,
};

struct ask_options {
	const char *accept;
	uint64_t range_from;
	uint64_t total_max_ms;
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
};

void ask_init(struct ask *a, struct ask_site *site, const char *suffix, const char *what);
void ask_done(struct ask *a); /* may run twice, and on a zeroed struct */

ERR_CHECKED int ask_start(struct ask *a, const struct ask_options *o, struct err *e);

/* Of the exchange that is done; it stays until the next ask_start(). `e` is filled for ASK_STOPPED
 * and ASK_FAILED. */
enum ask_verdict ask_judge(struct ask *a, struct err *e);

/* The same for what only the owner can see is wrong with an answer; `e` says what. */
enum ask_verdict ask_try_again(struct ask *a, struct err *e); /* after a pause, or elsewhere */
bool ask_leave_mirror(struct ask *a); /* false: it is the registry that was asked */

void ask_note_progress(struct ask *a); /* attempts count from here */
const char *ask_endpoint_name(const struct ask *a);
