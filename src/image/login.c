/* login - authenticates at a registry; see login.h. */
#include "image/login.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "image/challenge.h"
#include "image/jsonfields.h"
#include "image/reference.h"

#include <assert.h>
#include <string.h>

#define CLIENT_ID "agentkernel"
#define FORM_MAX_BYTES (64u << 10)

void login_done(struct login *l)
{
	credentials_wipe(take_ptr(l->token));
	l->kind = LOGIN_NONE;
}

static void url_freep(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void curl_textp(char **text)
{
	curl_free(*text);
}

/* ---- the token server ---- */

static int check_realm(CURLU *url, const struct login_request *q, struct err *e)
{
	CLEANUP(curl_textp) char *scheme = NULL;
	CLEANUP(curl_textp) char *host = NULL;

	if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0))
		return err_set(e, ERR_REMOTE, "its token service is not an address");
	if (strcmp(scheme, "https") == 0)
		return 0;
	if (strcmp(scheme, "http") == 0 && q->is_plain &&
	    (q->is_insecure || reference_is_loopback(host)))
		return 0;
	return err_set(e, ERR_REMOTE,
		       "its token service is %s on '%.128s', and credentials go over https only",
		       scheme, host);
}

static void add_query(CURLU *url, const char *name, const char *value)
{
	cleanup_free char *pair = mem_format("%s=%s", name, value);
	CURLUcode code =
		curl_url_set(url, CURLUPART_QUERY, pair, CURLU_APPENDQUERY | CURLU_URLENCODE);

	assert(code == CURLUE_OK); /* only out of memory */
}

/* The realm's URL, with the parameters if it is a GET. */
static int make_address(const struct challenge *c, const struct login_request *q, char **ret,
			struct err *e)
{
	CLEANUP(url_freep) CURLU *url = curl_url();
	CLEANUP(curl_textp) char *text = NULL;
	bool is_form = q->credentials && q->credentials->identity_token;

	if (!url || curl_url_set(url, CURLUPART_URL, c->realm, CURLU_DISALLOW_USER))
		return err_set(e, ERR_REMOTE, "its token service is not an address");
	if (check_realm(url, q, e) < 0)
		return -1;
	(void)curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
	if (!is_form && c->service[0])
		add_query(url, "service", c->service);
	if (!is_form)
		add_query(url, "scope", q->scope);
	if (!is_form && q->credentials && q->credentials->user)
		add_query(url, "account", q->credentials->user);
	if (curl_url_get(url, CURLUPART_URL, &text, 0))
		return err_set(e, ERR_REMOTE, "its token service is not an address");
	*ret = mem_dup(text);
	return 0;
}

static void add_form(struct buf *form, const char *name, const char *value)
{
	char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));

	assert(escaped);
	buf_addf(form, "%s%s=%s", form->len ? "&" : "", name, escaped);
	explicit_bzero(escaped, strlen(escaped));
	curl_free(escaped);
}

/* OAuth2's refresh flow, for an identity token. */
static void make_form(const struct challenge *c, const struct login_request *q, struct buf *form)
{
	add_form(form, "grant_type", "refresh_token");
	add_form(form, "service", c->service);
	add_form(form, "client_id", CLIENT_ID);
	add_form(form, "scope", q->scope);
	add_form(form, "refresh_token", q->credentials->identity_token);
}

/* ---- the token ---- */

static int on_body(void *context, const char *bytes, size_t len, struct err *e)
{
	struct buf *answer = context;

	buf_add(answer, bytes, len);
	if (answer->is_cut)
		return err_set(e, ERR_REMOTE, "its token service answers with more than %u bytes",
			       LOGIN_ANSWER_MAX_BYTES);
	return 0;
}

/* It becomes part of a header: no blank, no line end. */
static bool is_token(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return false;
	return text[0];
}

