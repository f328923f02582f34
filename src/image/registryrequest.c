/* registryrequest - one request to a registry with retries; see registryrequest.h. */
#include "image/registryrequest.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "image/jsonfields.h"
#include "image/registry.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define CHALLENGE_MAX_BYTES 8192u
#define WORDS_SHOWN_BYTES 160
#define RETRY_SHOWN_MAX_MS (365ull * 24 * 3600 * 1000)

void registryrequest_init(struct registryrequest *a, struct registryrequest_site *site,
			  const char *suffix, const char *what)
{
	*a = (struct registryrequest){ .site = site, .suffix = mem_dup(suffix) };
	(void)snprintf(a->what, sizeof(a->what), "%s of '%s'", what, site->path);
}

void registryrequest_done(struct registryrequest *a)
{
	httptransfer_freep(&a->exchange);
	free(take_ptr(a->suffix));
}

static struct endpoint *current(const struct registryrequest *a)
{
	return &a->site->endpoints[a->endpoint];
}

const char *registryrequest_endpoint_name(const struct registryrequest *a)
{
	return current(a)->name;
}

/* ---- sending ---- */

static void show_login(struct registryrequest *a, struct httptransfer_options *x)
{
	const struct login *login = &current(a)->login;

	a->has_login = login->kind != LOGIN_NONE;
	a->generation = login->generation;
	if (login->kind == LOGIN_TOKEN)
		x->bearer = login->token;
	if (login->kind == LOGIN_BASIC) {
		x->user = a->site->credentials->user;
		x->password = a->site->credentials->password;
	}
}

/* Is the address below the endpoint's own? Another host must not get our login. */
static bool is_own(const struct registryrequest *a, const char *address)
{
	size_t len = strlen(current(a)->base);

	return strncmp(address, current(a)->base, len) == 0 && address[len] == '/';
}

int registryrequest_start(struct registryrequest *a, const struct registryrequest_options *o,
			  struct err *e)
{
	cleanup_free char *url = NULL;
	struct httptransfer_options x = {
		.accept = o->accept,
		.method = o->method,
		.body_fd = o->body_fd,
		.body_from = o->body_from,
		.body_bytes = o->body_bytes,
		.fields = o->fields,
		.range_from = o->range_from,
		.connect_max_ms = a->site->connect_max_ms,
		.stall_max_s = a->site->stall_max_s,
		.total_max_ms = o->total_max_ms,
		.on_body = o->on_body,
		.context = o->context,
	};

	a->accepts_any = o->method;
	httptransfer_freep(&a->exchange);
	while (current(a)->is_dead)
		a->endpoint++;
	if (endpoint_settle(current(a), a->site->loop, e) < 0)
		return -1;
	url = o->address ? mem_dup(o->address)
			 : mem_format("%s/v2/%s/%s", current(a)->base, a->site->path, a->suffix);
	x.url = url;
	x.flags = (current(a)->is_unverified ? HTTPTRANSFER_UNVERIFIED : 0u) |
		  (a->site->has_private_redirects ? HTTPTRANSFER_PRIVATE_REDIRECTS : 0u);
	if (!o->address || is_own(a, o->address))
		show_login(a, &x);
	else if (a->site->was_public)
		x.flags |= HTTPTRANSFER_FROM_PUBLIC;
	return httptransfer_start(a->site->loop, &x, &a->exchange, e);
}

/* ---- messages ---- */

/* The registry's own message: {"errors":[{"message":"..."}]}; "" if there is none. */
static void find_words(const struct httptransfer *x, char *out, size_t out_size)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	const json_t *list = NULL;
	const char *text = "";
	struct err ignored;

	out[0] = '\0';
	if (jsonfields_parse(buf_text(&x->words), x->words.len, HTTPTRANSFER_WORDS_MAX_BYTES, &root,
			     &ignored) < 0 ||
	    jsonfields_get_list(root, "errors", SIZE_MAX, JSONFIELDS_OPTIONAL, &list, &ignored) <
		    0 ||
	    jsonfields_get_text(json_array_get(list, 0), "message", SIZE_MAX, JSONFIELDS_OPTIONAL,
				&text, &ignored) < 0)
		return;
	if (text[0])
		(void)snprintf(out, out_size, ": %.*s", WORDS_SHOWN_BYTES, text);
}

