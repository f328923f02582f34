/*
 * netprobe - both ends of the small network measurements of bench/network
 *
 *	netprobe serve                     listen on 127.0.0.1, print the port, serve until killed
 *	netprobe connect HOST PORT COUNT   open, exchange a byte, close, COUNT times in sequence:
 *	                                   microseconds each
 *	netprobe pingpong HOST PORT COUNT  a byte there and back on one connection: the median in
 *	                                   microseconds
 *	netprobe hold HOST PORT COUNT      open COUNT connections, exchange a byte on each, say
 *	                                   "ready" and keep them until the input ends
 *	netprobe lookup NAME COUNT         ask the name server for NAME's address: microseconds of
 *	                                   each lookup, one a line
 *	netprobe get HOST PORT             GET / by HTTP/1.0: succeeds if the answer is 200
 *
 * The server sends back what it gets, and answers what starts with "GET " as HTTP. It is one
 * process with one epoll loop: its own part in a round trip is the same for every row.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 100000
#define DNS_PORT 53
#define DNS_HEADER_BYTES 12
#define DNS_TIMEOUT_S 5
#define BYTE "\1" /* no protocol starts with it */

static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int parse_count(const char *text)
{
	long value = strtol(text, NULL, 10);

	if (value < 1 || value > COUNT_MAX)
		errx(2, "'%s' is not a number from 1 to %d", text, COUNT_MAX);
	return (int)value;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* ---- the server ---- */

static void answer_one(int fd)
{
	char bytes[4096];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n <= 0) {
		close(fd);
	} else if (n >= 4 && memcmp(bytes, "GET ", 4) == 0) {
		(void)!write(fd, answer, sizeof(answer) - 1);
		close(fd);
	} else if (write(fd, bytes, (size_t)n) != n) {
		close(fd);
	}
}

static void serve(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0), one = 1;
	struct epoll_event wanted = { .events = EPOLLIN, .data.fd = listener };
	socklen_t len = sizeof(sa);

	if (listener < 0 || bind(listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&sa, &len) < 0 ||
	    epoll_ctl(loop, EPOLL_CTL_ADD, listener, &wanted) < 0)
		err(2, "listen");
	printf("%d\n", ntohs(sa.sin_port));
	fflush(stdout);
	for (;;) {
		struct epoll_event ready[64];
		int count = epoll_wait(loop, ready, 64, -1);

		for (int i = 0; i < count; i++) {
			if (ready[i].data.fd != listener) {
				answer_one(ready[i].data.fd);
				continue;
			}
			wanted.data.fd = accept(listener, NULL, NULL);
			if (wanted.data.fd < 0)
				continue;
			setsockopt(wanted.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			if (epoll_ctl(loop, EPOLL_CTL_ADD, wanted.data.fd, &wanted) < 0)
				err(2, "epoll");
		}
	}
}

/* ---- clients ---- */

static struct addrinfo *look_up(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int r = getaddrinfo(host, port, &hints, &found);

	if (r != 0)
		errx(1, "%s: %s", host, gai_strerror(r));
	return found;
}

