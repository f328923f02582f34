/*
 * network - what can be reached without a test network: the host's own listeners and sockets, and
 * the network namespace itself; see escape.h. tests/net/attacks.bats has the other network cases.
 */
#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MS 1500
#define HIGH_HALF 0xdead00000000ul
#define SO_MARK_ 36
#define IP_TRANSPARENT_ 19

/*
 * The gate completes a handshake before it knows the target: only a byte from the server is a
 * connection. The listeners send one at once.
 */
static void tally_tcp(struct tally *t, const char *address, long port)
{
	struct sockaddr_storage to = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to;
	bool is_v6 = strchr(address, ':');
	socklen_t len = is_v6 ? sizeof(*v6) : sizeof(*v4);
	struct pollfd polled;
	char byte;
	int fd;

	to.ss_family = is_v6 ? AF_INET6 : AF_INET;
	if (is_v6) {
		v6->sin6_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET6, address, &v6->sin6_addr);
	} else {
		v4->sin_port = htons((uint16_t)port);
		(void)inet_pton(AF_INET, address, &v4->sin_addr);
	}
	fd = socket(to.ss_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, len) < 0) {
		tally_error(t, errno);
		return;
	}
	polled = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (poll(&polled, 1, ANSWER_MS) > 0 && read(fd, &byte, 1) == 1)
		say_escaped("%s port %ld answers", address, port);
	tally_add(t, polled.revents ? "closed" : "silence");
	(void)close(fd);
}

static void host_loopback(void)
{
	struct tally t = { 0 };

	tally_tcp(&t, "127.0.0.1", canary_number("port"));
	tally_tcp(&t, "127.9.9.9", canary_number("port"));
	tally_tcp(&t, "0.0.0.0", canary_number("port"));
	tally_tcp(&t, "::1", canary_number("port"));
	tally_tcp(&t, "::ffff:127.0.0.1", canary_number("port"));
	tally_say(&t);
}

static void host_address(void)
{
	struct tally t = { 0 };

	tally_tcp(&t, canary("address"), canary_number("port"));
	tally_say(&t);
}

static void host_udp(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)canary_number("udp_port")) };
	struct timeval wait = { .tv_usec = 200000 };
	struct tally t = { 0 };
	char byte;

	for (int i = 0; i < 2; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM, 0);

		(void)inet_pton(AF_INET, i ? canary("address") : "127.0.0.1", &to.sin_addr);
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		if (sendto(fd, "escape", 6, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			tally_error(&t, errno);
		else if (recv(fd, &byte, 1, 0) == 1)
			say_escaped("a datagram was answered");
		else
			tally_add(&t, errno == EAGAIN ? "silence" : errno_name(errno));
		(void)close(fd);
	}
	tally_say(&t);
}

static void cloud_metadata(void)
{
	struct tally t = { 0 };

	tally_tcp(&t, "169.254.169.254", 80);
	tally_tcp(&t, "fd00:ec2::254", 80);
	tally_say(&t);
}

/* ---- unix sockets ---- */

static long connect_unix(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	long r;

	memcpy(to.sun_path, path, len < sizeof(to.sun_path) ? len : sizeof(to.sun_path));
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	r = connect(fd, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	if (r < 0 && errno == EPROTOTYPE) {
		(void)close(fd);
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		r = connect(fd, (struct sockaddr *)&to,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	}
	return r;
}

/* CVE-2020-15257 */
static void abstract_socket(void)
{
	struct tally t = { 0 };

	tally_result(&t, connect_unix(canary("abstract")), "an abstract socket of the host");
	tally_say(&t);
}

static void path_sockets(void)
{
	static const char *const known[] = {
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd/containerd.sock",
		"/run/podman/podman.sock",
		"/run/crio/crio.sock",
		"/run/dbus/system_bus_socket",
		"/run/systemd/private",
		"/run/systemd/notify",
		"/run/user/0/bus",
		"/tmp/.X11-unix/X0",
		"/run/snapd.socket",
		"/var/run/libvirt/libvirt-sock",
	};
	struct tally t = { 0 };

	tally_result(&t, connect_unix(canary("socket")), "a socket of the host");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		tally_result(&t, connect_unix(known[i]), known[i]);
	tally_say(&t);
}

static void control_socket(void)
{
	struct tally t = { 0 };

	tally_result(&t, connect_unix(canary("control")), "a supervisor's socket");
	tally_say(&t);
}

/* ---- the namespace itself ---- */

static void take_loopback_down(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		say_broken("no loopback: %s", errno_name(errno));
	say_result(ioctl(fd, SIOCSIFFLAGS, &request), "setting the flags of lo"); /* unchanged */
}

/* Removes a missing route: EPERM or ESRCH shows who may do it. */
static void change_routes(void)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_DELROUTE,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.route = { .rtm_family = AF_INET,
			   .rtm_table = 251,
			   .rtm_type = RTN_BLACKHOLE,
			   .rtm_scope = RT_SCOPE_NOWHERE },
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer = { 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	if (fd < 0)
		say_denied(errno);
	if (send(fd, &request, sizeof(request), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		say_broken("netlink: %s", errno_name(errno));
	if (answer.error.error == -EPERM)
		say_denied(EPERM);
	say_escaped("routes can be removed: %s", errno_name(-answer.error.error));
}

static void mark_packets(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct tally t = { 0 };

	tally_result(&t, setsockopt(fd, SOL_SOCKET, SO_MARK_, &one, sizeof(one)), "SO_MARK");
	tally_result(&t, setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT_, &one, sizeof(one)),
		     "IP_TRANSPARENT");
	tally_say(&t);
}

/* ---- families and protocols ---- */

static void packet_socket(void)
{
	struct tally t = { 0 };

	tally_result(&t, socket(AF_PACKET, SOCK_RAW, htons(3)), "a packet socket");
	tally_result(&t, socket(AF_PACKET, SOCK_DGRAM, 0), "a packet socket");
	tally_result(&t, syscall(SYS_socket, HIGH_HALF | AF_PACKET, SOCK_DGRAM, 0),
		     "a packet socket with a high half");
	tally_say(&t);
}

static void nf_tables(void)
{
	say_result(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), "a netfilter socket");
}

static void other_netlink(void)
{
	static const int protocols[] = { NETLINK_XFRM,    NETLINK_AUDIT,  NETLINK_KOBJECT_UEVENT,
					 NETLINK_GENERIC, NETLINK_CRYPTO };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		tally_result(&t, socket(AF_NETLINK, SOCK_RAW, protocols[i]), "a netlink socket");
	tally_say(&t);
}

static void raw_socket(void)
{
	struct tally t = { 0 };

	tally_result(&t, socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "a raw socket");
	tally_result(&t, socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), "a raw socket");
	tally_result(&t, socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), "a ping socket");
	tally_say(&t);
}

