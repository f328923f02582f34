/*
 * netns - sets up a network namespace whose only way out is the gate; see netns.h.
 *
 * Theory of operation. Two batches of netlink messages: one for the interface, its addresses and
 * its routes, one for the nftables rules. The kernel processes them within sendmsg() and answers
 * only failures, so an empty receive queue means success.
 *
 *	own:         127.0.0.0/8, ::1 and the sandbox's own addresses: accept
 *	prerouting:  own; a TCP SYN goes to the gate's listener; other TCP belongs to a connection
 *	             that exists; UDP to port 53 goes to the gate; the rest is dropped
 *	output:      own; TCP; UDP to port 53; the rest is rejected, so that it fails at once
 *
 * TPROXY instead of REDIRECT: it passes the packet to our socket unchanged and without connection
 * tracking, so getsockname() returns the original destination. Packets are rejected in output
 * because only there the sender's own call fails.
 *
 * Multicast has no route ("throw", and no other table has one): sending to a group fails with
 * ENETUNREACH and joining one with ENODEV, as on a machine without a network. If joining succeeded,
 * the program would wait for packets that never arrive.
 *
 * Without the rules the routes still end at loopback: every connection would be refused.
 */
#include "net/netns.h"

#include "base/cleanup.h"
#include "net/plan.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH_MAX_BYTES 6144
#define LOOPBACK_INDEX 1 /* always, in a new namespace */
#define LISTEN_BACKLOG 4096
#define TABLE_NAME "gate"
#define PRIORITY_MANGLE (-150)
#define TCP_FLAGS_OFFSET 13
#define TCP_FIN_SYN_RST_ACK 0x17
#define TCP_SYN 0x02
#define V4_DESTINATION_OFFSET 16
#define V6_DESTINATION_OFFSET 24
#define MULTICAST_V4_FIRST_BYTE 0xe0 /* 224.0.0.0/4 */
#define MULTICAST_V4_PREFIX_BITS 4
#define MULTICAST_V6_FIRST_BYTE 0xff /* ff00::/8 */
#define MULTICAST_V6_PREFIX_BITS 8

static const uint8_t own_v6[16] = PLAN_OWN_V6;

/* ---- writing netlink ---- */

struct batch {
	_Alignas(4) uint8_t bytes[BATCH_MAX_BYTES];
	size_t len;
	size_t message; /* start of the last message */
};

static void *add_bytes(struct batch *b, const void *bytes, size_t len)
{
	uint8_t *place = b->bytes + b->len;

	assert(b->len + NLMSG_ALIGN(len) <= sizeof(b->bytes)); /* all ours, of fixed size */
	memset(place, 0, NLMSG_ALIGN(len));
	if (bytes)
		memcpy(place, bytes, len);
	b->len += NLMSG_ALIGN(len);
	return place;
}

static void begin(struct batch *b, uint16_t type, uint16_t flags, const void *head, size_t head_len)
{
	struct nlmsghdr header = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };

	b->message = b->len;
	(void)add_bytes(b, &header, sizeof(header));
	(void)add_bytes(b, head, head_len);
}

static void end(struct batch *b)
{
	struct nlmsghdr *header = (struct nlmsghdr *)(void *)(b->bytes + b->message);

	header->nlmsg_len = (uint32_t)(b->len - b->message);
}

static void put(struct batch *b, uint16_t type, const void *value, size_t len)
{
	struct nlattr head = { .nla_type = type, .nla_len = (uint16_t)(sizeof(head) + len) };

	(void)add_bytes(b, &head, sizeof(head));
	(void)add_bytes(b, value, len);
}

static void put_text(struct batch *b, uint16_t type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

static void put_be32(struct batch *b, uint16_t type, uint32_t value)
{
	uint32_t big_endian = htonl(value);

	put(b, type, &big_endian, sizeof(big_endian));
}

static size_t open_nest(struct batch *b, uint16_t type)
{
	size_t at = b->len;

	put(b, (uint16_t)(type | NLA_F_NESTED), NULL, 0);
	return at;
}

static void close_nest(struct batch *b, size_t at)
{
	struct nlattr *head = (struct nlattr *)(void *)(b->bytes + at);

	head->nla_len = (uint16_t)(b->len - at);
}

static int lacks_rules(const char *what, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED,
		       "%s: this kernel lacks nftables with TPROXY (--no-network runs without)",
		       what);
}

