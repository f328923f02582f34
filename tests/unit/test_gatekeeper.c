/*
 * test_gatekeeper - messages of a gate are accepted within bounds, and new rules never wait for
 * one.
 *
 * The test itself is the gate: it holds the other end of the channel.
 */
#include "unit.h"

#include "engine/gatekeeper.h"
#include "net/gate.h"
#include "net/gatemessage.h"
#include "policy/policy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* A gatekeeper whose gate is *ret_gate_fd. */
static void open_keeper(struct gatekeeper *k, int *ret_gate_fd)
{
	int pair[2];

	gatekeeper_init(k);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	k->is_open = true;
	k->channel_fd = pair[0];
	*ret_gate_fd = pair[1];
}

static void say(struct gatekeeper *k, int gate_fd, const char *words)
{
	assert_int_equal(send(gate_fd, words, strlen(words), 0), (ssize_t)strlen(words));
	gatekeeper_on_ready(k);
}

static void expect_traffic(const struct gatekeeper *k, uint64_t sent, uint64_t received)
{
	if (k->sent_bytes != sent || k->received_bytes != received)
		fail_msg("%llu sent, %llu received", (unsigned long long)k->sent_bytes,
			 (unsigned long long)k->received_bytes);
}

static void traffic_adds_up_within_bounds(void **state)
{
	static const char *const lies[] = {
		GATE_TRAFFIC "1 1000",
		GATE_TRAFFIC "1000 1",
		GATE_TRAFFIC "-1 5000",
		GATE_TRAFFIC "5000",
		GATE_TRAFFIC "5000 ",
		GATE_TRAFFIC " 5000 5000",
		GATE_TRAFFIC "5000 5000 5000",
		GATE_TRAFFIC "5000 4611686018427387905",
		GATE_TRAFFIC "99999999999999999999 5000",
		GATE_TRAFFIC "0x9999 5000",
		"traffic",
		"traffic\t5000\t5000",
	};
	struct gatekeeper k;
	int gate_fd;

	(void)state;
	open_keeper(&k, &gate_fd);
	say(&k, gate_fd, GATE_TRAFFIC "10 20");
	expect_traffic(&k, 10, 20);
	say(&k, gate_fd, GATE_TRAFFIC "10 25");
	say(&k, gate_fd, GATE_TRAFFIC "100 200");
	expect_traffic(&k, 100, 200);
	for (size_t i = 0; i < COUNT_OF(lies); i++) {
		say(&k, gate_fd, lies[i]);
		expect_traffic(&k, 100, 200);
	}
	assert_int_equal(k.denial_count, 0);
	/* a new gate starts at zero, as in start_gate() */
	k.gate_sent_bytes = k.gate_received_bytes = 0;
	say(&k, gate_fd, GATE_TRAFFIC "7 8");
	expect_traffic(&k, 107, 208);
	for (int gates = 0; gates < 8; gates++) {
		k.gate_sent_bytes = k.gate_received_bytes = 0;
		say(&k, gate_fd, GATE_TRAFFIC "4611686018427387904 0");
	}
	expect_traffic(&k, UINT64_MAX, 208);
	(void)close(gate_fd);
	gatekeeper_done(&k);
}

static struct policy *new_policy(const char *allowed, uint64_t bandwidth)
{
	static struct policy list[4];
	static unsigned next;
	struct policy *p = &list[next++ % COUNT_OF(list)];
	struct err e;

	egress_done(&p->egress);
	p->bandwidth_bytes_per_s = bandwidth;
	egress_set_fallback(&p->egress, EGRESS_BLOCK, "test");
	assert_int_equal(egress_add(&p->egress, EGRESS_ALLOW, allowed, EGRESS_PATTERNS, "x", &e),
			 0);
	return p;
}

/* Checks which name the rules for the next gate allow. */
static void expect_rules(const struct gatekeeper *k, const char *name)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e;

	assert_int_equal(gatemessage_read(k->rules_fd, &g, &e), 0);
	assert_int_equal(g.count, 1);
	assert_string_equal(g.rules[0].text, name);
}

static void without_a_gate_new_rules_wait_for_the_next(void **state)
{
	struct policy *first = new_policy("a.example", 0), *second = new_policy("b.example", 0);
	struct gatekeeper k;
	struct err e;

	(void)state;
	gatekeeper_init(&k);
	assert_int_equal(gatekeeper_set_rules(&k, first, &e), 0);
	expect_rules(&k, "a.example");
	assert_int_equal(gatekeeper_set_rules(&k, second, &e), 0);
	expect_rules(&k, "b.example");
	assert_ptr_equal(k.options.policy, second);
	assert_int_equal(k.deaths, 0);
	gatekeeper_done(&k);
}

