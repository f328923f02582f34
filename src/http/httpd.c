/*
 * httpd - the program agentkernel-serve: the HTTP API, on unix sockets and TCP.
 *
 * usage: agentkernel-serve LAUNCHER AUDIT [ROW...] [--listen WHERE]... [--rate CALLS:WINDOW_MS]...
 *                          [--tls-cert FILE --tls-key FILE] [--isolate yes|no] [--domain NAME]
 *
 * WHERE is unix:PATH, or ADDRESS:PORT. Keys come in the variable AGENTKERNEL_SERVE_KEYS (http/keys
 * has its format), which workers do not get. A unix socket is for its owner and root, who need no
 * key; an address that is not loopback needs one. After SIGTERM running requests are finished.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/title.h"
#include "http/api.h"
#include "http/sitereach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define KEYS_VARIABLE "AGENTKERNEL_SERVE_KEYS"
#define SECRET_VARIABLE "AGENTKERNEL_SERVE_SECRET" /* for links */
#define LISTENERS_MAX 8u
#define CONNECTIONS_MAX 4096u
#define OWNERS_SPARE 64u /* reserved for the owner, however many others are connected */
#define DESCRIPTORS (2 * CONNECTIONS_MAX + OWNERS_SPARE + 1024) /* a relayed one has two */
#define BACKLOG 512
#define DRAIN_MAX_S 30
#define EXIT_FAILED 125

struct listening {
	struct server *server;
	struct origin_place place;
};

struct server {
	struct api api;
	struct buf rows;
	struct evconnlistener *listeners[LISTENERS_MAX];
	struct listening listening[LISTENERS_MAX]; /* what each is */
	char *unix_paths[LISTENERS_MAX];
	unsigned listener_count;
	const char *cert, *key;
	const char *isolate; /* "yes", "no"; NULL: depends on the number of keys */
	SSL_CTX *tls;
	struct event *ends[2];
	struct event *drain;
};

static _Noreturn void fail(const char *fmt, ...)
{
	va_list args;

	(void)fputs("agentkernel: ", stderr);
	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	(void)fputc('\n', stderr);
	exit(EXIT_FAILED);
}

/* ---- connections ---- */

static bool is_owner(evutil_socket_t fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static struct bufferevent *make_transport(struct server *s, evutil_socket_t fd, bool is_unix)
{
	int on = 1;

	if (!is_unix)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!s->tls || is_unix)
		return bufferevent_socket_new(s->api.base, fd, BEV_OPT_CLOSE_ON_FREE);
	return bufferevent_openssl_socket_new(s->api.base, fd, SSL_new(s->tls),
					      BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int len, void *context)
{
	const struct listening *l = context;
	struct server *s = l->server;
	const struct connection_handler handler = api_handler(&s->api);
	struct bufferevent *transport;

	(void)listener;
	(void)address;
	(void)len;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if ((l->place.is_unix && !is_owner(fd)) ||
	    s->api.connections.count >= CONNECTIONS_MAX + (l->place.is_unix ? OWNERS_SPARE : 0)) {
		(void)close(fd);
		return;
	}
	transport = make_transport(s, fd, l->place.is_unix);
	if (!transport) {
		(void)close(fd);
		return;
	}
	connection_serve(&s->api.connections, transport, &handler, &l->place);
}

/* Out of descriptors: pause, clients wait a little longer. */
static void on_accept_trouble(struct evconnlistener *listener, void *context)
{
	(void)listener;
	(void)context;
	(void)usleep(10000);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static void add_listener(struct server *s, const struct sockaddr *address, socklen_t len,
			 const char *where, bool is_unix)
{
	struct listening *l = &s->listening[s->listener_count];
	struct evconnlistener *listener;

	if (s->listener_count == LISTENERS_MAX)
		fail("more than %u places to listen at", LISTENERS_MAX);
	*l = (struct listening){ s, { .is_unix = is_unix, .is_tls = s->tls && !is_unix } };
	if (!is_unix) {
		memcpy(&l->place.address, address, len);
		l->place.is_loopback = is_loopback(&l->place.address);
	}
	listener = evconnlistener_new_bind(s->api.base, on_accept, l,
					   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC |
						   LEV_OPT_REUSEABLE,
					   BACKLOG, address, (int)len);
	if (!listener)
		fail("listen at %s: %s", where, strerror(errno));
	evconnlistener_set_error_cb(listener, on_accept_trouble);
	s->listeners[s->listener_count++] = listener;
}

static void listen_unix(struct server *s, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t old = umask(0177);

	if (strlen(path) >= sizeof(address.sun_path))
		fail("the path of a socket has at most %zu bytes: %s", sizeof(address.sun_path) - 1,
		     path);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	/* only a socket that a server has left behind */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(probe, (struct sockaddr *)&address, sizeof(address)) == 0)
			fail("another server listens at %s", path);
		(void)close(probe);
		(void)unlink(path);
	}
	s->unix_paths[s->listener_count] = mem_dup(path);
	add_listener(s, (struct sockaddr *)&address, sizeof(address), path, true);
	(void)umask(old);
}