/* The kernel has processed the batch when send() returns; it answers failures only. */
static int commit(const struct batch *b, int protocol, const char *what, struct err *e)
{
	cleanup_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	_Alignas(4) uint8_t answer[1024];
	const struct nlmsghdr *header = (const void *)answer;
	const struct nlmsgerr *error = (const void *)(answer + NLMSG_HDRLEN);
	ssize_t n;

	if (fd < 0 && errno == EPROTONOSUPPORT)
		return lacks_rules(what, e);
	if (fd < 0 || send(fd, b->bytes, b->len, 0) < 0)
		return err_sys(e, errno, "%s", what);
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return err_sys(e, errno, "%s", what);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(error->error)) || header->nlmsg_type != NLMSG_ERROR)
		return err_set(e, ERR_SYSTEM, "%s: the kernel gave an answer that makes no sense",
			       what);
	if (error->error == -ENOENT || error->error == -EOPNOTSUPP)
		return lacks_rules(what, e);
	return err_sys(e, -error->error, "%s", what);
}

/* ---- the interface, its addresses and routes ---- */

static void bring_up_loopback(struct batch *b)
{
	const struct ifinfomsg link = {
		.ifi_index = LOOPBACK_INDEX,
		.ifi_flags = IFF_UP,
		.ifi_change = IFF_UP,
	};

	begin(b, RTM_NEWLINK, 0, &link, sizeof(link));
	end(b);
}

static void add_own_address(struct batch *b, uint8_t family, const void *address, size_t len)
{
	const struct ifaddrmsg head = {
		.ifa_family = family,
		.ifa_prefixlen = (uint8_t)(len * 8),
		.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
		.ifa_scope = RT_SCOPE_UNIVERSE,
		.ifa_index = LOOPBACK_INDEX,
	};

	begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	put(b, IFA_LOCAL, address, len);
	put(b, IFA_ADDRESS, address, len);
	end(b);
}

/*
 * Makes every address local; connections come from the sandbox's own address. No packet is ever
 * lost here, so the host's congestion control would only add delay: some algorithms pace.
 */
static void route_everything_here(struct batch *b, uint8_t family, const void *own, size_t len)
{
	const struct rtmsg head = {
		.rtm_family = family,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		.rtm_type = RTN_LOCAL,
	};
	const uint32_t interface = LOOPBACK_INDEX;
	size_t metrics;

	begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	put(b, RTA_OIF, &interface, sizeof(interface));
	put(b, RTA_PREFSRC, own, len);
	metrics = open_nest(b, RTA_METRICS);
	put_text(b, RTAX_CC_ALGO, PLAN_CONGESTION);
	close_nest(b, metrics);
	end(b);
}

/* Makes a range unreachable; its prefix must lie within its first byte. */
static void leave_unrouted(struct batch *b, uint8_t family, uint8_t first_byte, uint8_t prefix_bits)
{
	const struct rtmsg head = {
		.rtm_family = family,
		.rtm_dst_len = prefix_bits,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_THROW,
	};
	const uint8_t prefix[16] = { first_byte };

	begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof(head));
	put(b, RTA_DST, prefix, family == AF_INET ? 4 : 16);
	end(b);
}

static int make_routes(bool has_v6, struct err *e)
{
	const uint32_t own_v4 = htonl(PLAN_OWN_V4);
	struct batch b = { .len = 0 };

	bring_up_loopback(&b);
	add_own_address(&b, AF_INET, &own_v4, sizeof(own_v4));
	route_everything_here(&b, AF_INET, &own_v4, sizeof(own_v4));
	leave_unrouted(&b, AF_INET, MULTICAST_V4_FIRST_BYTE, MULTICAST_V4_PREFIX_BITS);
	if (has_v6) {
		add_own_address(&b, AF_INET6, own_v6, sizeof(own_v6));
		route_everything_here(&b, AF_INET6, own_v6, sizeof(own_v6));
		leave_unrouted(&b, AF_INET6, MULTICAST_V6_FIRST_BYTE, MULTICAST_V6_PREFIX_BITS);
	}
	return commit(&b, NETLINK_ROUTE, "set up the sandbox's routes", e);
}

/* ---- rules ---- */

static void begin_nft(struct batch *b, uint16_t type, uint16_t flags)
{
	const struct nfgenmsg head = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

	begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &head, sizeof(head));
}

static void mark_batch(struct batch *b, uint16_t type)
{
	const struct nfgenmsg head = {
		.version = NFNETLINK_V0,
		.res_id = htons(NFNL_SUBSYS_NFTABLES),
	};

	begin(b, type, 0, &head, sizeof(head));
	end(b);
}