static void describe_denial(const struct registryrequest *a, const char *words, struct err *e)
{
	const struct credentials *c = a->site->credentials;
	bool has_any = c && c->has_any;

	(void)err_set(e, ERR_DENIED,
		      "%s denies %s (%ld%s): %s, or it does not exist; 'docker login %s' stores %s",
		      current(a)->name, a->what, a->exchange->status, words,
		      has_any ? "your credentials do not allow it" : "it needs credentials",
		      a->site->host, has_any ? "others" : "them");
}

static void describe(const struct registryrequest *a, struct err *e)
{
	const struct httptransfer *x = a->exchange;
	char words[WORDS_SHOWN_BYTES + 8];

	find_words(x, words, sizeof(words));
	if (x->status == 401 || x->status == 403)
		describe_denial(a, words, e);
	else if (x->status == 404)
		(void)err_set(e, ERR_NOT_FOUND, "%s answers 404 for %s%s", current(a)->name,
			      a->what, words);
	else if (x->status == 0)
		(void)err_set(e, ERR_REMOTE, "cannot reach %s: %s", current(a)->name,
			      httptransfer_problem(x));
	else if (x->status == 200 || x->status == 206 || httptransfer_is_redirect(x))
		(void)err_set(e, ERR_REMOTE, "%s does not deliver %s: %s", current(a)->name,
			      a->what, httptransfer_problem(x));
	else
		(void)err_set(e, ERR_REMOTE, "%s answers %ld for %s%s", current(a)->name, x->status,
			      a->what, words);
	err_sanitize(e);
}

/* ---- judging ---- */

bool registryrequest_leave_mirror(struct registryrequest *a)
{
	if (!current(a)->is_mirror)
		return false;
	a->endpoint++;
	a->attempts = 0;
	a->not_before_ms = 0;
	return true;
}

void registryrequest_note_progress(struct registryrequest *a)
{
	a->attempts = 0;
	a->denials = 0;
}

static uint64_t pause_ms(unsigned attempts)
{
	uint64_t pause = (uint64_t)REGISTRY_PAUSE_FIRST_MS << (attempts - 1);

	return pause < REGISTRY_PAUSE_MAX_MS ? pause : REGISTRY_PAUSE_MAX_MS;
}

/* `e` is the failure; it is returned if this was the last attempt. */
static enum registryrequest_verdict pause_after(struct registryrequest *a, uint64_t retry_after_ms,
						struct err *e)
{
	unsigned max =
		current(a)->has_answered ? REGISTRY_ATTEMPTS_MAX : REGISTRY_ATTEMPTS_UNANSWERED_MAX;
	char wanted[PARSE_FORMAT_MAX_BYTES], most[PARSE_FORMAT_MAX_BYTES];
	uint64_t wait_ms;

	a->attempts++;
	if (a->attempts >= max) {
		(void)err_wrap(e, "after %u attempts", a->attempts);
		return REGISTRYREQUEST_FAILED;
	}
	if (retry_after_ms > REGISTRY_RETRY_AFTER_MAX_MS) {
		(void)err_wrap(e, "asked to wait %s%s, and no more than %s is waited",
			       retry_after_ms > RETRY_SHOWN_MAX_MS ? "more than " : "",
			       parse_format_duration(retry_after_ms > RETRY_SHOWN_MAX_MS
							     ? RETRY_SHOWN_MAX_MS
							     : retry_after_ms,
						     wanted),
			       parse_format_duration(REGISTRY_RETRY_AFTER_MAX_MS, most));
		return REGISTRYREQUEST_FAILED;
	}
	wait_ms = pause_ms(a->attempts);
	a->not_before_ms = clock_now_ms() + (retry_after_ms > wait_ms ? retry_after_ms : wait_ms);
	return REGISTRYREQUEST_AGAIN;
}

enum registryrequest_verdict registryrequest_try_again(struct registryrequest *a, struct err *e)
{
	if (registryrequest_leave_mirror(a))
		return REGISTRYREQUEST_AGAIN;
	return pause_after(a, 0, e);
}

