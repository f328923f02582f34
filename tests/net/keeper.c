/*
 * keeper - a supervisor for tests of live rules: keeper COMMANDS ANSWERS PROGRAM [ARG...]
 *
 * Runs PROGRAM in a network namespace that leads only to a gate, without other protections. Reads
 * lines from the fifo COMMANDS and appends an answer line to the file ANSWERS for each:
 *
 *   rules allow|deny BANDWIDTH [+PATTERN | -PATTERN]...
 *        new rules: a default, what is allowed and what is blocked
 *   raw none|open|rules TEXT
 *        sends TEXT to the gate, with no descriptor, an unsealed memfd, or that of the rules
 *   status
 *        sent and received bytes, gates that died, the pid of the running one or 0, and the first
 *        trouble
 *
 * The gate is the real one, found beside this program, and so is the gatekeeper.
 */
#include "base/cleanup.h"
#include "base/fdpass.h"
#include "base/file.h"
#include "engine/gatekeeper.h"
#include "state/ak.h"
#include "net/netns.h"
#include "policy/policy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define GATE_ID 12345

struct keeper {
	struct gatekeeper gate;
	struct policy *policy; /* the current one */
	FILE *commands, *answers;
};

static _Noreturn void give_up(const char *words)
{
	fprintf(stderr, "keeper: %s\n", words);
	exit(1);
}

/* ---- the namespace ---- */

static void become_owner(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER) < 0)
		give_up("no user namespace");
	(void)file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	if (file_write_at(AT_FDCWD, "/proc/self/uid_map", map) < 0)
		give_up("no user map");
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	if (file_write_at(AT_FDCWD, "/proc/self/gid_map", map) < 0)
		give_up("no group map");
}

static _Noreturn void child(int socket_fd, char **argv)
{
	int sockets[NETNS_SOCKET_COUNT];
	unsigned count = 0;
	struct err e = { 0 };

	if (geteuid() != 0)
		become_owner();
	if (unshare(CLONE_NEWNET) < 0)
		give_up("no network namespace");
	if (netns_build(sockets, &count, &e) < 0)
		give_up(e.msg);
	if (fdpass_send(socket_fd, sockets, count) < 0)
		give_up("no way to the parent");
	for (unsigned i = 0; i < count; i++)
		(void)close(sockets[i]);
	(void)close(socket_fd);
	(void)execvp(argv[0], argv);
	give_up("no such program");
}

static pid_t start_child(struct gatekeeper *k, char **argv)
{
	int pair[2], sockets[FDPASS_MAX];
	unsigned count = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		give_up("no socket");
	pid = fork();
	if (pid == 0)
		child(pair[1], argv);
	(void)close(pair[1]);
	if (pid < 0 || fdpass_receive(pair[0], sockets, &count) < 0)
		give_up("no namespace");
	(void)close(pair[0]);
	gatekeeper_take_sockets(k, sockets, count, -1);
	return pid;
}

/* ---- commands ---- */

static void answer(struct keeper *k, const char *words)
{
	fprintf(k->answers, "%s\n", words);
	(void)fflush(k->answers);
}

static void policy_drop(struct policy *p)
{
	if (p)
		egress_done(&p->egress);
	free(p);
}

static void set_rules(struct keeper *k, char *rest)
{
	struct policy *p = calloc(1, sizeof(*p));
	const char *fallback = strsep(&rest, " "), *bandwidth = strsep(&rest, " "), *word;
	struct err e = { 0 };

	p->has_network = true;
	p->bandwidth_bytes_per_s = bandwidth ? strtoull(bandwidth, NULL, 10) : 0;
	egress_set_fallback(&p->egress,
			    strcmp(fallback, "allow") == 0 ? EGRESS_ALLOW : EGRESS_BLOCK,
			    "the test");
	while ((word = strsep(&rest, " ")))
		if (egress_add(&p->egress, word[0] == '+' ? EGRESS_ALLOW : EGRESS_BLOCK, word + 1,
			       EGRESS_PATTERNS, "the test", &e) < 0)
			give_up(e.msg);
	if (gatekeeper_set_rules(&k->gate, p, &e) < 0)
		give_up(e.msg);
	policy_drop(k->policy); /* nothing may use it any more */
	k->policy = p;
	answer(k, "ok");
}

