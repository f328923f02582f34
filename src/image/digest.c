/* digest - computes SHA-256 digests; see digest.h. */
#include "image/digest.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

#define READ_BYTES (256u << 10)
#define SHA256_BYTES 32u

struct digest {
	EVP_MD_CTX *context;
};

struct digest *digest_new(void)
{
	struct digest *d = mem_alloc(sizeof(*d));
	int ok;

	d->context = EVP_MD_CTX_new();
	ok = d->context && EVP_DigestInit_ex(d->context, EVP_sha256(), NULL);
	assert(ok); /* only out of memory */
	return d;
}

void digest_free(struct digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->context);
	free(d);
}

void digest_freep(struct digest **d)
{
	digest_free(*d);
	*d = NULL;
}

void digest_add(struct digest *d, const void *bytes, size_t len)
{
	int ok = EVP_DigestUpdate(d->context, bytes, len);

	assert(ok);
}

void digest_finish(struct digest *d, char out[REFERENCE_DIGEST_MAX_BYTES])
{
	unsigned char value[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	int ok = EVP_DigestFinal_ex(d->context, value, &len);

	assert(ok && len == SHA256_BYTES);
	(void)snprintf(out, REFERENCE_DIGEST_MAX_BYTES, "sha256:");
	for (unsigned i = 0; i < len; i++)
		(void)snprintf(out + 7 + 2 * i, 3, "%02x", value[i]);
}

void digest_of(const void *bytes, size_t len, char out[REFERENCE_DIGEST_MAX_BYTES])
{
	CLEANUP(digest_freep) struct digest *d = digest_new();

	digest_add(d, bytes, len);
	digest_finish(d, out);
}

int digest_of_file(int fd, char out[REFERENCE_DIGEST_MAX_BYTES])
{
	CLEANUP(digest_freep) struct digest *d = digest_new();
	cleanup_free char *bytes = mem_alloc(READ_BYTES);
	off_t offset = 0;

	for (;;) {
		ssize_t n = pread(fd, bytes, READ_BYTES, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		digest_add(d, bytes, (size_t)n);
		offset += n;
	}
	digest_finish(d, out);
	return 0;
}
