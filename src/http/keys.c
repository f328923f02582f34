/* keys - API keys and their owners; see keys.h. */
#include "http/keys.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define WORDS_MAX 3u
#define ADMIN_WORD "admin"
#define DIGEST_SHOWN_BYTES 16u

void keys_done(struct keys *k)
{
	for (unsigned i = 0; i < k->count; i++)
		free(k->list[i].text);
	*k = (struct keys){ 0 };
}

/* As for a sandbox name: it appears in records, events and the audit log. */
static bool is_name(const char *text)
{
	size_t len = strlen(text);

	return len <= KEYS_NAME_MAX_BYTES &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == len;
}

static void name_by_digest(struct keys_key *key)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	int used;

	if (EVP_Digest(key->text, strlen(key->text), digest, &len, EVP_sha256(), NULL) != 1 ||
	    len < DIGEST_SHOWN_BYTES)
		abort(); /* otherwise two keys would be the same owner */
	used = snprintf(key->owner, sizeof(key->owner), "key:");
	for (size_t i = 0; i < DIGEST_SHOWN_BYTES; i++)
		used += snprintf(key->owner + used, sizeof(key->owner) - (size_t)used, "%02x",
				 digest[i]);
}

/* Splits a line in place; words beyond WORDS_MAX are counted too. */
static unsigned split(char *line, char *words[WORDS_MAX])
{
	unsigned count = 0;
	char *word;

	while ((word = strsep(&line, BLANKS))) {
		if (!*word)
			continue;
		if (count < WORDS_MAX)
			words[count] = word;
		count++;
	}
	return count;
}

static int add(struct keys *k, char *const *words, unsigned count, struct err *e)
{
	struct keys_key *key = &k->list[k->count];
	const char *text = words[count > 1];

	if (count > WORDS_MAX || (count == WORDS_MAX && strcmp(words[2], ADMIN_WORD) != 0))
		return err_set(e, ERR_INVALID,
			       "line of a key: use KEY, NAME KEY or NAME KEY " ADMIN_WORD);
	if (count > 1 && !is_name(words[0]))
		return err_set(e, ERR_INVALID,
			       "name of a key: use a-z, 0-9, '_', '.' and '-', up to %u",
			       KEYS_NAME_MAX_BYTES);
	if (k->count == KEYS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u keys", KEYS_MAX);
	if (strlen(text) > KEYS_KEY_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "a key has at most %u bytes", KEYS_KEY_MAX_BYTES);
	if (keys_find(k, text))
		return err_set(e, ERR_INVALID, "the same key twice: whose would it be?");
	*key = (struct keys_key){ .text = mem_dup(text), .is_admin = count == WORDS_MAX };
	k->count++;
	if (count > 1)
		(void)snprintf(key->owner, sizeof(key->owner), "name:%s", words[0]);
	else
		name_by_digest(key);
	return 0;
}

int keys_parse(const char *text, struct keys *ret, struct err *e)
{
	CLEANUP(keys_done) struct keys k = { 0 };
	cleanup_free char *copy = mem_dup(text);
	char *rest = copy, *line;

	while ((line = strsep(&rest, "\n"))) {
		char *words[WORDS_MAX];
		unsigned count = split(line, words);

		if (count > 0 && add(&k, words, count, e) < 0)
			return -1;
	}
	k.is_isolated = k.count > 1;
	*ret = k;
	k = (struct keys){ 0 };
	return 0;
}

static bool is_same(const char *given, const char *known)
{
	size_t given_len = strlen(given), known_len = strlen(known);
	unsigned char differs = given_len != known_len;

	for (size_t i = 0; i < known_len; i++)
		differs |= (unsigned char)(known[i] ^ (i < given_len ? given[i] : 0));
	return differs == 0;
}

const struct keys_key *keys_find(const struct keys *k, const char *text)
{
	const struct keys_key *found = NULL;

	for (unsigned i = 0; i < k->count; i++)
		if (is_same(text, k->list[i].text))
			found = &k->list[i];
	return found;
}

const char *keys_owner(const struct keys *k, const struct keys_key *key)
{
	return key && k->is_isolated && !key->is_admin ? key->owner : NULL;
}
