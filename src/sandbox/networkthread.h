#pragma once
/*
 * networkthread - makes the network namespace while the root is mounted.
 *
 * Creating a network namespace and its rules takes the kernel as long as all mounts together, and
 * neither needs the other: a thread of the child does it on another cpu. The child enters the
 * namespace when the thread has ended, so that everything it starts later has one thread and is in
 * it. A child that fails meanwhile takes the thread along.
 */
#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Fills the namespace, as its root; `context` is the one passed to networkthread_start(). */
typedef int networkthread_fn(void *context, struct err *e);

struct networkthread {
	networkthread_fn *fill;
	void *context;
	pthread_t thread;
	atomic_bool has_begun;
	int netns_fd;
	struct err error; /* .code 0: none */
};

/* Creates the namespace and fills it in a thread; *t must live until networkthread_join(). */
ERR_CHECKED int networkthread_start(struct networkthread *t, networkthread_fn *fill, void *context,
				    struct err *e);

/* Waits for the thread and enters its namespace; fails if the thread has failed. */
ERR_CHECKED int networkthread_join(struct networkthread *t, struct err *e);
