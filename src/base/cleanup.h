#pragma once
/*
 * cleanup - scoped variables that release what they own.
 *
 *	cleanup_free char *path = NULL;
 *	cleanup_fd int fd = -1;
 *	CLEANUP(layer_freep) struct layer *layer = NULL;
 *
 * Ownership leaves a scope only through take_ptr() and take_fd(), so `grep take_` lists every
 * hand-over. The functions here run at every exit of the scope and must accept NULL or -1.
 */
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline void cleanup_freep(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

static inline void cleanup_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* an error cannot be handled here */
	*fd = -1;
}

#define cleanup_free CLEANUP(cleanup_freep)
#define cleanup_fd CLEANUP(cleanup_closep)

/* Transfers ownership: returns the descriptor and sets the variable to -1. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define take_ptr(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})
