/* published - the host's listening sockets for published ports; see published.h. */
#include "engine/published.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "host/portowner.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096

void published_init(struct published *p)
{
	*p = (struct published){ 0 };
}

void published_done(struct published *p)
{
	while (p->count > 0)
		cleanup_closep(&p->ports[--p->count].listen_fd);
	free(p->ports);
	published_init(p);
}

static int explain(const struct publish *spec, int error, struct err *e)
{
	char text[ADDRESS_TEXT_MAX_BYTES], owner[PORTOWNER_TEXT_MAX_BYTES];

	(void)address_format(&spec->address, text);
	if (error == EADDRINUSE)
		return err_set(e, ERR_BUSY, "port %u of %s is taken by %s", spec->port, text,
			       portowner_find(spec->port, owner));
	if (error == EACCES)
		return err_set(e, ERR_DENIED,
			       "this user may not use port %u of the host: ports below 1024 are "
			       "root's (use a higher one, as in 8080:%u)",
			       spec->port, spec->inner);
	if (error == EADDRNOTAVAIL)
		return err_set(e, ERR_INVALID, "%s is not an address of this machine", text);
	return err_sys(e, error, "listen on port %u of %s", spec->port, text);
}

static int listen_on(const struct publish *spec, uint16_t *ret_port, int *ret_fd, struct err *e)
{
	static const int on = 1;
	struct sockaddr_storage sa;
	socklen_t len = address_to_sockaddr(&spec->address, spec->port, &sa);
	cleanup_fd int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct address ignored;

	if (fd < 0)
		return explain(spec, errno, e);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (sa.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return explain(spec, errno, e);
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
	    !address_from_sockaddr((const struct sockaddr *)&sa, &ignored, ret_port))
		return err_sys(e, errno, "read the address of a published port");
	*ret_fd = take_fd(&fd);
	return 0;
}

void published_adopt(struct published *p, const struct published_port *port)
{
	if (p->count == PUBLISHED_MAX) {
		(void)close(port->listen_fd);
		return;
	}
	p->ports = mem_grow(p->ports, p->count + 1, sizeof(*p->ports));
	p->ports[p->count] = *port;
	p->ports[p->count++].number = ++p->last_number;
}

void published_keep_only(struct published *p, char *const *texts)
{
	char own[PUBLISH_TEXT_MAX_BYTES];

	for (unsigned i = p->count; i-- > 0;)
		if (p->ports[i].is_kept &&
		    !keyrows_list_has(texts, publish_format(&p->ports[i].spec, own)))
			published_remove(p, p->ports[i].number);
}

int published_add(struct published *p, const struct publish *spec, bool is_kept,
		  const struct published_port **ret, struct err *e)
{
	struct published_port port = { .spec = *spec, .is_kept = is_kept, .listen_fd = -1 };

	if (p->count == PUBLISHED_MAX)
		return err_set(e, ERR_LIMIT, "more than %u published ports", PUBLISHED_MAX);
	if (listen_on(spec, &port.port, &port.listen_fd, e) < 0)
		return -1;
	published_adopt(p, &port);
	*ret = &p->ports[p->count - 1];
	return 0;
}

void published_remove(struct published *p, uint32_t number)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->ports[i].number != number)
			continue;
		cleanup_closep(&p->ports[i].listen_fd);
		memmove(&p->ports[i], &p->ports[i + 1], (p->count - i - 1) * sizeof(*p->ports));
		p->count--;
		return;
	}
}

int published_open(struct published *p, char *const *texts, struct err *e)
{
	const struct published_port *ignored;
	struct publish spec;

	for (; texts && *texts; texts++)
		if (!published_find(p, *texts) &&
		    (publish_parse(*texts, &spec, e) < 0 ||
		     published_add(p, &spec, true, &ignored, e) < 0)) {
			published_done(p);
			return -1;
		}
	return 0;
}

const struct published_port *published_find(const struct published *p, const char *text)
{
	char own[PUBLISH_TEXT_MAX_BYTES];

	for (unsigned i = 0; i < p->count; i++)
		if (p->ports[i].is_kept &&
		    strcmp(publish_format(&p->ports[i].spec, own), text) == 0)
			return &p->ports[i];
	return NULL;
}

const char *published_format(const struct published_port *port, char out[PUBLISH_TEXT_MAX_BYTES])
{
	char address[ADDRESS_TEXT_MAX_BYTES];
	bool is_v6 = port->spec.address.bits == 128;

	(void)snprintf(out, PUBLISH_TEXT_MAX_BYTES, "%s%s%s:%u", is_v6 ? "[" : "",
		       address_format(&port->spec.address, address), is_v6 ? "]" : "", port->port);
	return out;
}
