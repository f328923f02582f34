#pragma once
/*
 * policy - the resolved answer to "what may this sandbox do".
 *
 * A face collects what was asked for as settings: a field, its text, and who says so
 * ("--memory"). policy_resolve() lays down the built-in defaults and the moderate profile, then
 * layer by layer (the user's file, the project's, the command line) its mode, its profile and its
 * single settings in order, and gives back one struct. A preset resets everything that presets
 * define.
 * It looks at nothing but its arguments: no file, no environment, no system call. What only the
 * host can tell (does the mount source exist?) is checked by who uses the policy.
 *
 * An image other than `host` adds what its config says once it is known: policy/policyimage.h.
 *
 * Every field remembers who set it, so `policy show` and errors can say so.
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
#define POLICY_CPU_TIME_MIN_MS 100ull
#define POLICY_CPU_TIME_MAX_MS (366ull * 24 * 3600 * 1000)
#define POLICY_ID_MAX 65534u /* user and group ids inside */
#define POLICY_MOUNTS_MAX 64u
#define POLICY_TMPFS_MAX 16u
#define POLICY_ENV_MAX 1024u
#define POLICY_NAMES_MAX 256u /* that are protected or masked besides the built-in ones */
#define POLICY_DISK_DEFAULT_BYTES (1ull << 30) /* where there is no memory limit to halve */
#define POLICY_USER_ID 1000u                   /* the account named "user" inside */
#define POLICY_ORIGIN_DEFAULT "default"        /* the text of POLICY_ORIGIN_NONE */
#define POLICY_ORIGIN_HALF                                                                         \
	"half of memory"         /* of POLICY_ORIGIN_DERIVED, which the disk alone is              \
				  */
#define POLICY_HOST_IMAGE "host" /* this machine's own programs, read-only */
#define POLICY_GROUPS_MAX 64u

struct policy_mount {
	char *source; /* absolute, on the host */
	char *target; /* absolute, inside */
	bool is_read_only;
};

struct policy_tmpfs {
	char *target;
	uint64_t size_bytes; /* 0: as large again as the disk limit */
};

/* In the order in which they are laid on each other; 0 is what most callers mean. */
enum policy_layer {
	POLICY_BY_COMMAND = -3, /* what a command means without a word from anybody */
	POLICY_BY_USER_FILE,
	POLICY_BY_PROJECT_FILE,
	POLICY_BY_COMMAND_LINE,
	POLICY_BY_CALLER, /* of a server that was started with that command line */
	POLICY_MAXIMUM,   /* not laid down: the most that such a caller may ask for (policy/ceiling) */
};

/* How a value came to be what it is; 0 is what most settings are. */
enum policy_origin_kind {
	POLICY_ORIGIN_SETTING,  /* an option, a key of a file or a caller says so */
	POLICY_ORIGIN_NONE,     /* nobody does: the built-in default */
	POLICY_ORIGIN_PRESET,   /* a profile or mode that somebody chose brings it */
	POLICY_ORIGIN_DERIVED,  /* it follows from another value */
	POLICY_ORIGIN_DETECTED, /* from the command, or from a project's files */
	POLICY_ORIGIN_IMAGE,    /* the image says so */
};

/* Who set a value. Decisions go by layer and kind; the text is for people. */
struct policy_origin {
	const char *text; /* static, or borrowed from the setting */
	enum policy_layer layer;
	enum policy_origin_kind kind;
};

/* Of a ceiling: may callers use this machine's own programs, the image `host`? */
enum policy_host_use {
	POLICY_HOST_BY_DEFAULT, /* where the user has named no image */
	POLICY_HOST_ALLOWED,
	POLICY_HOST_FORBIDDEN,
};

