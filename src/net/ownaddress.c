/*
 * ownaddress - asks the kernel for the type of a route; see ownaddress.h.
 *
 * Theory of operation. The source address that the kernel would choose is no criterion: for a
 * secondary address it is the interface's primary one, for a local route any. So we query the route
 * itself (RTM_GETROUTE), with protocol and port, because policy routing may depend on them. The
 * kernel answers before send() returns: recv() never blocks, and no answer is a failure.
 *
 * An error that means "no route to this address" is an answer too: connecting will fail with the
 * same error. After any other error the owner is unknown, and the address stays blocked.
 */
#include "net/ownaddress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWERS_MAX 8 /* read per query: late answers to earlier ones come first */
#define ANSWER_MAX_BYTES 4096u

struct question {
	struct nlmsghdr header;
	struct rtmsg route;
	uint8_t attributes[64];
};

static void put(struct question *q, uint16_t type, const void *value, size_t len)
{
	struct rtattr head = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(len) };
	uint8_t *place = (uint8_t *)q + q->header.nlmsg_len;

	memcpy(place, &head, sizeof(head));
	memcpy(place + RTA_LENGTH(0), value, len);
	q->header.nlmsg_len += (uint32_t)RTA_SPACE(len);
}

int ownaddress_open(int *ret_fd, struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return err_sys(e, errno, "open a socket to the kernel's routing table");
	*ret_fd = fd;
	return 0;
}

static int send_question(int fd, const struct address *a, uint16_t port, uint32_t number)
{
	const uint8_t protocol = IPPROTO_TCP;
	const uint16_t network_port = htons(port);
	struct question q = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.route)),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_seq = number },
		.route = { .rtm_family = a->bits == 32 ? AF_INET : AF_INET6,
			   .rtm_dst_len = a->bits },
	};

	put(&q, RTA_DST, a->bytes, a->bits / 8u);
	put(&q, RTA_IP_PROTO, &protocol, sizeof(protocol));
	put(&q, RTA_DPORT, &network_port, sizeof(network_port));
	return send(fd, &q, q.header.nlmsg_len, MSG_DONTWAIT) < 0 ? -1 : 0;
}

static enum egress_owner read_type(uint8_t type)
{
	switch (type) {
	case RTN_LOCAL:
	case RTN_ANYCAST:   /* a router's own address, shared with others */
	case RTN_BROADCAST: /* is also delivered to us */
		return EGRESS_OURS;
	default:
		return EGRESS_NOT_OURS;
	}
}

static enum egress_owner read_error(int error)
{
	return error == -ENETUNREACH || error == -EHOSTUNREACH || error == -EACCES
		       ? EGRESS_NOT_OURS
		       : EGRESS_OWNER_UNKNOWN;
}

/* False: the answer to another query. */
static bool read_answer(const uint8_t *bytes, size_t len, uint32_t number, enum egress_owner *ret)
{
	struct nlmsghdr header;
	struct rtmsg route;
	int error;

	*ret = EGRESS_OWNER_UNKNOWN;
	if (len < sizeof(header))
		return true;
	memcpy(&header, bytes, sizeof(header));
	if (header.nlmsg_seq != number)
		return false;
	if (header.nlmsg_type == RTM_NEWROUTE && len >= NLMSG_LENGTH(sizeof(route))) {
		memcpy(&route, bytes + NLMSG_HDRLEN, sizeof(route));
		*ret = read_type(route.rtm_type);
	} else if (header.nlmsg_type == NLMSG_ERROR && len >= NLMSG_LENGTH(sizeof(error))) {
		memcpy(&error, bytes + NLMSG_HDRLEN, sizeof(error));
		*ret = read_error(error);
	}
	return true;
}

enum egress_owner ownaddress_ask(int fd, const struct address *a, uint16_t port)
{
	static uint32_t number;
	uint8_t answer[ANSWER_MAX_BYTES];
	enum egress_owner owner;

	if (send_question(fd, a, port, ++number) < 0)
		return EGRESS_OWNER_UNKNOWN;
	for (int i = 0; i < ANSWERS_MAX; i++) {
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

		if (n < 0)
			return EGRESS_OWNER_UNKNOWN;
		if (read_answer(answer, (size_t)n, number, &owner))
			return owner;
	}
	return EGRESS_OWNER_UNKNOWN;
}
