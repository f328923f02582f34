/*
 * challenge - the WWW-Authenticate field; see challenge.h.
 *
 * Theory of operation
 *
 * The grammar is RFC 9110's: schemes separated by commas, each followed by token68 or by parameters
 * that are separated by commas too. So after a comma a word is a parameter if '=' follows, and a
 * new scheme otherwise. One cursor parses it in one pass; a value that violates the grammar is
 * refused as a whole, because its meaning would be a guess.
 *
 * The scope that a registry suggests is ignored: we request what we need.
 */
#include "image/challenge.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define SCHEME_MAX_BYTES 64u
#define NAME_MAX_BYTES 64u

struct cursor {
	const char *at;
};

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip_blanks(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t')
		c->at++;
}

static void skip_commas(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\t' || *c->at == ',')
		c->at++;
}

static bool take_token(struct cursor *c, char *out, size_t out_size)
{
	size_t len = 0;

	while (is_token_char(c->at[len]))
		len++;
	if (len == 0 || len >= out_size)
		return false;
	memcpy(out, c->at, len);
	out[len] = '\0';
	c->at += len;
	return true;
}

/* No URL or name contains control bytes, so they are refused. */
static bool take_quoted(struct cursor *c, char *out, size_t out_size)
{
	size_t len = 0;

	for (c->at++; *c->at != '"'; c->at++) {
		if (*c->at == '\\')
			c->at++;
		if ((unsigned char)*c->at < ' ' || *c->at == 0x7f || len + 1 >= out_size)
			return false;
		out[len++] = *c->at;
	}
	c->at++;
	out[len] = '\0';
	return true;
}

static bool take_value(struct cursor *c, char *out, size_t out_size)
{
	skip_blanks(c);
	return *c->at == '"' ? take_quoted(c, out, out_size) : take_token(c, out, out_size);
}

/* Does NAME= follow, rather than another scheme? */
static bool is_parameter_next(struct cursor c)
{
	char name[NAME_MAX_BYTES];

	if (!take_token(&c, name, sizeof(name)))
		return false;
	skip_blanks(&c);
	return *c.at == '=';
}

/* Stores a known parameter; a duplicate is an error. */
static bool keep(struct challenge *ret, const char *name, const char *value)
{
	char *to = strcasecmp(name, "realm") == 0     ? ret->realm
		   : strcasecmp(name, "service") == 0 ? ret->service
						      : NULL;

	if (!to)
		return true;
	if (to[0])
		return false;
	memcpy(to, value, strlen(value) + 1);
	return true;
}

static bool take_parameters(struct cursor *c, struct challenge *ret)
{
	char value[CHALLENGE_TEXT_MAX_BYTES];
	char name[NAME_MAX_BYTES];

	while (is_parameter_next(*c)) {
		(void)take_token(c, name, sizeof(name));
		skip_blanks(c);
		c->at++; /* '=' */
		if (!take_value(c, value, sizeof(value)) || !keep(ret, name, value))
			return false;
		skip_blanks(c);
		if (*c->at != ',' && *c->at != '\0')
			return false;
		skip_commas(c);
	}
	return true;
}

/* Skips base64 up to the next comma, as in Negotiate and NTLM. */
static bool skip_token68(struct cursor *c)
{
	size_t len = strspn(c->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789-._~+/");
	struct cursor after = { c->at + len };

	after.at += strspn(after.at, "=");
	skip_blanks(&after);
	if (len == 0 || (*after.at != ',' && *after.at != '\0'))
		return false;
	*c = after;
	return true;
}

static bool take_challenge(struct cursor *c, char scheme[SCHEME_MAX_BYTES], struct challenge *ret)
{
	*ret = (struct challenge){ 0 };
	if (!take_token(c, scheme, SCHEME_MAX_BYTES))
		return false;
	if (*c->at != ' ' && *c->at != '\t' && *c->at != ',' && *c->at != '\0')
		return false;
	skip_blanks(c);
	if (*c->at == ',' || *c->at == '\0')
		return true;
	return skip_token68(c) || take_parameters(c, ret);
}

int challenge_parse(const char *value, struct challenge *ret, struct err *e)
{
	struct cursor c = { value };
	struct challenge one, best = { 0 };
	char scheme[SCHEME_MAX_BYTES];
	bool has_best = false;

	for (skip_commas(&c); *c.at; skip_commas(&c)) {
		bool is_bearer, is_basic;

		if (!take_challenge(&c, scheme, &one))
			return err_set(e, ERR_REMOTE, "its WWW-Authenticate is not well formed");
		is_bearer = strcasecmp(scheme, "Bearer") == 0 && one.realm[0];
		is_basic = strcasecmp(scheme, "Basic") == 0;
		one.scheme = is_bearer ? CHALLENGE_BEARER : CHALLENGE_BASIC;
		if (is_bearer && (!has_best || best.scheme == CHALLENGE_BASIC))
			best = one;
		else if (is_basic && !has_best)
			best = one;
		has_best = has_best || is_bearer || is_basic;
	}
	if (!has_best)
		return err_set(e, ERR_REMOTE,
			       "it asks for neither a token nor a password in a way we know");
	*ret = best;
	return 0;
}
