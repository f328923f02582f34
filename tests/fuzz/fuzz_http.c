/*
 * fuzz_http - anything but TLS for sniff, cut in different ways.
 *
 * The first byte of an input selects the server's answer, the second how the rest is cut; the rest
 * are the client's bytes.
 */
#include "fuzz.h"

#include "feed.h"

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const server[] = {
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.0 404 No\r\n\r\n",
		"SSH-2.0-x\r\n",
		"HTTP/1.1 1",
	};
	struct feed_options o = { 0 };
	struct feed_trace whole, cut;

	if (size < 2)
		return 0;
	o.server = server[data[0] % COUNT_OF(server)];
	o.server_len = strlen(o.server);
	whole = feed_run(data + 2, size - 2, o);
	for (uint32_t i = 1; i <= 3; i++) {
		o.seed = data[1] * 16u + i;
		cut = feed_run(data + 2, size - 2, o);
		feed_check_same(&whole, &cut);
	}
	return 0;
}