static int read_token(const struct buf *answer, char **ret, struct err *e)
{
	CLEANUP(jsonfields_freep) json_t *root = NULL;
	const char *token = "", *access = "";

	if (jsonfields_parse(buf_text(answer), answer->len, LOGIN_ANSWER_MAX_BYTES, &root, e) < 0)
		/* not the parser's message, which may quote the token */
		return err_set(e, ERR_REMOTE,
			       "its token service does not answer with a JSON object");
	if (jsonfields_get_text(root, "token", LOGIN_ANSWER_MAX_BYTES, JSONFIELDS_OPTIONAL, &token,
				e) < 0 ||
	    jsonfields_get_text(root, "access_token", LOGIN_ANSWER_MAX_BYTES, JSONFIELDS_OPTIONAL,
				&access, e) < 0)
		return err_set(e, ERR_REMOTE, "its token service answered with an invalid token");
	if (!token[0])
		token = access;
	if (!is_token(token))
		return err_set(e, ERR_REMOTE, "its token service answers without a token");
	*ret = mem_dup(token);
	return 0;
}

static int judge(const struct httptransfer *x, const struct login_request *q,
		 struct login_failure *ret_failure, struct err *e)
{
	bool has_any = q->credentials && q->credentials->has_any;

	if (x->is_ended_by_us) {
		*e = x->failure;
		return -1;
	}
	ret_failure->is_transient = httptransfer_is_transient(x);
	ret_failure->retry_after_ms = httptransfer_get_retry_after_ms(x);
	if (x->status == 401 || x->status == 403 || (x->status == 400 && has_any))
		return err_set(e, ERR_DENIED,
			       has_any ? "its token service refuses your credentials (%ld)"
				       : "its token service wants credentials (%ld)",
			       x->status);
	if (x->code == CURLE_OK && x->status == 200)
		return 0;
	if (x->status != 0 && x->status != 200 && !x->refused[0])
		return err_set(e, ERR_REMOTE, "its token service answers %ld", x->status);
	return err_set(e, ERR_REMOTE, "its token service: %s", httptransfer_problem(x));
}

static int fetch(const char *address, const char *form, const struct login_request *q,
		 struct buf *answer, struct login_failure *ret_failure, struct err *e)
{
	CLEANUP(httptransfer_freep) struct httptransfer *x = NULL;
	struct httptransfer_options o = {
		.url = address,
		.form = form,
		.connect_max_ms = q->connect_max_ms,
		.stall_max_s = q->stall_max_s,
		.total_max_ms = LOGIN_MAX_MS,
		/* a redirected POST would send the identity token along */
		.flags = (form ? HTTPTRANSFER_NO_REDIRECTS : 0u) |
			 (q->is_insecure ? HTTPTRANSFER_UNVERIFIED : 0u) | q->flags,
		.on_body = on_body,
		.context = answer,
	};

	if (!form && q->credentials && q->credentials->user) {
		o.user = q->credentials->user;
		o.password = q->credentials->password;
	}
	if (httptransfer_start(q->loop, &o, &x, e) < 0 || httptransfer_wait(x, e) < 0)
		return -1;
	return judge(x, q, ret_failure, e);
}

static int get_token(struct login *l, const struct challenge *c, const struct login_request *q,
		     struct login_failure *ret_failure, struct err *e)
{
	CLEANUP(credentials_wipe_buf) struct buf answer = { 0 };
	CLEANUP(credentials_wipe_buf) struct buf form = { 0 };
	cleanup_free char *address = NULL;
	char *token = NULL;

	buf_init(&answer, LOGIN_ANSWER_MAX_BYTES);
	buf_init(&form, FORM_MAX_BYTES);
	if (make_address(c, q, &address, e) < 0)
		return -1;
	if (q->credentials && q->credentials->identity_token)
		make_form(c, q, &form);
	if (fetch(address, form.bytes, q, &answer, ret_failure, e) < 0 ||
	    read_token(&answer, &token, e) < 0)
		return -1;
	login_done(l);
	l->kind = LOGIN_TOKEN;
	l->token = token;
	l->generation++;
	return 0;
}

int login_answer(struct login *l, const struct login_request *q, struct login_failure *ret_failure,
		 struct err *e)
{
	struct challenge c;

	*ret_failure = (struct login_failure){ 0 };
	if (challenge_parse(q->challenge, &c, e) < 0)
		return -1;
	if (c.scheme == CHALLENGE_BEARER)
		return get_token(l, &c, q, ret_failure, e);
	if (!q->credentials || !q->credentials->user)
		return err_set(e, ERR_DENIED, "it wants a user name and a password");
	login_done(l);
	l->kind = LOGIN_BASIC;
	l->generation++;
	return 0;
}