/* Starts a child as the gate, which the gatekeeper may kill. */
static pid_t play(int gate_fd, void (*gate)(int gate_fd))
{
	pid_t pid = fork();

	if (pid == 0) {
		gate(gate_fd);
		_exit(0);
	}
	assert_true(pid > 0);
	(void)close(gate_fd);
	return pid;
}

static void obedient(int gate_fd)
{
	struct gatemessage o = { .listen_fd = -1 };
	struct err e;

	(void)!send(gate_fd, GATE_TRAFFIC "1 2", strlen(GATE_TRAFFIC "1 2"), 0);
	while (o.kind == GATEMESSAGE_NONE)
		if (gatemessage_receive(gate_fd, &o, &e) < 0)
			_exit(1);
	if (o.kind == GATEMESSAGE_RULES && o.bandwidth_bytes_per_s == 77 && o.egress.count == 1 &&
	    strcmp(o.egress.rules[0].text, "b.example") == 0)
		(void)!send(gate_fd, GATE_RULES_APPLIED, strlen(GATE_RULES_APPLIED), 0);
	(void)pause();
}

static void a_gate_that_obeys_goes_on(void **state)
{
	struct gatekeeper k;
	struct err e;
	int gate_fd;
	pid_t pid;

	(void)state;
	open_keeper(&k, &gate_fd);
	k.pid = pid = play(gate_fd, obedient);
	assert_int_equal(gatekeeper_set_rules(&k, new_policy("b.example", 77), &e), 0);
	assert_true(k.channel_fd >= 0);
	assert_int_equal(k.pid, pid);
	assert_int_equal(k.deaths, 0);
	assert_null(k.trouble);
	expect_rules(&k, "b.example");
	expect_traffic(&k, 1, 2); /* its messages meanwhile count */
	(void)kill(pid, SIGKILL);
	gatekeeper_done(&k);
}

static void deaf(int gate_fd)
{
	(void)gate_fd;
	for (;;)
		(void)pause();
}

static void confused(int gate_fd)
{
	static const char words[] = GATE_TROUBLE "what?";

	(void)!send(gate_fd, words, strlen(words), 0);
}

static void leaving(int gate_fd)
{
	(void)!send(gate_fd, GATE_IS_IDLE, strlen(GATE_IS_IDLE), 0);
}

static void expect_replaced(void (*gate)(int), unsigned deaths, const char *trouble)
{
	struct gatekeeper k;
	struct err e;
	int gate_fd;
	pid_t pid;

	open_keeper(&k, &gate_fd);
	k.pid = pid = play(gate_fd, gate);
	assert_int_equal(gatekeeper_set_rules(&k, new_policy("c.example", 0), &e), 0);
	assert_int_equal(k.channel_fd, -1);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1); /* killed and reaped */
	assert_int_equal(k.deaths, deaths);
	if (trouble)
		assert_string_equal(k.trouble, trouble);
	else
		assert_null(k.trouble);
	expect_rules(&k, "c.example");
	gatekeeper_done(&k);
}

static void a_gate_that_does_not_obey_is_replaced(void **state)
{
	(void)state;
	expect_replaced(deaf, 1, "the gate does not take new rules");
	expect_replaced(confused, 1, "what?");
}

static void a_gate_that_leaves_meanwhile_is_no_trouble(void **state)
{
	(void)state;
	expect_replaced(leaving, 0, NULL);
}

static void rules_that_cannot_be_written_change_nothing(void **state)
{
	static char long_origin[EGRESS_TEXT_MAX_BYTES];
	struct policy *first = new_policy("a.example", 0), *second = new_policy("b.example", 0);
	struct gatekeeper k;
	struct err e = { 0 };
	int gate_fd;
	char byte;

	(void)state;
	open_keeper(&k, &gate_fd);
	assert_int_equal(gatemessage_write(&first->egress, &k.rules_fd, &e), 0);
	k.options.policy = first;
	memset(long_origin, 'x', sizeof(long_origin) - 1);
	egress_set_fallback(&second->egress, EGRESS_BLOCK, long_origin);
	assert_int_equal(gatekeeper_set_rules(&k, second, &e), -1);
	assert_string_equal(e.msg, "the network rules are too long");
	expect_rules(&k, "a.example");
	assert_ptr_equal(k.options.policy, first);
	assert_true(k.channel_fd >= 0);
	assert_int_equal(recv(gate_fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	(void)close(gate_fd);
	gatekeeper_done(&k);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(traffic_adds_up_within_bounds),
		cmocka_unit_test(without_a_gate_new_rules_wait_for_the_next),
		cmocka_unit_test(a_gate_that_obeys_goes_on),
		cmocka_unit_test(a_gate_that_does_not_obey_is_replaced),
		cmocka_unit_test(a_gate_that_leaves_meanwhile_is_no_trouble),
		cmocka_unit_test(rules_that_cannot_be_written_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
