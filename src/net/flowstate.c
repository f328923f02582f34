/* flowstate - the state of a connection, shared by its parts; see flowstate.h. */
#include "net/flowstate.h"

#include "base/cleanup.h"
#include "net/dial.h"
#include "net/gate.h"
#include "net/ownaddress.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

void flowstate_update_listening(struct flows *f)
{
	bool is_wanted = !f->is_over && !f->is_resting && f->count < f->max;

	if (is_wanted == f->is_listening)
		return;
	f->is_listening = is_wanted;
	if (is_wanted)
		(void)event_add(&f->listener, NULL);
	else
		(void)event_del(&f->listener);
}

/* ---- ends ---- */

/* Makes close() send a reset. */
void flowstate_arm_reset(int fd)
{
	static const struct linger none = { .l_onoff = 1 };

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

void flowstate_set_held(struct flow *c, size_t len)
{
	c->flows->held_bytes -= c->held.len - len;
	c->held.len = len;
}

void flowstate_forget_ask(struct flow *c)
{
	struct flow_asked *last = c->asked;

	c->asked = last->next;
	free(last);
}

void flowstate_close(struct flow *c)
{
	struct flows *f = c->flows;

	if (c->state == FLOW_OPEN) {
		relay_done(&c->relays[FLOW_TO_SERVER]);
		relay_done(&c->relays[FLOW_TO_CLIENT]);
	}
	resolve_forget(&c->waiter);
	dial_cancel(c->dial);
	while (c->asked)
		flowstate_forget_ask(c);
	flowstate_set_held(c, 0);
	buf_done(&c->held);
	cleanup_closep(&c->client_fd);
	cleanup_closep(&c->server_fd);
	TAILQ_REMOVE(&f->list, c, link);
	f->count--;
	free(c);
	flowstate_update_listening(f);
}

void flowstate_reset(struct flow *c)
{
	flowstate_arm_reset(c->client_fd);
	flowstate_arm_reset(c->server_fd);
	flowstate_close(c);
}

/* ---- log entries ---- */

enum egress_owner flowstate_get_owner(const struct flow *c, const struct address *a, uint16_t port)
{
	return ownaddress_ask(c->flows->gate->routes_fd, a, port);
}

const char *flowstate_get_host(const struct flow *c, char out[ADDRESS_TEXT_MAX_BYTES])
{
	return c->name ? c->name : address_format(&c->address, out);
}

void flowstate_note(struct flow *c, enum journal_decision what, const char *reason)
{
	char text[ADDRESS_TEXT_MAX_BYTES];

	c->row = journal_add(c->flows->gate->journal, what, flowstate_get_host(c, text), c->port,
			     reason, "");
}

void flowstate_note_decision(struct flow *c, const struct egress_decision *d,
			     const struct address *resolved)
{
	cleanup_buf struct buf reason;
	cleanup_buf struct buf fix;
	char text[ADDRESS_TEXT_MAX_BYTES];
	const struct address *address = resolved ? resolved : c->name ? NULL : &c->address;

	buf_init(&reason, BUF_TEXT_MAX_BYTES);
	buf_init(&fix, BUF_TEXT_MAX_BYTES);
	if (resolved)
		buf_addf(&reason, "it has the address %s: ", address_format(resolved, text));
	egress_format_reason(&c->flows->gate->egress, d, &reason);
	egress_format_fix(d, c->name, address, c->port, &fix);
	c->row = journal_add(
		c->flows->gate->journal, d->is_allowed ? JOURNAL_ALLOWED : JOURNAL_DENIED,
		flowstate_get_host(c, text), c->port, buf_text(&reason), buf_text(&fix));
}
