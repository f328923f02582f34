#pragma once
/*
 * operation - the operations that programs can call, with their parameters, declared once.
 *
 * The faces for programs (MCP, HTTP) make their tools, schemas and checks from this table; the
 * worker (worker/worker) carries the operations out. To add one, add a row here and a function
 * there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATION_TIMEOUT_DEFAULT_MS 30000
#define OPERATION_TIMEOUT_MAX_MS (24 * 3600 * 1000)
#define OPERATION_ENV_MAX 1024u
#define OPERATION_WORDS_MAX 4096u
#define OPERATION_FILES_MAX 256u
#define OPERATION_PATTERNS_MAX 256u
#define OPERATION_CONTENT_MAX_BYTES                                                                \
	(8u << 20)                         /* of one message; larger files are sent in parts       \
					    */
#define OPERATION_TAR_MAX_BYTES (2u << 20) /* of an archive returned inside JSON */
/* Output of one call shown to a model by default: clients truncate longer results. */
#define OPERATION_SHOWN_MAX_BYTES (24u << 10)
#define OPERATION_WAIT_MAX_MS (10 * 60 * 1000) /* maximum of one sandbox_exec_wait */
#define OPERATION_TAIL_LINES_MAX 100000
#define OPERATION_KEEP_MAX 1000 /* checkpoints by interval */

enum operation_id {
	OPERATION_RUN,
	OPERATION_CREATE,
	OPERATION_EXEC,
	OPERATION_LIST,
	OPERATION_REMOVE,
	OPERATION_FILE_WRITE,
	OPERATION_FILE_READ,
	OPERATION_FILE_EDIT,
	OPERATION_FILE_LIST,
	OPERATION_FILE_REMOVE,
	OPERATION_UPLOAD,
	OPERATION_DOWNLOAD,
	OPERATION_START,
	OPERATION_STOP,
	OPERATION_EXEC_START,
	OPERATION_EXEC_WAIT,
	OPERATION_EXEC_OUTPUT,
	OPERATION_EXEC_KILL,
	OPERATION_EXEC_LIST,
	OPERATION_CHECKPOINT,
	OPERATION_CHECKPOINT_LIST,
	OPERATION_CHECKPOINT_REMOVE,
	OPERATION_RESTORE,
	OPERATION_FORK,
	OPERATION_PAUSE,
	OPERATION_RESUME,
	OPERATION_NETWORK_LOG,
	OPERATION_NETWORK_CHECK,

	/* not offered as tools: see OPERATION_IS_NO_TOOL */
	OPERATION_INFO,
	OPERATION_STATS,
	OPERATION_NETWORK_CHANGE,
	OPERATION_EXTEND,
	OPERATION_AUDIT,
	OPERATION_EVENTS,
	OPERATION_REACH,
	OPERATION_PORT_ACCESS,
	OPERATION_SERVICE_ADD,
	OPERATION_SERVICE_LIST,
	OPERATION_SERVICE_REMOVE,
	OPERATION_SERVICE_RESTART,
	OPERATION_SESSION,

	OPERATION_COUNT
};

enum operation_type {
	OPERATION_TEXT,
	OPERATION_COMMAND, /* argument list, or one shell command line */
	OPERATION_INTEGER,
	OPERATION_FLAG,
	OPERATION_AMOUNT,  /* a text with a unit, or a number of MiB */
	OPERATION_MAP,     /* an object of names and strings */
	OPERATION_FILES,   /* paths and their contents */
	OPERATION_CONTENT, /* text, or base64 if "encoding" says so */
	OPERATION_BYTES,   /* base64 */
	OPERATION_TEXTS,   /* a list of texts */
	OPERATION_OBJECT,  /* results only: an object, described in prose */
	OPERATION_OBJECTS, /* results only: a list of objects */
};

struct operation_field {
	const char *name;
	enum operation_type type;
	const char *help;
	bool is_required;
	int64_t min, max;           /* OPERATION_INTEGER */
	const char *const *choices; /* OPERATION_TEXT; NULL: any */
	bool is_unlisted;           /* parameters: left out of tools/list, which models read */
};

enum operation_hints {
	OPERATION_READS_ONLY = 1 << 0,
	OPERATION_DESTROYS = 1 << 1,
	OPERATION_IS_IDEMPOTENT = 1 << 2,
	OPERATION_IS_OPEN = 1 << 3,       /* accesses the network outside */
	OPERATION_NEEDS_PROCESS = 1 << 4, /* runs a command and returns its output */
	OPERATION_IS_NO_TOOL = 1 << 5,    /* for programs over HTTP only; agents do not need it */
	OPERATION_HANDS_OVER = 1 << 7,    /* its result has descriptors: for our servers alone */
	OPERATION_IS_CARE = 1 << 6, /* inspects or ends something: also if the server is busy */
};

struct operation {
	const char *name;
	const char *title;
	const char *help;
	unsigned hints;
	const struct operation_field *params; /* ended by a NULL name */
	const struct operation_field *results;
};

const struct operation *operation_get(enum operation_id id);
/* NULL if there is no such name. `ret_id` may be NULL. */
const struct operation *operation_find(const char *name, enum operation_id *ret_id);
const struct operation_field *operation_param(const struct operation *o, const char *name);
