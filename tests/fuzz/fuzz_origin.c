/*
 * fuzz_origin - Host, Origin and Content-Type of an HTTP request.
 *
 * An accepted authority is the same after formatting and parsing it again, and every Origin
 * accepted as ours ends in a name of ours and our port.
 */
#include "fuzz.h"

#include "http/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_authority(const char *text)
{
	struct origin_authority a, again;
	char whole[ORIGIN_HOST_MAX_BYTES + 16];

	if (!origin_parse_authority(text, &a))
		return;
	FUZZ_CHECK(a.host[0] && !strpbrk(a.host, "@/?#[] \t%\\"));
	(void)snprintf(whole, sizeof(whole), strchr(a.host, ':') ? "[%s]" : "%s", a.host);
	if (a.port)
		(void)snprintf(whole + strlen(whole), sizeof(whole) - strlen(whole), ":%u", a.port);
	FUZZ_CHECK(origin_parse_authority(whole, &again));
	FUZZ_CHECK(strcmp(a.host, again.host) == 0 && a.port == again.port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct origin_place p = { .is_loopback = true };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&p.address;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	v4->sin_family = AF_INET;
	v4->sin_port = htons(18888);
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check_authority(text);
	(void)origin_is_json_type(text);
	if (!origin_check(&p, &(struct origin_claims){ .origin = text }))
		FUZZ_CHECK(strlen(text) > 6 && strcmp(text + strlen(text) - 6, ":18888") == 0 &&
			   strlen(text) <= sizeof("http://127.0.0.1:18888") + 32);
	free(text);
	return 0;
}
