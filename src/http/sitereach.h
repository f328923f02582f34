#pragma once
/*
 * sitereach - sandboxes that this server relays connections to, and the connections themselves.
 *
 * A sandbox is looked up, woken and reached by a worker process (sandbox_reach), which hands out a
 * dial socket (base/dialin.h) and the connection that keeps the sandbox awake. Both are kept, so a
 * later request needs no worker: it asks init for a connection, or takes an idle one. Between
 * requests the sandbox is let go of, and it may fall asleep; the next request says HOLD first,
 * which wakes it.
 */
#include "base/err.h"
#include "http/eventcall.h"
#include "http/site.h"

#include <stdbool.h>
#include <stdint.h>

struct api;
struct bufferevent;
struct sitereach;      /* one sandbox */
struct sitereach_list; /* all of a server */

#define SITEREACH_MAX 8192u        /* sandboxes; the least recently used idle one is forgotten */
#define SITEREACH_IDLE_MAX 32u     /* idle connections to one sandbox */
#define SITEREACH_IDLE_S 20        /* how long one is kept */
#define SITEREACH_DIAL_S 30        /* for connecting */
#define SITEREACH_LET_GO_MS 1000   /* after the last request */
#define SITEREACH_LOOKS_MAX 32u    /* workers that look sandboxes up, at once */
#define SITEREACH_UNKNOWN_MS 1000u /* how long a failed lookup is remembered */

struct sitereach_list *sitereach_new(struct api *a);

/* What is known of a sandbox. */
struct sitereach_facts {
	const char *id, *owner;
	uint32_t main_port;
};
const struct sitereach_facts *sitereach_facts(const struct sitereach *r);
bool sitereach_is_public(const struct sitereach *r, uint32_t port);

/*
 * A request that waits for something: its owner initializes it with zeroes and the two functions,
 * and calls sitereach_cancel() if it is no longer interested. Exactly one of them is called, from
 * the event loop or from within the call.
 */
struct sitereach_wait {
	void *context;
	/* `status`: 502 with the reason, 404, 503. */
	void (*on_failed)(void *context, int status, const char *words);
	void (*on_looked)(void *context, struct sitereach *r);
	/* the connection is the callee's, until sitereach_leave() */
	void (*on_reached)(void *context, struct bufferevent *connection, bool was_used);

	/* private */
	struct sitereach *reach;
	struct sitereach_wait *next, **link;
	int state;
	uint32_t port;
	unsigned family;
	bool has_waited, may_reuse;
	int answer_fd, fd;
	struct event *event;
};

enum sitereach_end { SITEREACH_CLOSE, SITEREACH_KEEP };

/* Looks up whose sandbox it is, without waking it. `owner`: whose sandboxes are there; NULL: all.
 */
void sitereach_look(struct sitereach_list *l, const char *name, const char *owner,
		    struct sitereach_wait *w);
/* Connects to a port of a sandbox that was looked up; counts as a use until sitereach_leave(). */
void sitereach_connect(struct sitereach *r, uint32_t port, bool may_reuse,
		       struct sitereach_wait *w);
void sitereach_cancel(struct sitereach_wait *w);

/* Ends a use and takes the connection; can another request be sent on it? */
void sitereach_leave(struct sitereach *r, uint32_t port, struct bufferevent *connection,
		     enum sitereach_end end);

/* The main port is known once it was reached. */
uint32_t sitereach_port(const struct sitereach *r, uint32_t port);

/* Keeps the facts alive meanwhile. */
void sitereach_ref(struct sitereach *r);
void sitereach_unref(struct sitereach *r);
