/*
 * resolver - a static program with its own resolver, like Go's programs
 *
 *  resolver NAME PORT [PATH]
 *  resolver -t TXT|MX|SRV NAME
 *
 * Reads /etc/resolv.conf itself, sends A and AAAA queries from one UDP socket with EDNS, one after
 * the other without waiting, repeats a query over TCP if an answer is truncated, connects to the
 * addresses in turn and requests PATH over HTTP. Prints the body, or one line "resolver: ...". With
 * -t it queries records of that type in the same way, and prints a line for each.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TYPE_A = 1,
	TYPE_MX = 15,
	TYPE_TXT = 16,
	TYPE_AAAA = 28,
	TYPE_SRV = 33,
	TYPE_OPT = 41,
	QUERY_MAX = 512,
	ANSWER_MAX = 65536,
	FOUND_MAX = 16
};

struct answers {
	struct sockaddr_storage found[FOUND_MAX];
	int count;
	int rcode;
};

static void fail(const char *what)
{
	printf("resolver: %s\n", what);
	exit(1);
}

static void read_config(struct sockaddr_storage *ret_server, socklen_t *ret_len)
{
	char line[256], address[128];
	FILE *f = fopen("/etc/resolv.conf", "re");
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV }, *found = NULL;

	if (!f)
		fail("no /etc/resolv.conf");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "nameserver %127s", address) != 1)
			continue;
		if (getaddrinfo(address, "53", &hints, &found) != 0)
			continue;
		memcpy(ret_server, found->ai_addr, found->ai_addrlen);
		*ret_len = found->ai_addrlen;
		freeaddrinfo(found);
		fclose(f);
		return;
	}
	fail("no name server in /etc/resolv.conf");
}

static size_t make_query(uint8_t *q, uint16_t id, const char *name, uint16_t type)
{
	static const uint8_t opt[] = { 0, 0, TYPE_OPT, 0x04, 0xd0, 0, 0, 0, 0, 0, 0 };
	const uint8_t header[] = { id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1 };
	size_t len = sizeof(header);

	if (strlen(name) > 250)
		fail("the name is too long");
	memcpy(q, header, sizeof(header));
	while (*name) {
		size_t label = strcspn(name, ".");

		if (label == 0 || label > 63)
			fail("not a name");
		q[len++] = (uint8_t)label;
		memcpy(q + len, name, label);
		len += label;
		name += label + (name[label] == '.');
	}
	q[len++] = 0;
	q[len++] = type >> 8;
	q[len++] = type & 255;
	q[len++] = 0;
	q[len++] = 1;
	memcpy(q + len, opt, sizeof(opt));
	return len + sizeof(opt);
}

static size_t skip_name(const uint8_t *a, size_t len, size_t at)
{
	while (at < len && a[at] && a[at] < 0xc0)
		at += 1 + (size_t)a[at];
	return at + (at < len && a[at] >= 0xc0 ? 2 : 1);
}

static void add(struct answers *all, int type, const uint8_t *data, size_t size)
{
	struct sockaddr_storage *s = &all->found[all->count];

	if (all->count == FOUND_MAX)
		return;
	memset(s, 0, sizeof(*s));
	if (type == TYPE_A && size == 4) {
		s->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)s)->sin_addr, data, 4);
	} else if (type == TYPE_AAAA && size == 16) {
		s->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)s)->sin6_addr, data, 16);
	} else {
		return;
	}
	all->count++;
}

static void print_name(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size && data[at]; at += 1 + (size_t)data[at])
		printf("%s%.*s", at ? "." : " ", data[at], (const char *)data + at + 1);
	puts("");
}

/* Neither the gate nor the tests' own server compresses names in data. */
static void print_record(int type, const uint8_t *data, size_t size)
{
	size_t numbers = type == TYPE_MX ? 2 : type == TYPE_SRV ? 6 : 0;

	if (type == TYPE_TXT) {
		for (size_t at = 0; at < size; at += 1 + (size_t)data[at])
			printf("%s%.*s", at ? " " : "", data[at], (const char *)data + at + 1);
		puts("");
	}
	if (numbers == 0 || size < numbers)
		return;
	for (size_t at = 0; at < numbers; at += 2)
		printf("%s%d", at ? " " : "", data[at] << 8 | data[at + 1]);
	print_name(data + numbers, size - numbers);
}

static void read_answer(const uint8_t *a, size_t len, struct answers *all)
{
	size_t at = 12;
	int count;

	if (len < 12)
		fail("a short answer");
	count = a[6] << 8 | a[7];
	all->rcode = a[3] & 15;
	at = skip_name(a, len, at) + 4;
	while (count-- > 0) {
		size_t size;
		int type;

		at = skip_name(a, len, at);
		if (at + 10 > len)
			fail("a cut answer");
		type = a[at] << 8 | a[at + 1];
		size = (size_t)(a[at + 8] << 8 | a[at + 9]);
		at += 10;
		if (at + size > len)
			fail("a cut record");
		add(all, type, a + at, size);
		print_record(type, a + at, size);
		at += size;
	}
}

