/*
 * gatekeeper - the supervisor's side of the gate; see gatekeeper.h.
 *
 * Hostile input: messages of a gate, which is no more trusted than the packets it reads: lines are
 * parsed with bounds, denials are counted up to a maximum, and the code that prints texts replaces
 * control characters.
 */
#include "engine/gatekeeper.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "engine/helper.h"
#include "state/statedir.h"
#include "net/gate.h"
#include "net/logshare.h"
#include "net/names.h"
#include "net/netlog.h"
#include "net/gatemessage.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BACKOFF_FIRST_MS 50u
#define LINE_MAX_BYTES 2048
#define TRAFFIC_MAX_BYTES (1ull << 62)
#define MESSAGES_A_TURN 64u /* per iteration, so that a faulty gate cannot block the rest */

void gatekeeper_init(struct gatekeeper *k)
{
	*k = (struct gatekeeper){
		.rules_fd = -1, .names_fd = -1, .share_fd = -1, .channel_fd = -1, .dial_fd = -1
	};
	published_init(&k->published);
	for (unsigned i = 0; i < NETNS_SOCKET_COUNT; i++)
		k->sockets[i] = -1;
}

static int find_program(struct gatekeeper *k, struct err *e)
{
	return k->program ? 0 : helper_find(GATE_PROGRAM, &k->program, e);
}

int gatekeeper_prepare(struct gatekeeper *k, const struct gatekeeper_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	k->options = *o;
	if (!p->has_network && !p->publish)
		return 0;
	if (find_program(k, e) < 0)
		return err_wrap(e, p->publish ? "this sandbox publishes a port"
					      : "this sandbox has a network (--no-network runs "
						"without)");
	return published_open(&k->published, p->publish, e);
}

void gatekeeper_take_sockets(struct gatekeeper *k, int *sockets, unsigned count, int dial_fd)
{
	for (unsigned i = 0; i < count && i < NETNS_SOCKET_COUNT; i++)
		k->sockets[i] = take_fd(&sockets[i]);
	k->socket_count = count < NETNS_SOCKET_COUNT ? count : NETNS_SOCKET_COUNT;
	k->dial_fd = dial_fd;
	k->is_open = count > 0 || dial_fd >= 0;
}

/* ---- starting ---- */

/* Returns -1 without a log: the gate runs nevertheless. */
static int open_log(const struct gatekeeper *k)
{
	cleanup_free char *path = NULL;
	cleanup_free char *old_path = NULL;
	struct err ignored;
	struct stat st;

	if (statedir_make_path(k->options.ak, NETLOG_FILE, &path, &ignored) < 0 ||
	    statedir_path(k->options.ak, NETLOG_OLD_FILE, &old_path, &ignored) < 0)
		return -1;
	if (stat(path, &st) == 0 && st.st_size > (off_t)NETLOG_MAX_BYTES)
		(void)rename(path, old_path);
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* If it cannot be sent, the gate is ending; the next one gets all ports. */
static void tell_of_port(const struct gatekeeper *k, const struct published_port *p)
{
	if (k->channel_fd >= 0 && !p->is_held)
		(void)gatemessage_send_listen(k->channel_fd, p->number, p->spec.inner,
					      p->listen_fd);
}

static int start_gate(struct gatekeeper *k, struct err *e)
{
	int channel[2] = { -1, -1 };
	int log_fd = open_log(k);
	char bandwidth[24], sockets[8], id[16];
	char *argv[] = { (char *)GATE_PROGRAM,
			 (char *)(uintptr_t)k->options.sandbox,
			 bandwidth,
			 sockets,
			 id,
			 NULL };
	const struct helper gate = { .path = k->program, .fd = -1 };
	const struct helper_options apart = { 0 };
	struct helper_descriptor fds[GATE_FIRST_SOCKET_FD + NETNS_SOCKET_COUNT];
	unsigned count = 0;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0) {
		r = err_sys(e, errno, "create a socket for the gate");
		cleanup_closep(&log_fd);
		return r;
	}
	(void)snprintf(bandwidth, sizeof(bandwidth), "%" PRIu64,
		       k->options.policy->bandwidth_bytes_per_s);
	(void)snprintf(sockets, sizeof(sockets), "%u", k->socket_count);
	(void)snprintf(id, sizeof(id), "%" PRIu32, k->options.id);
	fds[count++] = (struct helper_descriptor){ channel[1], GATE_SUPERVISOR_FD };
	fds[count++] = (struct helper_descriptor){ k->rules_fd, GATE_RULES_FD };
	fds[count++] = (struct helper_descriptor){ k->names_fd, GATE_NAMES_FD };
	fds[count++] = (struct helper_descriptor){ log_fd, GATE_LOG_FD };
	fds[count++] = (struct helper_descriptor){ k->share_fd, GATE_SHARE_FD };
	fds[count++] = (struct helper_descriptor){ k->dial_fd, GATE_DIAL_FD };
	for (unsigned i = 0; i < k->socket_count; i++)
		fds[count++] =
			(struct helper_descriptor){ k->sockets[i], GATE_FIRST_SOCKET_FD + (int)i };
	r = helper_start(&gate, argv, fds, count, &apart, &k->pid, e);
	cleanup_closep(&log_fd);
	cleanup_closep(&channel[1]);
	k->channel_fd = r < 0 ? -1 : take_fd(&channel[0]);
	for (unsigned i = 0; r == 0 && i < k->published.count; i++)
		tell_of_port(k, &k->published.ports[i]);
	k->is_leaving = false;
	k->gate_sent_bytes = 0;
	k->gate_received_bytes = 0;
	cleanup_closep(&channel[0]);
	return r;
}

