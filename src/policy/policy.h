#pragma once
/*
 * policy - the resolved answer to "what may this sandbox do".
 *
 * An interface (command line, MCP, HTTP) collects the request as settings: a field, its text, and
 * its origin ("--memory"). policy_resolve() starts with the built-in defaults and the moderate
 * profile, then applies layer by layer (the user's file, the project's, the command line) each
 * layer's mode, profile and other settings in order, and returns one struct. A preset resets all
 * fields that presets define. The result depends on the arguments only: no file, no environment, no
 * system call. Properties of the host (does the mount source exist?) are checked by the users of
 * the policy.
 *
 * An image other than `host` adds the values of its config once it is pulled: policy/policyimage.h.
 *
 * Every field records its origin for `policy show` and error messages.
 */
#include "base/err.h"
#include "policy/egress.h"
#include "policy/mode.h"
#include "policy/profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum policy_field {
#define FIELD(id, name) POLICY_##id,
#include "policy/fields.def"

	POLICY_FIELD_COUNT
};

#define POLICY_MEMORY_MIN_BYTES (8ull << 20)
#define POLICY_MEMORY_MAX_BYTES (1ull << 46)
#define POLICY_CPUS_MIN_MILLI 10ull
#define POLICY_CPUS_MAX_MILLI (1024ull * 1000)
#define POLICY_PIDS_MIN 1ull
#define POLICY_PIDS_MAX (1ull << 22)
#define POLICY_DISK_MIN_BYTES (1ull << 20)
#define POLICY_DISK_MAX_BYTES (1ull << 46)
#define POLICY_NOFILE_MIN 8ull
#define POLICY_NOFILE_MAX (1ull << 20)
#define POLICY_NOFILE_DEFAULT (1ull << 16)
#define POLICY_FILE_SIZE_MIN_BYTES 1ull
#define POLICY_FILE_SIZE_MAX_BYTES (1ull << 62)
#define POLICY_IO_MIN_BYTES_PER_S (64ull << 10)
#define POLICY_IO_MAX_BYTES_PER_S (1ull << 40)
#define POLICY_BANDWIDTH_MIN_BYTES_PER_S (1ull << 10)
#define POLICY_BANDWIDTH_MAX_BYTES_PER_S (1ull << 40)
#define POLICY_TIMEOUT_MIN_MS 1ull
#define POLICY_TIMEOUT_MAX_MS (366ull * 24 * 3600 * 1000)
#define POLICY_IDLE_TIMEOUT_MIN_MS 100ull
#define POLICY_CPU_TIME_MIN_MS 100ull
#define POLICY_CPU_TIME_MAX_MS (366ull * 24 * 3600 * 1000)
#define POLICY_ID_MAX 65534u /* highest user and group id inside */
#define POLICY_MOUNTS_MAX 64u
#define POLICY_TMPFS_MAX 16u
#define POLICY_ENV_MAX 1024u
#define POLICY_NAMES_MAX 256u                  /* additional protected or masked names */
#define POLICY_DISK_DEFAULT_BYTES (1ull << 30) /* if there is no memory limit to halve */
#define POLICY_USER_ID 1000u                   /* the account named "user" inside */
#define POLICY_ORIGIN_DEFAULT "default"        /* the text of POLICY_ORIGIN_NONE */
#define POLICY_ORIGIN_HALF                                                                         \
	"half of memory"         /* text of POLICY_ORIGIN_DERIVED, which only the disk has */
#define POLICY_HOST_IMAGE "host" /* the host's own programs, read-only */
#define POLICY_GROUPS_MAX 64u

struct policy_mount {
	char *source; /* absolute, on the host */
	char *target; /* absolute, inside */
	bool is_read_only;
	bool is_ours; /* made for this sandbox in our own directory, which is not shown otherwise;
		       * neither parsed nor saved */
};

struct policy_tmpfs {
	char *target;
	uint64_t size_bytes; /* 0: the size of the disk limit */
};

/* In the order in which they are applied; 0 is the usual one. */
enum policy_layer {
	POLICY_BY_COMMAND = -3, /* defaults of a command */
	POLICY_BY_USER_FILE,
	POLICY_BY_PROJECT_FILE,
	POLICY_BY_COMMAND_LINE,
	POLICY_BY_CALLER, /* a client of a server that has this command line */
	POLICY_MAXIMUM,   /* not applied: the maximum for such a caller (policy/ceiling) */
};

/* How a value was determined; 0 is the usual one. */
enum policy_origin_kind {
	POLICY_ORIGIN_SETTING,  /* set by an option, a key of a file or a caller */
	POLICY_ORIGIN_NONE,     /* not set: the built-in default */
	POLICY_ORIGIN_PRESET,   /* set by a chosen profile or mode */
	POLICY_ORIGIN_DERIVED,  /* computed from another value */
	POLICY_ORIGIN_DETECTED, /* from the command, or from a project's files */
	POLICY_ORIGIN_IMAGE,    /* set by the image */
};

/* Who set a value. Code uses layer and kind; the text is for messages. */
struct policy_origin {
	const char *text; /* static, or borrowed from the setting */
	enum policy_layer layer;
	enum policy_origin_kind kind;
};

/* Who builds the walls: engine/backend has a row for each. */
enum policy_backend {
	POLICY_BACKEND_NATIVE,

	POLICY_BACKEND_COUNT
};
extern const char *const policy_backends[];   /* their names, ended by NULL */
extern const char *const policy_idle_words[]; /* by .stops_when_idle, ended by NULL */
bool policy_find_backend(const char *name, enum policy_backend *ret);

