/* endpoint - one base address of a repository; see endpoint.h. */
#include "image/endpoint.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>

#define HUB_API_HOST "registry-1." REFERENCE_HUB

static void url_freep(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void curl_textp(char **text)
{
	curl_free(*text);
}

void endpoint_init_registry(struct endpoint *p, const char *host, bool is_insecure)
{
	bool is_hub = strcmp(host, REFERENCE_HUB) == 0;

	*p = (struct endpoint){
		.base = mem_format("https://%s", is_hub ? HUB_API_HOST : host),
		.name = mem_format("the registry %s", host),
		.is_unverified = is_insecure,
		.can_be_plain = is_insecure || reference_is_loopback(host),
	};
}

static bool has_part(CURLU *url, CURLUPart part)
{
	CLEANUP(curl_textp) char *text = NULL;

	return curl_url_get(url, part, &text, 0) == CURLUE_OK;
}

/* A base address has no query, no fragment and no user: credentials are for the registry itself. */
static bool is_base(CURLU *url, const char *address)
{
	return curl_url_set(url, CURLUPART_URL, address, CURLU_DISALLOW_USER) == CURLUE_OK &&
	       !has_part(url, CURLUPART_QUERY) && !has_part(url, CURLUPART_FRAGMENT);
}

int endpoint_init_mirror(struct endpoint *p, const char *address, struct err *e)
{
	CLEANUP(url_freep) CURLU *url = curl_url();
	bool is_plain = strncmp(address, "http://", 7) == 0;
	bool is_typed = is_plain || strncmp(address, "https://", 8) == 0;
	cleanup_free char *whole = mem_format("%s%s", is_typed ? "" : "https://", address);
	size_t len = strlen(whole);

	if (len > ENDPOINT_ADDRESS_MAX_BYTES || (!is_typed && strstr(address, "://")) || !url ||
	    !is_base(url, whole))
		return err_set(e, ERR_INVALID,
			       "the mirror '%.128s' is not an address as "
			       "https://mirror.example.org",
			       address);
	while (len > 0 && whole[len - 1] == '/')
		whole[--len] = '\0';
	*p = (struct endpoint){
		.name = mem_format("the mirror %s", whole),
		.is_mirror = true,
		.is_plain = is_plain,
	};
	p->base = take_ptr(whole);
	return 0;
}

void endpoint_done(struct endpoint *p)
{
	free(take_ptr(p->base));
	free(take_ptr(p->name));
	login_done(&p->login);
}

static void become_plain(struct endpoint *p)
{
	char *base = mem_format("http://%s", p->base + strlen("https://"));

	free(p->base);
	p->base = base;
	p->is_plain = true;
}

/*
 * A plain HTTP server answers a TLS hello with an error, by closing, or not at all: anything that
 * is not a TLS answer means plain HTTP. A certificate that does not verify is a TLS answer.
 */
int endpoint_settle(struct endpoint *p, struct httptransfer_loop *l, struct err *e)
{
	CLEANUP(httptransfer_freep) struct httptransfer *x = NULL;
	cleanup_free char *url = NULL;
	struct httptransfer_options o = {
		.connect_max_ms = ENDPOINT_PROBE_MAX_MS,
		.total_max_ms = 2 * ENDPOINT_PROBE_MAX_MS,
		.flags = HTTPTRANSFER_NO_REDIRECTS |
			 (p->is_unverified ? HTTPTRANSFER_UNVERIFIED : 0u),
	};

	if (!p->can_be_plain)
		return 0;
	url = mem_format("%s/v2/", p->base);
	o.url = url;
	if (httptransfer_start(l, &o, &x, e) < 0 || httptransfer_wait(x, e) < 0)
		return -1;
	p->can_be_plain = false;
	if (x->status == 0 && x->code != CURLE_PEER_FAILED_VERIFICATION)
		become_plain(p);
	return 0;
}