struct policy {
	enum mode_id mode;
	enum profile_id profile;
	char *image;                        /* a reference as typed, or "host"; never NULL */
	enum policy_host_use host_use;      /* asked of a ceiling alone, and not written down */
	char *user_text;                    /* --user as typed, or NULL */
	char *user_name;                    /* of uid, for USER; never NULL */
	uint32_t uid, gid;                  /* inside */
	bool is_user_known;                 /* false: user_text means somebody of an image that is
					       not there yet, and uid and gid say nothing */
	uint32_t groups[POLICY_GROUPS_MAX]; /* besides gid */
	unsigned group_count;
	bool has_capabilities;
	bool may_trace;
	bool is_read_only;
	bool has_network;
	bool passes_env;
	bool accepts_no_landlock; /* the user knows that this host has none */
	char *workspace;          /* absolute path, or NULL */
	bool is_clone;            /* it is a repository, and inside is a clone: policy/clone.h */
	char **protect;           /* read-only in the workspace, besides policy/credential's */
	char **unprotect;         /* of policy/credential's, those that are not */
	bool protects_strictly;   /* placeholders for those that do not exist: --protect-new */
	char **mask;              /* patterns of names in the workspace that appear empty */
	char *home;               /* the caller's, mounted read-only, or NULL */
	char **unmask;            /* of policy/credential's, those that are shown in it */
	char *workdir;            /* absolute, inside; never NULL */
	bool is_workdir_asked;    /* by an option: no image changes it */
	char *home_dir;           /* $HOME inside; never NULL */

	struct policy_mount mounts[POLICY_MOUNTS_MAX];
	unsigned mount_count;
	struct policy_tmpfs tmpfs[POLICY_TMPFS_MAX];
	unsigned tmpfs_count;
	struct egress egress; /* where to, with a network */
	char **image_env;     /* the image's, NULL-ended; NULL: has none */
	char **places; /* where home, workspace and mounts led when a sandbox that stays was made
			  (workspace/hostfiles.h); NULL: not noted */
	char **passed; /* names of the caller's variables that were asked for one by one */
	char **env;    /* "NAME=value", later ones win */
	unsigned env_count;

	/* 0 means no limit */
	uint64_t memory_bytes;
	uint64_t cpus_milli;
	uint64_t pids_count;
	uint64_t disk_bytes;   /* never 0 */
	uint64_t nofile_count; /* never 0; a lower hard limit of the caller's wins by default */
	uint64_t file_size_bytes;
	uint64_t io_read_bytes_per_s;
	uint64_t io_write_bytes_per_s;
	uint64_t bandwidth_bytes_per_s; /* of the network, each way */
	uint64_t timeout_ms;
	uint64_t cpu_time_ms;

	struct policy_origin origin[POLICY_FIELD_COUNT];
	char *owned_origin[POLICY_FIELD_COUNT]; /* texts that a file told; NULL otherwise */
};

/* Who asks, as far as a policy depends on it. All borrowed. */
struct policy_caller {
	const char *cwd;           /* NULL when it cannot be read */
	const char *home;          /* NULL when there is none */
	char *const *environ_list; /* "NAME=value" ..., NULL */
};

struct policy_setting {
	enum policy_field field;
	const char *text;   /* as typed; "true" or "false" for a switch; NULL: no workspace */
	const char *origin; /* "--memory"; lives as long as the policy */
	enum policy_layer layer;
	enum policy_origin_kind kind;
};

ERR_CHECKED int policy_resolve(const struct policy_setting *settings, size_t count,
			       const struct policy_caller *caller, struct policy *ret,
			       struct err *e);

/*
 * New values in a policy that was resolved before: limits only, no walls. Others are ERR_INVALID.
 * On failure it is as it was.
 */
ERR_CHECKED int policy_change(struct policy *p, const struct policy_setting *settings, size_t count,
			      struct err *e);
void policy_done(struct policy *p); /* may run twice, and on a zeroed struct */

bool policy_is_host_image(const struct policy *p);

/* True if somebody set this very field: no preset, no default, no image. */
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
/* The value of a field that is a number; 0 is no limit. *ret is left alone where it is none. */
enum policy_unit policy_get_number(const struct policy *p, enum policy_field field, uint64_t *ret);

/* True if no option, file or preset set this field. */
bool policy_is_default(const struct policy *p, enum policy_field field);