static int open_connection(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)
		err(1, "connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void exchange(int fd)
{
	char byte;

	if (write(fd, BYTE, 1) != 1 || read(fd, &byte, 1) != 1)
		err(1, "exchange a byte");
}

static void measure_connect(const struct addrinfo *a, int count)
{
	double start;

	close(open_connection(a)); /* what is started at the first connection */
	start = now_us();
	for (int i = 0; i < count; i++) {
		int fd = open_connection(a);

		exchange(fd);
		close(fd);
	}
	printf("%.3f\n", (now_us() - start) / count);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure_pingpong(const struct addrinfo *a, int count)
{
	double *took = calloc((size_t)count, sizeof(*took));
	int fd = open_connection(a);

	if (!took)
		errx(2, "out of memory");
	exchange(fd);
	for (int i = 0; i < count; i++) {
		double start = now_us();

		exchange(fd);
		took[i] = now_us() - start;
	}
	qsort(took, (size_t)count, sizeof(*took), compare);
	printf("%.3f\n", took[count / 2]);
	free(took);
	close(fd);
}

static void hold(const struct addrinfo *a, int count)
{
	char byte;

	raise_file_limit();
	for (int i = 0; i < count; i++)
		exchange(open_connection(a));
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

static void get(const struct addrinfo *a, const char *host, const char *port)
{
	int fd = open_connection(a);
	char text[4096];
	size_t len = 0;
	ssize_t n;

	if (dprintf(fd, "GET / HTTP/1.0\r\nHost: %s:%s\r\n\r\n", host, port) < 0)
		err(1, "send");
	while (len < sizeof(text) && (n = read(fd, text + len, sizeof(text) - len)) > 0)
		len += (size_t)n;
	if (len != sizeof(answer) - 1 || memcmp(text, answer, len) != 0)
		errx(1, "not the answer that the server gives");
	close(fd);
}

/* ---- lookups ---- */

static struct sockaddr_in name_server(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
	FILE *f = fopen("/etc/resolv.conf", "re");
	char line[256], address[64];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "nameserver %63s", address) == 1 &&
		    inet_pton(AF_INET, address, &sa.sin_addr) == 1) {
			fclose(f);
			return sa;
		}
	errx(1, "no name server in /etc/resolv.conf");
}

/* One question, for an address; returns its length. */
static size_t write_question(const char *name, uint8_t id, uint8_t out[512])
{
	static const uint8_t header[DNS_HEADER_BYTES] = { [2] = 1, [5] = 1 };
	static const uint8_t tail[] = { 0, 0, 1, 0, 1 };
	size_t len = sizeof(header);

	memcpy(out, header, sizeof(header));
	out[1] = id;
	while (*name) {
		size_t label = strcspn(name, ".");

		if (label == 0 || label > 63 || len + label + 1 + sizeof(tail) > 512)
			errx(2, "not a name");
		out[len++] = (uint8_t)label;
		memcpy(out + len, name, label);
		len += label;
		name += label + (name[label] == '.');
	}
	memcpy(out + len, tail, sizeof(tail));
	return len + sizeof(tail);
}

static void measure_lookup(const char *name, int count)
{
	const struct sockaddr_in sa = name_server();
	const struct timeval timeout = { .tv_sec = DNS_TIMEOUT_S };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		err(1, "socket");
	for (int i = 0; i < count; i++) {
		uint8_t question[512], reply[512];
		size_t len = write_question(name, (uint8_t)i, question);
		double start = now_us(), end;
		ssize_t n = sendto(fd, question, len, 0, (const void *)&sa, sizeof(sa));

		if (n >= 0)
			n = recv(fd, reply, sizeof(reply), 0);
		end = now_us();
		if (n < DNS_HEADER_BYTES)
			err(1, "look up '%s'", name);
		if (reply[1] != (uint8_t)i || (reply[3] & 0xf) != 0 || reply[7] == 0)
			errx(1, "'%s' has no address", name);
		printf("%.3f\n", end - start);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (argc == 2 && strcmp(mode, "serve") == 0) {
		raise_file_limit();
		serve();
	} else if (argc == 4 && strcmp(mode, "lookup") == 0) {
		measure_lookup(argv[2], parse_count(argv[3]));
	} else if (argc == 4 && strcmp(mode, "get") == 0) {
		get(look_up(argv[2], argv[3]), argv[2], argv[3]);
	} else if (argc == 5 && strcmp(mode, "connect") == 0) {
		measure_connect(look_up(argv[2], argv[3]), parse_count(argv[4]));
	} else if (argc == 5 && strcmp(mode, "pingpong") == 0) {
		measure_pingpong(look_up(argv[2], argv[3]), parse_count(argv[4]));
	} else if (argc == 5 && strcmp(mode, "hold") == 0) {
		hold(look_up(argv[2], argv[3]), parse_count(argv[4]));
	} else {
		errx(2, "usage: see the top of netprobe.c");
	}
	return 0;
}