static void add_table(struct batch *b)
{
	begin_nft(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	put_text(b, NFTA_TABLE_NAME, TABLE_NAME);
	end(b);
}

static void add_chain(struct batch *b, const char *name)
{
	begin_nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	put_text(b, NFTA_CHAIN_TABLE, TABLE_NAME);
	put_text(b, NFTA_CHAIN_NAME, name);
	end(b);
}

static void add_hooked_chain(struct batch *b, const char *name, uint32_t hook, int32_t priority)
{
	size_t nest;

	begin_nft(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	put_text(b, NFTA_CHAIN_TABLE, TABLE_NAME);
	put_text(b, NFTA_CHAIN_NAME, name);
	nest = open_nest(b, NFTA_CHAIN_HOOK);
	put_be32(b, NFTA_HOOK_HOOKNUM, hook);
	put_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	close_nest(b, nest);
	put_text(b, NFTA_CHAIN_TYPE, "filter");
	put_be32(b, NFTA_CHAIN_POLICY, NF_DROP);
	end(b);
}

static size_t begin_rule(struct batch *b, const char *chain)
{
	begin_nft(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	put_text(b, NFTA_RULE_TABLE, TABLE_NAME);
	put_text(b, NFTA_RULE_CHAIN, chain);
	return open_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void end_rule(struct batch *b, size_t nest)
{
	close_nest(b, nest);
	end(b);
}

struct expression {
	size_t element, data;
};

static struct expression open_expression(struct batch *b, const char *name)
{
	struct expression x;

	x.element = open_nest(b, NFTA_LIST_ELEM);
	put_text(b, NFTA_EXPR_NAME, name);
	x.data = open_nest(b, NFTA_EXPR_DATA);
	return x;
}

static void close_expression(struct batch *b, struct expression x)
{
	close_nest(b, x.data);
	close_nest(b, x.element);
}

static void put_value(struct batch *b, uint16_t type, const void *value, size_t len)
{
	size_t nest = open_nest(b, type);

	put(b, NFTA_DATA_VALUE, value, len);
	close_nest(b, nest);
}

static void if_equal(struct batch *b, const void *value, size_t len)
{
	struct expression x = open_expression(b, "cmp");

	put_be32(b, NFTA_CMP_SREG, NFT_REG_1);
	put_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
	put_value(b, NFTA_CMP_DATA, value, len);
	close_expression(b, x);
}

static void if_meta(struct batch *b, uint32_t key, uint8_t value)
{
	struct expression x = open_expression(b, "meta");

	put_be32(b, NFTA_META_DREG, NFT_REG_1);
	put_be32(b, NFTA_META_KEY, key);
	close_expression(b, x);
	if_equal(b, &value, sizeof(value));
}

static void load_payload(struct batch *b, uint32_t base, uint32_t offset, uint32_t len)
{
	struct expression x = open_expression(b, "payload");

	put_be32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_be32(b, NFTA_PAYLOAD_BASE, base);
	put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	put_be32(b, NFTA_PAYLOAD_LEN, len);
	close_expression(b, x);
}

static void if_payload(struct batch *b, uint32_t base, uint32_t offset, const void *value,
		       size_t len)
{
	load_payload(b, base, offset, (uint32_t)len);
	if_equal(b, value, len);
}

static void if_syn(struct batch *b)
{
	static const uint8_t mask = TCP_FIN_SYN_RST_ACK, syn = TCP_SYN, zero;
	struct expression x;

	load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS_OFFSET, sizeof(mask));
	x = open_expression(b, "bitwise");
	put_be32(b, NFTA_BITWISE_SREG, NFT_REG_1);
	put_be32(b, NFTA_BITWISE_DREG, NFT_REG_1);
	put_be32(b, NFTA_BITWISE_LEN, sizeof(mask));
	put_value(b, NFTA_BITWISE_MASK, &mask, sizeof(mask));
	put_value(b, NFTA_BITWISE_XOR, &zero, sizeof(zero));
	close_expression(b, x);
	if_equal(b, &syn, sizeof(syn));
}

static void if_dns(struct batch *b)
{
	const uint16_t port = htons(PLAN_DNS_PORT);

	if_meta(b, NFT_META_L4PROTO, IPPROTO_UDP);
	if_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, &port, sizeof(port));
}

static void load_register(struct batch *b, uint32_t reg, const void *value, size_t len)
{
	struct expression x = open_expression(b, "immediate");

	put_be32(b, NFTA_IMMEDIATE_DREG, reg);
	put_value(b, NFTA_IMMEDIATE_DATA, value, len);
	close_expression(b, x);
}

/* `address` NULL: the listener is bound to all addresses. */
static void to_socket(struct batch *b, uint8_t family, const void *address, size_t len,
		      uint16_t port)
{
	const uint16_t port_be = htons(port);
	struct expression x;

	if (address)
		load_register(b, NFT_REG_2, address, len);
	load_register(b, NFT_REG_1, &port_be, sizeof(port_be));
	x = open_expression(b, "tproxy");
	put_be32(b, NFTA_TPROXY_FAMILY, family);
	if (address)
		put_be32(b, NFTA_TPROXY_REG_ADDR, NFT_REG_2);
	put_be32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	close_expression(b, x);
}

static void verdict(struct batch *b, int32_t code, const char *chain)
{
	struct expression x = open_expression(b, "immediate");
	size_t data, nest;

	put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = open_nest(b, NFTA_IMMEDIATE_DATA);
	nest = open_nest(b, NFTA_DATA_VERDICT);
	put_be32(b, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain)
		put_text(b, NFTA_VERDICT_CHAIN, chain);
	close_nest(b, nest);
	close_nest(b, data);
	close_expression(b, x);
}

static void reject(struct batch *b)
{
	static const uint8_t code = NFT_REJECT_ICMPX_PORT_UNREACH;
	struct expression x = open_expression(b, "reject");

	put_be32(b, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	close_expression(b, x);
}

static void accept_destination(struct batch *b, uint8_t family, uint32_t offset,
			       const void *address, size_t len)
{
	size_t rule = begin_rule(b, "own");

	if_meta(b, NFT_META_NFPROTO, family);
	if_payload(b, NFT_PAYLOAD_NETWORK_HEADER, offset, address, len);
	verdict(b, NF_ACCEPT, NULL);
	end_rule(b, rule);
}

static void add_own_rules(struct batch *b, bool has_v6)
{
	static const uint8_t loopback_v4 = 127; /* the first byte is the whole prefix */
	static const uint8_t loopback_v6[16] = { [15] = 1 };
	const uint32_t own_v4 = htonl(PLAN_OWN_V4);

	accept_destination(b, NFPROTO_IPV4, V4_DESTINATION_OFFSET, &loopback_v4, 1);
	accept_destination(b, NFPROTO_IPV4, V4_DESTINATION_OFFSET, &own_v4, sizeof(own_v4));
	if (!has_v6)
		return;
	accept_destination(b, NFPROTO_IPV6, V6_DESTINATION_OFFSET, loopback_v6, 16);
	accept_destination(b, NFPROTO_IPV6, V6_DESTINATION_OFFSET, own_v6, 16);
}

static void jump_own(struct batch *b, const char *chain)
{
	size_t rule = begin_rule(b, chain);

	verdict(b, NFT_JUMP, "own");
	end_rule(b, rule);
}

static void accept_tcp(struct batch *b, const char *chain)
{
	size_t rule = begin_rule(b, chain);

	if_meta(b, NFT_META_L4PROTO, IPPROTO_TCP);
	verdict(b, NF_ACCEPT, NULL);
	end_rule(b, rule);
}

static void dns_to_gate(struct batch *b, uint8_t family, const void *own, size_t len)
{
	size_t rule = begin_rule(b, "prerouting");

	if_meta(b, NFT_META_NFPROTO, family);
	if_dns(b);
	to_socket(b, family, own, len, PLAN_DNS_PORT);
	verdict(b, NF_ACCEPT, NULL);
	end_rule(b, rule);
}

static void add_prerouting_rules(struct batch *b, bool has_v6)
{
	const uint32_t own_v4 = htonl(PLAN_OWN_V4);
	size_t rule;

	jump_own(b, "prerouting");
	rule = begin_rule(b, "prerouting");
	if_meta(b, NFT_META_L4PROTO, IPPROTO_TCP);
	if_syn(b);
	to_socket(b, NFPROTO_UNSPEC, NULL, 0, PLAN_GATE_PORT);
	verdict(b, NF_ACCEPT, NULL);
	end_rule(b, rule);
	accept_tcp(b, "prerouting");
	dns_to_gate(b, NFPROTO_IPV4, &own_v4, sizeof(own_v4));
	if (has_v6)
		dns_to_gate(b, NFPROTO_IPV6, own_v6, sizeof(own_v6));
}

static void add_output_rules(struct batch *b)
{
	size_t rule;

	jump_own(b, "output");
	accept_tcp(b, "output");
	rule = begin_rule(b, "output");
	if_dns(b);
	verdict(b, NF_ACCEPT, NULL);
	end_rule(b, rule);
	rule = begin_rule(b, "output");
	reject(b);
	end_rule(b, rule);
}

static int make_rules(bool has_v6, struct err *e)
{
	struct batch b = { .len = 0 };

	mark_batch(&b, NFNL_MSG_BATCH_BEGIN);
	add_table(&b);
	add_chain(&b, "own");
	add_hooked_chain(&b, "prerouting", NF_INET_PRE_ROUTING, PRIORITY_MANGLE);
	add_hooked_chain(&b, "output", NF_INET_LOCAL_OUT, 0);
	add_own_rules(&b, has_v6);
	add_prerouting_rules(&b, has_v6);
	add_output_rules(&b);
	mark_batch(&b, NFNL_MSG_BATCH_END);
	return commit(&b, NETLINK_NETFILTER, "set up the sandbox's network rules", e);
}

/* ---- sockets ---- */

static int set_on(int fd, int level, int option)
{
	static const int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on));
}

/* With IPv6, IPv4 connections arrive as v4-mapped addresses. */
static int listen_tcp(bool has_v6, int *ret_fd, struct err *e)
{
	cleanup_fd int fd =
		socket(has_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_port = htons(PLAN_GATE_PORT) };
	const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(PLAN_GATE_PORT) };
	const void *any = has_v6 ? (const void *)&v6 : (const void *)&v4;

	if (fd < 0 ||
	    (has_v6 ? set_on(fd, IPPROTO_IPV6, IPV6_TRANSPARENT)
		    : set_on(fd, IPPROTO_IP, IP_TRANSPARENT)) < 0 ||
	    bind(fd, any, has_v6 ? sizeof(v6) : sizeof(v4)) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return err_sys(e, errno, "listen for the sandbox's connections");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, PLAN_CONGESTION, strlen(PLAN_CONGESTION));
	*ret_fd = take_fd(&fd);
	return 0;
}