/* "no profile 'x' (use a, b or c)"; the choices are ended by NULL. Returns -1. */
int policy_refuse_choice(const char *what, const char *text, const char *const *choices,
			 struct err *e);

/* In a ceiling: may callers use the image `host`, the host's own programs? */
enum policy_host_use {
	POLICY_HOST_BY_DEFAULT, /* only if the user has named no image */
	POLICY_HOST_ALLOWED,
	POLICY_HOST_FORBIDDEN,
};

struct policy {
	enum mode_id mode;
	enum profile_id profile;
	char *image; /* a reference as typed, or "host"; never NULL */
	enum policy_backend backend;
	enum policy_host_use host_use;      /* used in a ceiling only; not saved */
	char *user_text;                    /* --user as typed, or NULL */
	char *user_name;                    /* of uid, for USER; never NULL */
	uint32_t uid, gid;                  /* inside */
	bool is_user_known;                 /* false: user_text names an account of an image that
					     * is not pulled yet, and uid and gid are not set */
	uint32_t groups[POLICY_GROUPS_MAX]; /* supplementary groups */
	unsigned group_count;
	bool has_capabilities;
	bool may_trace;
	bool is_read_only;
	bool has_network;
	bool passes_env;
	bool accepts_no_landlock; /* the user accepts that this host has none */
	char *workspace;          /* absolute path, or NULL */
	bool is_clone;            /* the sandbox works on a clone of it: policy/clone.h */
	char **protect;           /* read-only in the workspace, besides policy/credential's */
	char **unprotect;         /* names of policy/credential that are not protected */
	bool protects_strictly;   /* placeholders for missing names: --protect-new */
	char **mask;              /* patterns of workspace names that appear empty */
	char *home;               /* the caller's home directory, mounted read-only, or NULL */
	char **unmask;            /* names of policy/credential that are visible in it */
	char *workdir;            /* absolute, inside; never NULL */
	bool is_workdir_asked;    /* set by an option: an image does not change it */
	char *home_dir;           /* $HOME inside; never NULL */

	struct policy_mount mounts[POLICY_MOUNTS_MAX];
	unsigned mount_count;
	struct policy_tmpfs tmpfs[POLICY_TMPFS_MAX];
	unsigned tmpfs_count;
	struct egress egress; /* rules, if there is a network */
	char **publish;       /* ports reachable from the host, as policy/publish; NULL: none */
	char **image_env;     /* the image's, NULL-ended; NULL: none */
	char **places; /* resolved paths of home, workspace and mounts when a named sandbox was
			* created (workspace/hostfiles.h); NULL: not recorded */
	char **passed; /* names of the caller's variables that were requested individually */
	char **env;    /* "NAME=value", later entries win */
	unsigned env_count;

	bool stops_when_idle; /* instead of freezing: --idle */

	/* 0 means no limit */
	uint64_t memory_bytes;
	uint64_t cpus_milli;
	uint64_t pids_count;
	uint64_t disk_bytes;   /* never 0 */
	uint64_t nofile_count; /* never 0; by default a lower hard limit of the caller wins */
	uint64_t file_size_bytes;
	uint64_t io_read_bytes_per_s;
	uint64_t io_write_bytes_per_s;
	uint64_t bandwidth_bytes_per_s; /* in each direction */
	uint64_t timeout_ms;
	uint64_t idle_timeout_ms; /* of a named sandbox: 0: it never sleeps */
	uint64_t cpu_time_ms;
#ifdef AGENTKERNEL_TESTING
	uint64_t test_limit_count; /* policy/fields.def */
#endif

	struct policy_origin origin[POLICY_FIELD_COUNT];
	char *owned_origin[POLICY_FIELD_COUNT]; /* texts read from a file; NULL otherwise */
};

/* The caller's properties that a policy depends on. All borrowed. */
struct policy_caller {
	const char *cwd;           /* NULL if it cannot be read */
	const char *home;          /* NULL if there is none */
	char *const *environ_list; /* "NAME=value" ..., NULL */
};

struct policy_setting {
	enum policy_field field;
	const char *text;   /* as typed; "true" or "false" for a switch; NULL: no workspace */
	const char *origin; /* "--memory"; must live as long as the policy */
	enum policy_layer layer;
	enum policy_origin_kind kind;
};

ERR_CHECKED int policy_resolve(const struct policy_setting *settings, size_t count,
			       const struct policy_caller *caller, struct policy *ret,
			       struct err *e);

/*
 * Sets new values in a resolved policy: limits only, other fields are ERR_INVALID. On failure the
 * policy is unchanged.
 */
ERR_CHECKED int policy_change(struct policy *p, const struct policy_setting *settings, size_t count,
			      struct err *e);
/* Sets a field that is a number in a policy that is a maximum, also one that no update changes. */
ERR_CHECKED int policy_set_number(struct policy *p, const struct policy_setting *s, struct err *e);
void policy_done(struct policy *p); /* may run twice, and on a zeroed struct */

bool policy_is_host_image(const struct policy *p);

/* True if this field was set explicitly, not by a preset, default or image. */
bool policy_is_asked(const struct policy *p, enum policy_field field);

const char *policy_field_name(enum policy_field field);

enum policy_unit {
	POLICY_NO_NUMBER,
	POLICY_BYTES,
	POLICY_BYTES_PER_S,
	POLICY_COUNT,
	POLICY_THOUSANDTHS,
	POLICY_MS,
};
/* The value of a numeric field; 0 is no limit. For other fields *ret is left unchanged. */
enum policy_unit policy_get_number(const struct policy *p, enum policy_field field, uint64_t *ret);

/* True if no option, file or preset set this field. */
bool policy_is_default(const struct policy *p, enum policy_field field);
