#pragma once
/*
 * supervisorstate - the supervisor's state of a running sandbox.
 *
 * Three files work on this struct: supervisor (start, loop and end), supervisorrequests (answers to
 * clients), and this one, what both do to the sandbox: orders for init, freezing, stopping.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/frame.h"
#include "base/logfile.h"
#include "named/supervisor.h"
#include "named/checkpointinterval.h"
#include "named/named.h"
#include "named/namedrun.h"
#include "named/rootplan.h"
#include "named/supervisorservices.h"
#include "engine/session.h"
#include "named/tasktable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct supervisorstate_client {
	int fd;
	uint32_t task_id;    /* its attached command, which ends with it; 0: none */
	bool is_at_terminal; /* task_id is a detached command, to whose terminal it is attached */
	bool is_freezing;
	bool is_waiting_for_usage;
	uint32_t awaited_request;    /* a pause or freeze that is not answered yet; 0: none */
	uint64_t pids_refused_count; /* that there were before it connected */
	unsigned notice_count; /* notices that some client was told before it connected, or it knows
				*/
	struct frame held;     /* a request that waits for a copy to end; its kind 0: none */
	uint64_t held_until_ms;
	bool is_door;            /* a server relays connections by it */
	bool is_holding;         /* keeps the sandbox awake */
	uint32_t forward_number; /* of the port that is published as long as it stays; 0: none */
};

struct supervisorstate {
	struct supervisor_options options;
	struct session session;
	struct rootplan root;
	struct namedrun run;
	bool is_noted; /* this start has saved the run file */
	int listen_fd, signal_fd;
	int spare_fd; /* closed for a moment when descriptors run out */
	int root_fd;  /* at the end: see take_back() in supervisor.c */
	struct supervisorstate_client *clients;
	unsigned client_count;
	struct tasktable tasks;
	unsigned audited_denials;
	unsigned told_notices;   /* notices that some client has received */
	uint64_t oom_kill_count; /* last known count */
	unsigned freeze_count;   /* freezing clients, plus one for a pause or a doze */
	uint32_t freeze_number;  /* of the last ORDER_FREEZE */
	bool is_still;           /* frozen, and every process has stopped */
	bool is_paused, is_stopping, is_over, is_expired;
	bool is_dozing, falls_asleep; /* see supervisorsleep */
	uint64_t idle_since_ms;       /* 0: it is in use */
	uint64_t stop_at_ms;
	uint64_t look_at_ms; /* next check whether its directory still exists */
	char *reason;        /* why it ended; NULL: on request */
	struct logfile log;  /* shown by 'agentkernel logs --system' */
	unsigned told_gate_deaths;
	struct checkpointinterval checkpoints;
	struct supervisorservices services;
};

/* Saves what `list` and `info` show; a failure is ignored. */
void supervisorstate_save_run(struct supervisorstate *k);
void supervisorstate_set_state(struct supervisorstate *k, enum named_state state);

/* Saves why the last checkpoint by interval failed, for `info`; "": it did not. */
void supervisorstate_note_trouble(struct supervisorstate *k, const char *trouble);

/* Ends the loop after this iteration. reason: NULL if the end was requested. */
void supervisorstate_end(struct supervisorstate *k, const char *reason);

/* Handles protected names that appeared in the workspace. A flood of them ends the sandbox. */
void supervisorstate_look_at_names(struct supervisorstate *k);
/* Adds the notices from number `first` on, NUL-terminated. */
void supervisorstate_take_notices(const struct supervisorstate *k, unsigned first, struct buf *out);

/* Sends an order (protocol/order.h) to init. An init that accepts none ends the sandbox. */
void supervisorstate_order(struct supervisorstate *k, uint32_t kind, const void *body, size_t len,
			   const int *fds, unsigned fd_count);
void supervisorstate_signal(struct supervisorstate *k, uint32_t id, int number, bool is_for_group);

/*
 * Freezes are counted: two need two thaws. The sandbox is frozen once is_still is true. A stopping
 * sandbox cannot be frozen (ERR_BUSY).
 */
ERR_CHECKED int supervisorstate_freeze(struct supervisorstate *k, struct err *e);
ERR_CHECKED int supervisorstate_thaw(struct supervisorstate *k, struct err *e);

/* Tells clients that copy a frozen sandbox, or wait for the freeze, that it has ended. */
void supervisorstate_hang_up_freezers(struct supervisorstate *k);

/* Sends SIGTERM to all; ends the sandbox when all have exited, or after timeout_ms. */
void supervisorstate_begin_stop(struct supervisorstate *k, uint64_t timeout_ms);