static void listen_tcp(struct server *s, const char *where)
{
	struct sockaddr_storage address = { 0 };
	int len = sizeof(address);

	if (evutil_parse_sockaddr_port(where, (struct sockaddr *)&address, &len) < 0 ||
	    ((struct sockaddr_in *)&address)->sin_port == 0)
		fail("--listen: '%s' is not ADDRESS:PORT or unix:PATH", where);
	if (!is_loopback(&address) && s->api.keys.count == 0)
		fail("--listen: %s can be reached from elsewhere: that needs a key "
		     "(--api-key-file)",
		     where);
	if (!is_loopback(&address) && !s->tls)
		(void)fprintf(stderr,
			      "agentkernel: keys and data go to %s unencrypted (--tls-cert, "
			      "--tls-key)\n",
			      where);
	if (is_loopback(&address) && s->api.keys.count == 0)
		(void)fprintf(stderr,
			      "agentkernel: every user of this machine can use %s (--api-key-file "
			      "asks for a key; a unix: socket is yours alone)\n",
			      where);
	add_listener(s, (struct sockaddr *)&address, (socklen_t)len, where, false);
}

static void open_tls(struct server *s)
{
	if (!s->cert != !s->key)
		fail("--tls-cert and --tls-key go together");
	if (!s->cert)
		return;
	s->tls = SSL_CTX_new(TLS_server_method());
	if (!s->tls || SSL_CTX_set_min_proto_version(s->tls, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_use_certificate_chain_file(s->tls, s->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(s->tls, s->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(s->tls) != 1)
		fail("TLS: %s", ERR_reason_error_string(ERR_get_error()));
}

/* ---- start and end ---- */

static void read_keys(struct server *s)
{
	const char *text = getenv(KEYS_VARIABLE);
	struct err e = { 0 };

	if (keys_parse(text ? text : "", &s->api.keys, &e) < 0)
		fail("--api-key-file: %s", e.msg);
	if (s->isolate && s->api.keys.count == 0)
		fail("--isolate-keys, --no-isolate-keys: there are no keys (--api-key-file)");
	if (s->isolate)
		s->api.keys.is_isolated = strcmp(s->isolate, "yes") == 0;
	text = getenv(SECRET_VARIABLE);
	if (!text || !sitelink_init(&s->api.link, text))
		fail("agentkernel-serve is started by 'agentkernel serve'");
	(void)unsetenv(SECRET_VARIABLE);
	(void)unsetenv(KEYS_VARIABLE);
	(void)unsetenv("AGENTKERNEL_API_KEY");
}

static bool read_rate(struct server *s, const char *text)
{
	char *end;
	uint64_t calls = strtoull(text, &end, 10), window_ms;

	if (*end != ':' || calls == 0 || s->api.rate_count == API_RATES_MAX)
		return false;
	window_ms = strtoull(end + 1, &end, 10);
	if (*end || window_ms == 0)
		return false;
	s->api.rates[s->api.rate_count++] = ratelimit_new(calls, window_ms);
	return true;
}

static void read_words(struct server *s, char **words, char **ret_places, unsigned *ret_count)
{
	if (!words[0] || !words[1] || !words[2])
		fail("agentkernel-serve is started by 'agentkernel serve'");
	s->api.options.launcher = words[1];
	s->api.audit_path = words[2];
	s->api.state_path = mem_dup_bytes(
		words[2], strrchr(words[2], '/') ? (size_t)(strrchr(words[2], '/') - words[2]) : 0);
	for (words += 3; *words; words++) {
		if (strncmp(*words, "--", 2) != 0) {
			buf_add(&s->rows, *words, strlen(*words) + 1);
			continue;
		}
		if (!words[1])
			fail("%s needs a value", *words);
		if (strcmp(*words, "--listen") == 0 && *ret_count < LISTENERS_MAX)
			ret_places[(*ret_count)++] = words[1];
		else if (strcmp(*words, "--tls-cert") == 0)
			s->cert = words[1];
		else if (strcmp(*words, "--tls-key") == 0)
			s->key = words[1];
		else if (strcmp(*words, "--domain") == 0)
			s->api.domain = words[1];
		else if (strcmp(*words, "--isolate") == 0)
			s->isolate = words[1];
		else if (strcmp(*words, "--rate") != 0 || !read_rate(s, words[1]))
			fail("'%s %s' cannot be", words[0], words[1]);
		words++;
	}
}

static void on_drained(evutil_socket_t fd, short what, void *context)
{
	struct server *s = context;
	struct timeval later = { .tv_usec = 50000 };

	(void)fd;
	(void)what;
	if ((s->api.connections.count == 0 && s->api.slots.count[SLOTS_CALL] == 0 &&
	     s->api.slots.count[SLOTS_CARE] == 0) ||
	    clock_now_ms() >= s->api.started_ms) {
		event_base_loopbreak(s->api.base);
		return;
	}
	event_add(s->drain, &later);
}

/* Finishes running requests and accepts no new ones. A second signal ends at once. */
static void on_end(evutil_socket_t number, short what, void *context)
{
	struct server *s = context;

	(void)number;
	(void)what;
	if (s->drain) {
		event_base_loopbreak(s->api.base);
		return;
	}
	for (unsigned i = 0; i < s->listener_count; i++) {
		evconnlistener_free(s->listeners[i]);
		if (s->unix_paths[i])
			(void)unlink(s->unix_paths[i]);
	}
	s->listener_count = 0;
	connection_drain(&s->api.connections);
	s->api.started_ms = clock_now_ms() + DRAIN_MAX_S * 1000; /* now the time to give up */
	s->drain = event_new(s->api.base, -1, 0, on_drained, s);
	on_drained(-1, 0, s);
}

/* Raises the descriptor limit to what is needed, as far as allowed. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	/* static, so that leak checkers do not report what it holds at the end */
	static struct server s;
	char *places[LISTENERS_MAX];
	unsigned place_count = 0;

	(void)argc;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN); /* see rpc/call.h */
	raise_descriptors();
	buf_init(&s.rows, BUF_TEXT_MAX_BYTES);
	argv = title_init(argv);
	read_words(&s, argv, places, &place_count);
	title_set(TITLE_HTTP_SERVER, place_count > 0 ? places[0] : NULL);
	read_keys(&s);
	s.api.base = event_base_new();
	s.api.sites = sitereach_new(&s.api);
	s.api.options.environ_list = environ;
	s.api.options.rows = &s.rows;
	s.api.started_ms = clock_now_ms();
	open_tls(&s);
	for (unsigned i = 0; i < place_count; i++) {
		if (strncmp(places[i], "unix:", 5) == 0)
			listen_unix(&s, places[i] + 5);
		else
			listen_tcp(&s, places[i]);
	}
	s.ends[0] = evsignal_new(s.api.base, SIGTERM, on_end, &s);
	s.ends[1] = evsignal_new(s.api.base, SIGINT, on_end, &s);
	event_add(s.ends[0], NULL);
	event_add(s.ends[1], NULL);
	event_base_dispatch(s.api.base);
	return 0;
}