static size_t ask_tcp(const struct sockaddr_storage *server, socklen_t server_len, const uint8_t *q,
		      size_t len, uint8_t *a)
{
	int fd = socket(server->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const uint8_t head[2] = { (uint8_t)(len >> 8), (uint8_t)len };
	uint8_t size[2];
	size_t want, have = 0;
	ssize_t n;

	if (fd < 0 || connect(fd, (const struct sockaddr *)server, server_len) < 0)
		fail("no name server over TCP");
	if (write(fd, head, 2) != 2 || write(fd, q, len) != (ssize_t)len)
		fail("asking over TCP");
	if (recv(fd, size, 2, MSG_WAITALL) != 2)
		fail("no answer over TCP");
	want = (size_t)(size[0] << 8 | size[1]);
	while (have < want && have < ANSWER_MAX && (n = read(fd, a + have, ANSWER_MAX - have)) > 0)
		have += (size_t)n;
	close(fd);
	return have;
}

static void look_up(const char *name, const uint16_t *types, int count, struct answers *all)
{
	static uint8_t a[ANSWER_MAX];
	struct sockaddr_storage server;
	socklen_t server_len = 0;
	uint8_t q[2][QUERY_MAX];
	size_t len[2];
	int fd, got = 0;

	read_config(&server, &server_len);
	fd = socket(server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&server, server_len) < 0)
		fail("no name server");
	for (int i = 0; i < count; i++) {
		len[i] = make_query(q[i], (uint16_t)(0x4711 + i), name, types[i]);
		if (send(fd, q[i], len[i], 0) < 0)
			fail(strerror(errno));
	}
	while (got < count) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;
		int which;

		if (poll(&p, 1, 5000) != 1)
			fail("no answer in 5 s");
		n = recv(fd, a, sizeof(a), 0);
		if (n < 12)
			fail(n < 0 ? strerror(errno) : "a short answer");
		which = (a[0] << 8 | a[1]) - 0x4711;
		if (which < 0 || which >= count)
			continue;
		got++;
		if (a[2] & 2)
			n = (ssize_t)ask_tcp(&server, server_len, q[which], len[which], a);
		read_answer(a, (size_t)n, all);
	}
	close(fd);
}

static int connect_any(struct answers *all, uint16_t port)
{
	for (int i = 0; i < all->count; i++) {
		struct sockaddr_storage *s = &all->found[i];
		int fd = socket(s->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (s->ss_family == AF_INET)
			((struct sockaddr_in *)s)->sin_port = htons(port);
		else
			((struct sockaddr_in6 *)s)->sin6_port = htons(port);
		if (fd >= 0 && connect(fd, (struct sockaddr *)s,
				       s->ss_family == AF_INET ? sizeof(struct sockaddr_in)
							       : sizeof(struct sockaddr_in6)) == 0)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	fail(strerror(errno));
	return -1;
}

static int print_records(const char *word, const char *name)
{
	const uint16_t type = strcmp(word, "TXT") == 0  ? TYPE_TXT
			      : strcmp(word, "MX") == 0 ? TYPE_MX
							: TYPE_SRV;
	struct answers all = { 0 };

	look_up(name, &type, 1, &all);
	if (all.rcode != 0)
		fail(all.rcode == 3 ? "no such name" : "no answer");
	return 0;
}

int main(int argc, char **argv)
{
	static const uint16_t addresses[2] = { TYPE_A, TYPE_AAAA };
	struct answers all = { 0 };
	char text[8192], *body;
	size_t have = 0;
	ssize_t n;
	int fd;

	if (argc < 3)
		fail("usage: resolver NAME PORT [PATH] | -t TYPE NAME");
	if (argc == 4 && strcmp(argv[1], "-t") == 0)
		return print_records(argv[2], argv[3]);
	look_up(argv[1], addresses, 2, &all);
	if (all.count == 0)
		fail(all.rcode == 3 ? "no such name" : "no address");
	fd = connect_any(&all, (uint16_t)atoi(argv[2]));
	snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n",
		 argc > 3 ? argv[3] : "/", argv[1]);
	if (write(fd, text, strlen(text)) < 0)
		fail(strerror(errno));
	while (have < sizeof(text) - 1 && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = 0;
	body = strstr(text, "\r\n\r\n");
	if (!body)
		fail("no answer in HTTP");
	fputs(body + 4, stdout);
	return 0;
}