static void say_raw(struct keeper *k, char *text)
{
	const char *kind = strsep(&text, " ");
	cleanup_fd int memory_fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int fd = strcmp(kind, "rules") == 0 ? k->gate.rules_fd : memory_fd;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec data = { .iov_base = text, .iov_len = strlen(text) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	(void)file_write_all(memory_fd, "allow\tdefault\tx\n", 16);
	if (strcmp(kind, "none") != 0) {
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	answer(k, sendmsg(k->gate.channel_fd, &message, MSG_NOSIGNAL) < 0 ? "not sent" : "ok");
}

static void tell_status(struct keeper *k)
{
	char words[1024];

	(void)snprintf(words, sizeof(words), "%" PRIu64 " %" PRIu64 " %u %d %s", k->gate.sent_bytes,
		       k->gate.received_bytes, k->gate.deaths,
		       k->gate.channel_fd >= 0 ? k->gate.pid : 0,
		       k->gate.trouble ? k->gate.trouble : "-");
	answer(k, words);
}

static void obey(struct keeper *k)
{
	char line[4096];
	char *rest = line;
	const char *word;

	if (!fgets(line, sizeof(line), k->commands))
		give_up("no commands");
	line[strcspn(line, "\n")] = '\0';
	word = strsep(&rest, " ");
	if (strcmp(word, "rules") == 0 && rest)
		set_rules(k, rest);
	else if (strcmp(word, "raw") == 0 && rest)
		say_raw(k, rest);
	else if (strcmp(word, "status") == 0)
		tell_status(k);
	else
		give_up("no such command");
}

static void serve(struct keeper *k, pid_t pid)
{
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		struct pollfd polled[1 + GATEKEEPER_POLL_MAX] = {
			{ .fd = fileno(k->commands), .events = POLLIN },
		};
		unsigned count = gatekeeper_poll(&k->gate, polled + 1);
		int wait_ms = gatekeeper_wait_ms(&k->gate);

		if (poll(polled, 1 + count, wait_ms < 0 || wait_ms > 100 ? 100 : wait_ms) <= 0)
			continue;
		for (unsigned i = 1; i <= count; i++) {
			if (!polled[i].revents)
				continue;
			gatekeeper_on_ready(&k->gate);
			break;
		}
		if (polled[0].revents)
			obey(k);
	}
}

int main(int argc, char **argv)
{
	extern char **environ;
	CLEANUP(ak_close) struct ak ak = { 0 };
	struct keeper k = { .policy = calloc(1, sizeof(*k.policy)) };
	const struct gatekeeper_options options = {
		.policy = k.policy,
		.ak = &ak,
		.id = geteuid() == 0 ? GATE_ID : 0,
		.sandbox = "keeper",
	};
	struct err e = { 0 };
	pid_t pid;

	ak_open(&ak, environ);
	if (argc < 4)
		give_up("COMMANDS ANSWERS PROGRAM");
	(void)signal(SIGPIPE, SIG_IGN);
	k.commands = fopen(argv[1], "r+e");
	k.answers = fopen(argv[2], "ae");
	if (!k.commands || !k.answers)
		give_up("no way to talk");
	setvbuf(k.commands, NULL, _IONBF, 0);
	egress_set_fallback(&k.policy->egress, EGRESS_BLOCK, "the test");
	gatekeeper_init(&k.gate);
	if (gatekeeper_prepare(&k.gate, &options, &e) < 0)
		give_up(e.msg);
	pid = start_child(&k.gate, argv + 3);
	serve(&k, pid);
	gatekeeper_stop(&k.gate);
	tell_status(&k);
	gatekeeper_done(&k.gate);
	policy_drop(k.policy);
	return 0;
}
