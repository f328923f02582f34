#pragma once
/*
 * supervisorstate - a named sandbox while it runs, as its supervisor holds it.
 *
 * The supervisor is three files on this struct: supervisor (how it comes to be, its loop and its
 * end), keptrequest (what clients ask of it), and this one, what both do to the sandbox: orders for
 * init, freezing, stopping.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/logfile.h"
#include "named/supervisor.h"
#include "named/named.h"
#include "named/rootplan.h"
#include "engine/session.h"
#include "named/tasktable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct supervisorstate_client {
	int fd;
	uint32_t task_id;    /* the attached command that lives with it; 0: none */
	bool is_at_terminal; /* ... is a detached one, whose terminal it has */
	bool is_freezing;
	bool is_waiting_for_usage;
	uint32_t awaited_request;    /* a pause or freeze that is not answered yet; 0: none */
	uint64_t pids_refused_count; /* that there were before it connected */
	unsigned notice_count; /* notices that some client was told before it connected, or it knows
				*/
	struct frame held;     /* a request that waits for a copy to end; its kind 0: none */
	uint64_t held_until_ms;
};

struct supervisorstate {
	struct supervisor_options options;
	struct session session;
	struct rootplan root;
	struct named_run run;
	bool is_noted; /* the file that says what runs is this start's */
	int listen_fd, signal_fd;
	int spare_fd; /* given up for a moment when there are no more */
	int root_fd;  /* once it is over: see take_back() of supervisor.c */
	struct supervisorstate_client *clients;
	unsigned client_count;
	struct tasktable tasks;
	unsigned audited_denials;
	unsigned told_notices;   /* that some client was told */
	uint64_t oom_kill_count; /* that are known */
	unsigned freeze_count;   /* by clients, and one for a pause */
	uint32_t freeze_number;  /* of those that init was told to make */
	bool is_still;           /* frozen, and nothing moves any more */
	bool is_paused, is_stopping, is_over, is_expired;
	uint64_t stop_at_ms;
	uint64_t look_at_ms; /* when it is looked next whether its directory is still there */
	char *reason;        /* why it ended; NULL: it was asked to */
	struct logfile log;  /* for its operator: 'agentkernel logs --system' */
	unsigned told_gate_deaths;
};

/* What `list` and `info` show; a failure to write it is theirs to live with. */
void supervisorstate_save_run(struct supervisorstate *k);
void supervisorstate_set_state(struct supervisorstate *k, enum named_state state);

/* The loop ends after this turn. reason: why it was not asked to, or NULL. */
void supervisorstate_end(struct supervisorstate *k, const char *reason);

/* Protected names that have appeared in the workspace. A flood of them ends the sandbox. */
void supervisorstate_look_at_names(struct supervisorstate *k);
/* Texts from number `first` on, each ended by a NUL. */
void supervisorstate_take_notices(const struct supervisorstate *k, unsigned first, struct buf *out);

/* To init: sandbox/order.h says what there is. An init that takes none ends the sandbox. */
void supervisorstate_order(struct supervisorstate *k, uint32_t kind, const void *body, size_t len,
			   const int *fds, unsigned fd_count);
void supervisorstate_signal(struct supervisorstate *k, uint32_t id, int number, bool is_for_group);

/*
 * They count: what was frozen twice has to be thawed twice. Frozen it is when is_still says so. One
 * that is stopping is not frozen any more (ERR_BUSY).
 */
ERR_CHECKED int supervisorstate_freeze(struct supervisorstate *k, struct err *e);
ERR_CHECKED int supervisorstate_thaw(struct supervisorstate *k, struct err *e);

/* Whoever copies a frozen sandbox, or waits for the freeze, sees that it is none any more. */
void supervisorstate_hang_up_freezers(struct supervisorstate *k);

/* SIGTERM for all now, and the end when they have gone, or after so long. */
void supervisorstate_begin_stop(struct supervisorstate *k, uint64_t timeout_ms);
