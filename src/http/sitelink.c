/*
 * sitelink - links that open one port of one sandbox; see sitelink.h.
 *
 * A token is "SECONDS.DIGEST", the digest in hexadecimal, of which 40 digits are kept.
 */
#include "http/sitelink.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 40u

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sitelink_init(struct sitelink *l, const char *text)
{
	if (strlen(text) != 2 * SITELINK_SECRET_BYTES)
		return false;
	for (unsigned i = 0; i < SITELINK_SECRET_BYTES; i++) {
		int high = hex(text[2 * i]), low = hex(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		l->secret[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

void sitelink_make(const struct sitelink *l, const char *id, uint32_t port, uint64_t end_s,
		   char out[SITELINK_TOKEN_MAX_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_len = 0;
	char text[128];
	int len = snprintf(text, sizeof(text), "%s:%" PRIu32 ":%" PRIu64, id, port, end_s);
	int used = snprintf(out, SITELINK_TOKEN_MAX_BYTES, "%" PRIu64 ".", end_s);

	(void)HMAC(EVP_sha256(), l->secret, sizeof(l->secret), (const unsigned char *)text,
		   (size_t)len, digest, &digest_len);
	for (unsigned i = 0; i < DIGITS / 2; i++)
		used += snprintf(out + used, SITELINK_TOKEN_MAX_BYTES - (size_t)used, "%02x",
				 digest[i]);
}

bool sitelink_check(const struct sitelink *l, const char *token, const char *id, uint32_t port,
		    uint64_t now_s)
{
	char own[SITELINK_TOKEN_MAX_BYTES], *end;
	uint64_t end_s = strtoull(token, &end, 10);

	if (*end != '.' || end == token || end_s <= now_s || end_s > now_s + SITELINK_MAX_S)
		return false;
	sitelink_make(l, id, port, end_s, own);
	return strlen(own) == strlen(token) && CRYPTO_memcmp(own, token, strlen(own)) == 0;
}
