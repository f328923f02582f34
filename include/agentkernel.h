/*
 * agentkernel - run commands in sandboxes, from C and C++. See libagentkernel(3).
 *
 * A handle has no threads and no globals, changes no signal handler, and may be used by several
 * threads at once: every call is a process of its own that this library starts, feeds and waits
 * for (the program agentkernel). Structs begin with their size, so that programs keep working with
 * later versions of the library: fill them with zeros and set .size.
 *
 * Functions that can fail return 0, or -1 with *error filled in (it may be NULL).
 */
#ifndef AGENTKERNEL_H
#define AGENTKERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AGENTKERNEL_API __attribute__((visibility("default")))

typedef struct agentkernel agentkernel;

enum agentkernel_code {
	AGENTKERNEL_OK,
	AGENTKERNEL_INVALID,     /* the request is wrong; sending it again cannot help */
	AGENTKERNEL_NOT_FOUND,   /* the named sandbox, image or file does not exist */
	AGENTKERNEL_EXISTS,      /* the name is in use */
	AGENTKERNEL_BUSY,        /* not possible in the current state */
	AGENTKERNEL_DENIED,      /* refused by a policy or a permission */
	AGENTKERNEL_LIMIT,       /* a maximum was reached */
	AGENTKERNEL_TIMEOUT,     /* a deadline passed */
	AGENTKERNEL_UNSUPPORTED, /* this machine or this version cannot do it */
	AGENTKERNEL_REMOTE,      /* a registry or another program violated its protocol */
	AGENTKERNEL_CORRUPT,     /* stored data is damaged */
	AGENTKERNEL_SYSTEM,      /* a system call failed */
	AGENTKERNEL_CANCELLED    /* by .cancel_fd */
};

struct agentkernel_error {
	enum agentkernel_code code;
	char message[512];
};

struct agentkernel_options {
	size_t size;
	/* The program; NULL: $AGENTKERNEL_PROGRAM, else the one in $PATH or beside this library. */
	const char *program;
	/* "memory=2GiB", "network=false", ... (the names of `agentkernel policy show`), ended by
	 * NULL: what sandboxes get by default, and what no call may exceed. NULL: none. */
	const char *const *ceiling;
	/* Instead of the agentkernel.toml that is found; "": no configuration file. */
	const char *config;
};

/* `options` may be NULL. */
AGENTKERNEL_API int agentkernel_open(const struct agentkernel_options *options, agentkernel **ret,
				     struct agentkernel_error *error);
AGENTKERNEL_API void agentkernel_close(agentkernel *ak); /* NULL is fine */

/* Called by the thread that waits for the call, while it waits; each may be NULL. */
struct agentkernel_events {
	size_t size;
	void *context;
	/* What the command prints, as it comes; `stream` is 1 (stdout) or 2 (stderr). */
	void (*output)(void *context, int stream, const char *bytes, size_t length);
	/* A line of agentkernel's own: an image that could not be pulled, files it moved away. */
	void (*note)(void *context, const char *text);
	/* The call is cancelled when this descriptor becomes readable; 0, stdin: none. */
	int cancel_fd;
};

struct agentkernel_command {
	size_t size;
	const char *sandbox;            /* a named one; NULL: a fresh one that is gone afterwards */
	const char *const *words;       /* the command, ended by NULL */
	/* Those of sandbox_run: "image=debian:12", "memory=1GiB", "network=false"; ended by NULL,
	 * or NULL. A parameter that is a list is repeated. */
	const char *const *parameters;
	const char *const *environment; /* "NAME=value", ended by NULL; or NULL */
	const char *directory;          /* inside; NULL: the sandbox's own */
	const void *input;              /* its standard input */
	size_t input_length;
	uint64_t timeout_ms; /* 0: 24 hours */
};

struct agentkernel_result {
	size_t size;
	int exit_code; /* its own; 124 deadline, 128 + n signal n, 127 not found, 126 not executable
			*/
	int signal;    /* 0: it exited */
	uint64_t duration_ms;
	int timed_out, out_of_memory;
	char *json; /* all of it, with the output unless events->output took that (each stream up to
		     * 64 KiB; "stdout_bytes" says how much there was); agentkernel_free() */
};

/* Runs a command to its end. `events` may be NULL. */
AGENTKERNEL_API int agentkernel_run(agentkernel *ak, const struct agentkernel_command *command,
				    const struct agentkernel_events *events,
				    struct agentkernel_result *ret,
				    struct agentkernel_error *error);

/*
 * Any operation, with its parameters as a JSON object (NULL: none): the same names, parameters and
 * results as the MCP tools and openapi.json's operationIds ("sandbox_create", "sandbox_fork", ...).
 * *ret_json may be NULL; else agentkernel_free() it.
 */
AGENTKERNEL_API int agentkernel_call(agentkernel *ak, const char *operation, const char *json,
				     const struct agentkernel_events *events, char **ret_json,
				     struct agentkernel_error *error);

/* Files of any size in a named sandbox; what is read goes to events->output as stream 1. */
AGENTKERNEL_API int agentkernel_write_file(agentkernel *ak, const char *sandbox, const char *path,
					   const void *bytes, size_t length,
					   struct agentkernel_error *error);
AGENTKERNEL_API int agentkernel_read_file(agentkernel *ak, const char *sandbox, const char *path,
					  const struct agentkernel_events *events,
					  struct agentkernel_error *error);

AGENTKERNEL_API void agentkernel_free(void *allocated);
AGENTKERNEL_API const char *agentkernel_version(void);

#ifdef __cplusplus
}
#endif
#endif