/* Joins all challenges of the answer to one value. */
static void join_challenges(const struct httptransfer *x, struct buf *out)
{
	const char *value;

	for (size_t i = 0; (value = httptransfer_get_header(x, "WWW-Authenticate", i)); i++)
		buf_addf(out, "%s%s", i ? ", " : "", value);
}

static enum registryrequest_verdict answer_challenge(struct registryrequest *a, struct err *e)
{
	cleanup_buf struct buf challenge;
	struct login_failure failure;
	struct login_request q = {
		.loop = a->site->loop,
		.scope = a->site->scope,
		.credentials = a->site->credentials,
		.is_plain = current(a)->is_plain,
		.is_insecure = a->site->is_insecure,
		.flags = (a->site->has_private_redirects ? HTTPTRANSFER_PRIVATE_REDIRECTS : 0u) |
			 (a->exchange->began_in_public ? HTTPTRANSFER_FROM_PUBLIC : 0u),
		.connect_max_ms = a->site->connect_max_ms,
		.stall_max_s = a->site->stall_max_s,
	};

	buf_init(&challenge, CHALLENGE_MAX_BYTES);
	join_challenges(a->exchange, &challenge);
	q.challenge = buf_text(&challenge);
	if (challenge.len == 0 || challenge.is_cut)
		return REGISTRYREQUEST_FAILED;
	if (login_answer(&current(a)->login, &q, &failure, e) == 0)
		return REGISTRYREQUEST_AGAIN;
	if (e->code == ERR_DENIED)
		(void)err_wrap(e, "%s denies %s ('docker login %s' stores credentials)",
			       current(a)->name, a->what, a->site->host);
	else if (e->code == ERR_REMOTE)
		(void)err_wrap(e, "%s wants credentials for %s", current(a)->name, a->what);
	return failure.is_transient ? pause_after(a, failure.retry_after_ms, e)
				    : REGISTRYREQUEST_FAILED;
}

/*
 * If a newer login exists, retries with it; the newest is renewed once. After a redirect a
 * challenge is not answered: that server could name its own realm and get the user's credentials.
 */
static enum registryrequest_verdict judge_denial(struct registryrequest *a, struct err *e)
{
	bool was_newest = a->has_login && a->generation == current(a)->login.generation;

	a->not_before_ms = 0;
	if (httptransfer_was_redirected(a->exchange))
		return REGISTRYREQUEST_FAILED;
	if (!was_newest && current(a)->login.kind != LOGIN_NONE)
		return REGISTRYREQUEST_AGAIN;
	if (was_newest && current(a)->login.kind == LOGIN_BASIC)
		return REGISTRYREQUEST_FAILED;
	if (was_newest && ++a->denials >= REGISTRYREQUEST_DENIALS_MAX)
		return REGISTRYREQUEST_FAILED;
	return answer_challenge(a, e);
}

enum registryrequest_verdict registryrequest_judge(struct registryrequest *a, struct err *e)
{
	const struct httptransfer *x = a->exchange;

	assert(x && x->is_done);
	if (x->is_ended_by_us) {
		*e = x->failure;
		return REGISTRYREQUEST_STOPPED;
	}
	current(a)->has_answered = current(a)->has_answered || x->status != 0;
	if (!a->site->was_public && !httptransfer_was_redirected(x))
		a->site->was_public = x->began_in_public;
	if (x->code == CURLE_OK &&
	    (a->accepts_any ? x->status / 100 == 2 : x->status == 200 || x->status == 206))
		return REGISTRYREQUEST_ARRIVED;
	describe(a, e);
	if (current(a)->is_mirror) {
		current(a)->is_dead = x->status == 0;
		(void)registryrequest_leave_mirror(a);
		return REGISTRYREQUEST_AGAIN;
	}
	if (x->status == 401)
		return judge_denial(a, e);
	if (httptransfer_is_transient(x))
		return pause_after(a, httptransfer_get_retry_after_ms(x), e);
	return REGISTRYREQUEST_FAILED;
}