static void back_off(struct gatekeeper *k)
{
	uint64_t wait_ms = BACKOFF_FIRST_MS;

	for (unsigned i = 1; i < k->deaths && wait_ms < GATEKEEPER_BACKOFF_MAX_MS; i++)
		wait_ms *= 2;
	if (wait_ms > GATEKEEPER_BACKOFF_MAX_MS)
		wait_ms = GATEKEEPER_BACKOFF_MAX_MS;
	k->not_before_ms = clock_now_ms() + wait_ms;
}

static void note_trouble(struct gatekeeper *k, const char *words)
{
	if (!k->trouble)
		k->trouble = mem_dup(words);
}

/* A gate that cannot be started is handled like one that died at once: retry later. */
static void start(struct gatekeeper *k)
{
	struct err e = { 0 };

	if (find_program(k, &e) < 0 ||
	    (k->rules_fd < 0 &&
	     gatemessage_write(&k->options.policy->egress, &k->rules_fd, &e) < 0) ||
	    (k->names_fd < 0 && names_create(&k->names_fd, &e) < 0) ||
	    (k->share_fd < 0 && logshare_create(&k->share_fd, &e) < 0) || start_gate(k, &e) < 0) {
		note_trouble(k, e.msg);
		k->deaths++;
		back_off(k);
	}
}

/* ---- messages of a gate ---- */

static bool is_known(const struct gatekeeper *k, const struct netlog_line *line)
{
	for (unsigned i = 0; i < k->denial_count; i++)
		if (k->denials[i].port == line->port && strcmp(k->denials[i].host, line->host) == 0)
			return true;
	return false;
}