static void other_protocols(void)
{
	struct tally t = { 0 };

	tally_result(&t, socket(AF_INET, SOCK_STREAM, 132), "SCTP");
	tally_result(&t, socket(AF_INET, SOCK_SEQPACKET, 132), "SCTP");
	tally_result(&t, socket(AF_INET, 6, 33), "DCCP");
	tally_result(&t, socket(AF_INET, SOCK_STREAM, 262), "MPTCP");
	tally_result(&t, socket(AF_INET, SOCK_DGRAM, 136), "UDP-Lite");
	tally_say(&t);
}

static void virtual_socket(void)
{
	struct tally t = { 0 };

	tally_result(&t, socket(AF_VSOCK, SOCK_STREAM, 0), "a vsock");
	tally_result(&t, socketpair(AF_VSOCK, SOCK_STREAM, 0, (int[2]){ 0 }), "a pair of vsocks");
	tally_say(&t);
}

static void other_families(void)
{
	static const int families[] = { 3,  4,  5,  9,  15, 19, 21, 29, 30,
					31, 33, 37, 38, 39, 41, 43, 44, 45 };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		for (size_t n = 0; n < sizeof(types) / sizeof(types[0]); n++)
			tally_result(&t, socket(families[i], types[n], families[i] == 15 ? 2 : 0),
				     "a socket of another family");
	tally_say(&t);
}

const struct escape_case cases_network[] = {
	{ "NW07a", "connect to the host's loopback, in all spellings", "network namespace",
	  "ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL|closed", host_loopback },
	{ "NW07b", "connect to the host by an address of its own",
	  "network namespace, gate's addresses", "ECONNREFUSED|ECONNRESET|ENETUNREACH|closed",
	  host_address, CASE_SLOW },
	{ "NW02a", "send datagrams to the host", "network namespace, gate",
	  "ECONNREFUSED|ENETUNREACH|EPERM|EHOSTUNREACH|silence", host_udp, CASE_SLOW },
	{ "NW06", "connect to cloud metadata", "network namespace, gate's addresses",
	  "ECONNREFUSED|ECONNRESET|ENETUNREACH|closed", cloud_metadata, CASE_SLOW },
	{ "NW21a", "connect to an abstract socket of the host (CVE-2020-15257)",
	  "network namespace, Landlock scopes", "ECONNREFUSED|EPERM", abstract_socket },
	{ "NW21b", "connect to sockets of the host by path: docker, dbus, agents",
	  "mount namespace", "ENOENT", path_sockets },
	{ "CP01", "connect to a supervisor's control socket", "mount namespace", "ENOENT",
	  control_socket },
	{ "NW24a", "set the flags of loopback", "capabilities", "EPERM", take_loopback_down },
	{ "NW24b", "change routes", "capabilities", "EPERM", change_routes },
	{ "NW24c", "mark packets, bind addresses that are not ours", "capabilities", "EPERM",
	  mark_packets },
	{ "NS29a", "packet sockets (CVE-2020-14386)", "seccomp, capabilities", "EAFNOSUPPORT",
	  packet_socket },
	{ "NS29b", "nf_tables (CVE-2023-32233, CVE-2024-1086)", "seccomp", "EPROTONOSUPPORT",
	  nf_tables },
	{ "NS29c", "other netlink protocols", "seccomp", "EPROTONOSUPPORT", other_netlink },
	{ "NS29d", "raw and ping sockets", "seccomp", "EPERM|EPROTONOSUPPORT", raw_socket },
	{ "NS29e", "other protocols: SCTP, DCCP, MPTCP, UDP-Lite", "seccomp",
	  "EPROTONOSUPPORT|EPERM", other_protocols },
	{ "NS29f", "vsock, to the machine's own host", "seccomp", "EAFNOSUPPORT", virtual_socket },
	{ "NS29g", "other families: ALG, KEY, XDP, RDS, TIPC, CAN, Bluetooth", "seccomp",
	  "EAFNOSUPPORT", other_families },
	{ 0 },
};
