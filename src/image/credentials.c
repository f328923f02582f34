/*
 * credentials - finds credentials for a registry; see credentials.h.
 *
 * Theory of operation
 *
 * The file has, for each server, a helper or the credentials themselves. Servers are written in
 * several ways ("host", "https://host", "https://host/v1/"), and Docker Hub under the address of a
 * registry that no longer exists; server_key() and is_key_of() handle them. A helper without
 * credentials does not end the search: "auths" may have been filled by hand.
 *
 * Secrets are in the parsed document, in temporary buffers and in struct credentials; all of them
 * are wiped before they are freed.
 *
 * Hostile input: strictly none, because the file and the helpers belong to the user. But many tools
 * edit them, so everything has a maximum and every error names the file or the helper.
 */
#include "image/credentials.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/jsonfields.h"
#include "image/keychain.h"
#include "image/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#define HUB_KEY "https://index." REFERENCE_HUB "/v1/"
#define USER_IS_TOKEN "<token>" /* a helper's user name when the secret is an identity token */

void credentials_wipe(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void credentials_done(struct credentials *c)
{
	free(take_ptr(c->user));
	credentials_wipe(take_ptr(c->password));
	credentials_wipe(take_ptr(c->identity_token));
	c->has_any = false;
}

void credentials_wipe_buf(struct buf *b)
{
	if (b->bytes)
		explicit_bzero(b->bytes, b->capacity);
	buf_done(b);
}

static void wipe_textp(char **text)
{
	credentials_wipe(*text);
}

/* jansson frees without wiping, so we overwrite its text before. */
static void wipe_document(json_t *root)
{
	json_t *value;
	const char *key;

	json_object_foreach(root, key, value)
	{
		if (json_is_object(value))
			wipe_document(value);
		else if (json_is_string(value))
			explicit_bzero((char *)json_string_value(value), json_string_length(value));
	}
}

static void forget_document(json_t **root)
{
	wipe_document(*root);
	jsonfields_freep(root);
}

/* ---- servers ---- */

static const char *server_key(const char *host)
{
	return strcmp(host, REFERENCE_HUB) == 0 ? HUB_KEY : host;
}

/* "https://host/v1/" -> "host"; 0 for a key with another path, which belongs to another server. */
static size_t host_of_key(const char **key)
{
	static const char *const ends[] = { "", "/", "/v1", "/v1/", "/v2", "/v2/" };
	size_t len;

	if (strncmp(*key, "https://", 8) == 0)
		*key += 8;
	else if (strncmp(*key, "http://", 7) == 0)
		*key += 7;
	len = strcspn(*key, "/");
	for (size_t i = 0; i < COUNT_OF(ends); i++)
		if (strcmp(*key + len, ends[i]) == 0)
			return len;
	return 0;
}

static bool is_host(const char *text, size_t len, const char *host)
{
	return strlen(host) == len && strncasecmp(text, host, len) == 0;
}

static bool is_key_of(const char *key, const char *host)
{
	size_t len = host_of_key(&key);

	if (is_host(key, len, host))
		return true;
	return strcmp(host, REFERENCE_HUB) == 0 && is_host(key, len, "index." REFERENCE_HUB);
}

/* The value for a host: an exact key before other spellings. */
static const json_t *find_server(const json_t *object, const char *host)
{
	const json_t *exact = json_object_get(object, server_key(host));
	const json_t *value;
	const char *key;

	if (exact)
		return exact;
	json_object_foreach((json_t *)object, key, value) if (is_key_of(key, host)) return value;
	return NULL;
}

/* ---- "auths" ---- */

/* "user:password" in base64. */
static int decode_pair(const char *text, struct credentials *ret, struct err *e)
{
	CLEANUP(wipe_textp) char *pair = mem_alloc(strlen(text) + 4);
	int len = EVP_DecodeBlock((unsigned char *)pair, (const unsigned char *)text,
				  (int)strlen(text));
	char *colon = len > 0 ? strchr(pair, ':') : NULL;

	/* the decoder pads with zeros, as Docker once did after passwords */
	if (!colon || colon == pair)
		return err_set(e, ERR_INVALID, "'auth' is not user:password in base64");
	ret->user = mem_dup_bytes(pair, (size_t)(colon - pair));
	ret->password = mem_dup(colon + 1);
	ret->has_any = true;
	return 0;
}

static int read_entry(const json_t *entry, struct credentials *ret, struct err *e)
{
	const char *pair = "", *token = "", *user = "", *password = "";
	const size_t max = CREDENTIALS_TEXT_MAX_BYTES;

	if (!json_is_object(entry))
		return err_set(e, ERR_INVALID, "not an object");
	if (jsonfields_get_text(entry, "auth", 2 * max, JSONFIELDS_OPTIONAL, &pair, e) < 0 ||
	    jsonfields_get_text(entry, "identitytoken", max, JSONFIELDS_OPTIONAL, &token, e) < 0 ||
	    jsonfields_get_text(entry, "username", max, JSONFIELDS_OPTIONAL, &user, e) < 0 ||
	    jsonfields_get_text(entry, "password", max, JSONFIELDS_OPTIONAL, &password, e) < 0)
		return -1;
	if (token[0]) {
		ret->identity_token = mem_dup(token);
		ret->has_any = true;
		return 0;
	}
	if (pair[0])
		return decode_pair(pair, ret, e);
	if (user[0]) {
		ret->user = mem_dup(user);
		ret->password = mem_dup(password);
		ret->has_any = true;
	}
	return 0;
}

static int find_in_auths(const json_t *root, const char *host, struct credentials *ret,
			 struct err *e)
{
	const json_t *auths = NULL, *entry;

	if (jsonfields_get_object(root, "auths", JSONFIELDS_OPTIONAL, &auths, e) < 0)
		return -1;
	entry = find_server(auths, host);
	if (entry && read_entry(entry, ret, e) < 0)
		return err_wrap(e, "'auths' for '%s'", host);
	return 0;
}

/* ---- helpers ---- */

/* *ret is NULL if no helper is named for this host. */
static int find_helper(const json_t *root, const char *host, const char **ret, struct err *e)
{
	const json_t *helpers = NULL, *own;
	const char *store = "";

	if (jsonfields_get_object(root, "credHelpers", JSONFIELDS_OPTIONAL, &helpers, e) < 0 ||
	    jsonfields_get_text(root, "credsStore", CREDENTIALS_TEXT_MAX_BYTES, JSONFIELDS_OPTIONAL,
				&store, e) < 0)
		return -1;
	own = find_server(helpers, host);
	if (own && !json_is_string(own))
		return err_set(e, ERR_INVALID, "'credHelpers' for '%s' is not text", host);
	if (own)
		store = json_string_value(own);
	*ret = store[0] ? store : NULL;
	return 0;
}

static int read_answer(const struct buf *answer, struct credentials *ret, struct err *e)
{
	CLEANUP(forget_document) json_t *root = NULL;
	const char *user = "", *secret = "";
	const size_t max = CREDENTIALS_TEXT_MAX_BYTES;

	if (jsonfields_parse(buf_text(answer), answer->len, answer->max, &root, e) < 0)
		/* not the parser's message, which may quote part of a secret */
		return err_set(e, ERR_INVALID, "the answer is not a JSON object");
	if (jsonfields_get_text(root, "Username", max, 0, &user, e) < 0 ||
	    jsonfields_get_text(root, "Secret", max, 0, &secret, e) < 0)
		return -1;
	if (!secret[0])
		return 0;
	if (strcmp(user, USER_IS_TOKEN) == 0) {
		ret->identity_token = mem_dup(secret);
	} else {
		ret->user = mem_dup(user);
		ret->password = mem_dup(secret);
	}
	ret->has_any = true;
	return 0;
}

static int registryrequest_helper(const struct credentials_options *o, const char *helper,
				  const char *host, struct credentials *ret, struct err *e)
{
	CLEANUP(credentials_wipe_buf) struct buf answer = { 0 };
	struct keychain_request q = {
		.name = helper,
		.server = server_key(host),
		.environ_list = o->environ_list,
		.max_ms = o->helper_max_ms ? o->helper_max_ms : CREDENTIALS_HELPER_MAX_MS,
	};
	bool is_known = false;

	buf_init(&answer, CREDENTIALS_ANSWER_MAX_BYTES);
	if (keychain_get(&q, &answer, &is_known, e) < 0)
		return -1;
	if (is_known && read_answer(&answer, ret, e) < 0)
		return err_wrap(e, "the credential helper '%s'", helper);
	return 0;
}

/* ---- the file ---- */

static int find(const struct credentials_options *o, const json_t *root, const char *host,
		struct credentials *ret, struct err *e)
{
	const char *helper = NULL;

	if (find_helper(root, host, &helper, e) < 0)
		return -1;
	if (helper && registryrequest_helper(o, helper, host, ret, e) < 0)
		return -1;
	if (ret->has_any)
		return 0;
	return find_in_auths(root, host, ret, e);
}

static char *file_path(const struct credentials_options *o)
{
	if (o->docker_config && o->docker_config[0])
		return mem_format("%s/config.json", o->docker_config);
	if (o->home && o->home[0])
		return mem_format("%s/.docker/config.json", o->home);
	return NULL;
}

/* *ret stays NULL if there is no file. */
static int load(const char *path, json_t **ret, struct err *e)
{
	CLEANUP(wipe_textp) char *text = NULL;
	size_t len = 0;
	int r = file_read_at(AT_FDCWD, path, CREDENTIALS_FILE_MAX_BYTES, &text, &len);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "read");
	if (jsonfields_parse(text, len, CREDENTIALS_FILE_MAX_BYTES, ret, e) < 0)
		/* not the parser's message, which may quote part of a secret */
		return err_set(e, ERR_INVALID, "it is not a JSON object");
	return 0;
}

int credentials_find(const struct credentials_options *o, const char *host, struct credentials *ret,
		     struct err *e)
{
	CLEANUP(credentials_done) struct credentials c = { 0 };
	CLEANUP(forget_document) json_t *root = NULL;
	cleanup_free char *path = file_path(o);

	if (path && (load(path, &root, e) < 0 || (root && find(o, root, host, &c, e) < 0)))
		return err_wrap(e, "credentials of '%s'", path);
	*ret = c;
	c = (struct credentials){ 0 };
	return 0;
}