static void note_denial(struct gatekeeper *k, char *text)
{
	struct netlog_line line;

	text[strcspn(text, "\n")] = '\0';
	if (!netlog_parse_line(text, &line) || k->denial_count == GATEKEEPER_DENIALS_MAX ||
	    is_known(k, &line))
		return;
	k->denials = mem_grow(k->denials, k->denial_count + 1, sizeof(*k->denials));
	k->denials[k->denial_count++] = (struct gatekeeper_denial){
		.host = mem_dup(line.host),
		.port = line.port,
		.reason = mem_dup(line.reason),
		.fix = mem_dup(line.fix),
	};
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static uint64_t add_growth(uint64_t sum, uint64_t from, uint64_t to)
{
	return sum > UINT64_MAX - (to - from) ? UINT64_MAX : sum + (to - from);
}

/* Totals since the gate's start: smaller values than before are false and ignored. */
static void note_traffic(struct gatekeeper *k, char *text)
{
	char *rest = text;
	const char *word = strsep(&rest, " ");
	uint64_t sent = 0, received = 0;
	struct err ignored;

	if (!rest || parse_count(word, 0, TRAFFIC_MAX_BYTES, &sent, &ignored) < 0 ||
	    parse_count(rest, 0, TRAFFIC_MAX_BYTES, &received, &ignored) < 0 ||
	    sent < k->gate_sent_bytes || received < k->gate_received_bytes)
		return;
	k->sent_bytes = add_growth(k->sent_bytes, k->gate_sent_bytes, sent);
	k->received_bytes = add_growth(k->received_bytes, k->gate_received_bytes, received);
	k->gate_sent_bytes = sent;
	k->gate_received_bytes = received;
}

static void on_gate_message(struct gatekeeper *k, char *text)
{
	if (strcmp(text, GATE_IS_IDLE) == 0)
		k->is_leaving = true;
	else if (strcmp(text, GATE_RULES_APPLIED) == 0)
		k->has_obeyed = true;
	else if (has_prefix(text, GATE_INBOUND))
		k->has_inbound = strcmp(text + strlen(GATE_INBOUND), "yes") == 0;
	else if (has_prefix(text, GATE_TROUBLE))
		note_trouble(k, text + strlen(GATE_TROUBLE));
	else if (has_prefix(text, GATE_TRAFFIC))
		note_traffic(k, text + strlen(GATE_TRAFFIC));
	else
		note_denial(k, text);
}

/* False: the gate has closed the channel. */
static bool listen_to_gate(struct gatekeeper *k)
{
	char text[LINE_MAX_BYTES];

	for (unsigned i = 0; i < MESSAGES_A_TURN; i++) {
		ssize_t n = recv(k->channel_fd, text, sizeof(text) - 1, MSG_DONTWAIT);

		/*
		 * reset: it ended before it read our last message; its own messages are still
		 * readable
		 */
		if (n < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		text[n] = '\0';
		on_gate_message(k, text);
	}
	return true;
}

static void reap(struct gatekeeper *k)
{
	char words[64] = "";
	int status = 0;

	cleanup_closep(&k->channel_fd);
	k->has_inbound = false;
	if (k->pid <= 0)
		return;
	(void)kill(k->pid, SIGKILL); /* our child, not yet reaped; usually it has ended */
	while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	k->pid = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		(void)snprintf(words, sizeof(words), "the gate was ended by signal %d",
			       WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		(void)snprintf(words, sizeof(words), "the gate ended with status %d",
			       WEXITSTATUS(status));
	if (words[0])
		note_trouble(k, words);
}

/* A gate that announced its exit is no failure; after any other end the next start is delayed. */
static void on_end(struct gatekeeper *k)
{
	reap(k);
	if (k->is_leaving)
		return;
	k->deaths++;
	back_off(k);
}

/* ---- new rules ---- */

/* Reads messages until the gate has applied the rules. False: it ended, or takes too long. */
static bool await_obedience(struct gatekeeper *k)
{
	struct pollfd polled = { .fd = k->channel_fd, .events = POLLIN };
	uint64_t end_ms = clock_now_ms() + GATEKEEPER_OBEY_MAX_MS;

	for (uint64_t now_ms = clock_now_ms(); now_ms < end_ms; now_ms = clock_now_ms()) {
		if (poll(&polled, 1, (int)(end_ms - now_ms)) > 0 && !listen_to_gate(k))
			return false;
		if (k->has_obeyed)
			return true;
	}
	note_trouble(k, "the gate does not take new rules");
	return false;
}

int gatekeeper_set_rules(struct gatekeeper *k, const struct policy *p, struct err *e)
{
	int rules_fd = -1;

	if (gatemessage_write(&p->egress, &rules_fd, e) < 0)
		return -1;
	cleanup_closep(&k->rules_fd);
	k->rules_fd = rules_fd;
	k->options.policy = p;
	if (k->channel_fd < 0)
		return 0;
	k->has_obeyed = false;
	if (gatemessage_send(k->channel_fd, k->rules_fd, p->bandwidth_bytes_per_s) < 0) {
		(void)listen_to_gate(k); /* it may have sent the reason for its end */
		on_end(k);
	} else if (!await_obedience(k)) {
		on_end(k);
	}
	return 0;
}

/* ---- published ports ---- */

int gatekeeper_publish(struct gatekeeper *k, const struct publish *spec, bool is_kept,
		       const struct published_port **ret, struct err *e)
{
	if (k->dial_fd < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "this sandbox takes no connections from outside");
	if (published_add(&k->published, spec, is_kept, ret, e) < 0)
		return -1;
	tell_of_port(k, *ret);
	return 0;
}

void gatekeeper_unpublish(struct gatekeeper *k, uint32_t number)
{
	if (k->channel_fd >= 0)
		(void)gatemessage_send_unlisten(k->channel_fd, number);
	published_remove(&k->published, number);
}

/* A gate that has the port keeps it. */
void gatekeeper_hold(struct gatekeeper *k, uint16_t inner)
{
	for (unsigned i = 0; k->channel_fd < 0 && i < k->published.count; i++)
		if (k->published.ports[i].spec.inner == inner)
			k->published.ports[i].is_held = true;
}

void gatekeeper_release(struct gatekeeper *k, uint16_t inner)
{
	for (unsigned i = 0; i < k->published.count; i++) {
		struct published_port *p = &k->published.ports[i];

		if (p->spec.inner != inner || !p->is_held)
			continue;
		p->is_held = false;
		tell_of_port(k, p);
	}
}

/* ---- for poll loops ---- */

unsigned gatekeeper_poll(struct gatekeeper *k, struct pollfd *out)
{
	unsigned count = 0;

	if (!k->is_open)
		return 0;
	if (k->channel_fd >= 0) {
		out[0] = (struct pollfd){ .fd = k->channel_fd, .events = POLLIN };
		return 1;
	}
	if (clock_now_ms() < k->not_before_ms)
		return 0;
	k->not_before_ms = 0;
	for (unsigned i = 0; i < k->socket_count; i++)
		out[count++] = (struct pollfd){ .fd = k->sockets[i], .events = POLLIN };
	for (unsigned i = 0; i < k->published.count; i++)
		if (!k->published.ports[i].is_held)
			out[count++] = (struct pollfd){ .fd = k->published.ports[i].listen_fd,
							.events = POLLIN };
	return count;
}

int gatekeeper_wait_ms(const struct gatekeeper *k)
{
	uint64_t now_ms;

	if (!k->is_open || k->channel_fd >= 0 || k->not_before_ms == 0)
		return -1;
	now_ms = clock_now_ms();
	return now_ms < k->not_before_ms ? (int)(k->not_before_ms - now_ms) : 0;
}

void gatekeeper_on_ready(struct gatekeeper *k)
{
	if (k->channel_fd < 0)
		start(k);
	else if (!listen_to_gate(k))
		on_end(k);
}

void gatekeeper_stop(struct gatekeeper *k)
{
	struct pollfd polled = { .fd = k->channel_fd, .events = POLLIN };
	uint64_t end_ms = clock_now_ms() + GATEKEEPER_STOP_MAX_MS;

	k->is_open = false;
	published_done(&k->published);
	if (k->channel_fd < 0)
		return;
	(void)shutdown(k->channel_fd, SHUT_WR);
	for (uint64_t now_ms = clock_now_ms(); now_ms < end_ms; now_ms = clock_now_ms())
		if (poll(&polled, 1, (int)(end_ms - now_ms)) > 0 && !listen_to_gate(k))
			break;
	reap(k);
}

void gatekeeper_free_denials(struct gatekeeper_denial *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		free(list[i].host);
		free(list[i].reason);
		free(list[i].fix);
	}
	free(list);
}

void gatekeeper_done(struct gatekeeper *k)
{
	gatekeeper_stop(k);
	for (unsigned i = 0; i < NETNS_SOCKET_COUNT; i++)
		cleanup_closep(&k->sockets[i]);
	cleanup_closep(&k->rules_fd);
	cleanup_closep(&k->names_fd);
	cleanup_closep(&k->share_fd);
	gatekeeper_free_denials(k->denials, k->denial_count);
	free(k->program);
	free(k->trouble);
	gatekeeper_init(k);
}