static int listen_dns_v4(int *ret_fd, struct err *e)
{
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const struct sockaddr_in own = { .sin_family = AF_INET,
					 .sin_port = htons(PLAN_DNS_PORT),
					 .sin_addr.s_addr = htonl(PLAN_OWN_V4) };

	if (fd < 0 || set_on(fd, IPPROTO_IP, IP_TRANSPARENT) < 0 ||
	    set_on(fd, IPPROTO_IP, IP_PKTINFO) < 0 ||
	    bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
		return err_sys(e, errno, "listen for the sandbox's DNS queries");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int listen_dns_v6(int *ret_fd, struct err *e)
{
	cleanup_fd int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_port = htons(PLAN_DNS_PORT) };

	memcpy(own.sin6_addr.s6_addr, own_v6, sizeof(own_v6));
	if (fd < 0 || set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0 ||
	    set_on(fd, IPPROTO_IPV6, IPV6_TRANSPARENT) < 0 ||
	    set_on(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) < 0 ||
	    bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
		return err_sys(e, errno, "listen for the sandbox's DNS queries over IPv6");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A kernel may be built or booted without it. */
static bool kernel_has_v6(void)
{
	cleanup_fd int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

int netns_build(int ret_sockets[NETNS_SOCKET_COUNT], unsigned *ret_count, struct err *e)
{
	bool has_v6 = kernel_has_v6() && make_routes(true, e) == 0;
	cleanup_fd int tcp_fd = -1;
	cleanup_fd int dns_v4_fd = -1;
	cleanup_fd int dns_v6_fd = -1;

	/* fallback if IPv6 exists but is disabled (disable_ipv6): then its address is refused */
	if ((!has_v6 && make_routes(false, e) < 0) || make_rules(has_v6, e) < 0)
		return -1;
	if (listen_tcp(has_v6, &tcp_fd, e) < 0 || listen_dns_v4(&dns_v4_fd, e) < 0)
		return -1;
	if (has_v6 && listen_dns_v6(&dns_v6_fd, e) < 0)
		return -1;
	ret_sockets[NETNS_TCP] = take_fd(&tcp_fd);
	ret_sockets[NETNS_DNS_V4] = take_fd(&dns_v4_fd);
	ret_sockets[NETNS_DNS_V6] = take_fd(&dns_v6_fd);
	*ret_count = has_v6 ? NETNS_SOCKET_COUNT : NETNS_SOCKET_COUNT - 1;
	return 0;
}
