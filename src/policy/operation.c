/* operation - what programs can ask of us; see operation.h. */
#include "policy/operation.h"

#include <assert.h>
#include <string.h>

static const char *const profiles[] = { "restrictive", "moderate", "permissive", NULL };
static const char *const modes[] = { "native", "claude", "codex", "gemini", NULL };
static const char *const encodings[] = { "utf8", "base64", NULL };
static const char *const streams[] = { "stdout", "stderr", NULL };
static const char *const signals[] = { "TERM", "KILL", "INT", "HUP", NULL };

#define END                                                                                        \
	{                                                                                          \
		NULL                                                                               \
	}
#define NAME(words)                                                                                \
	{                                                                                          \
		"name", OPERATION_TEXT, words, .is_required = true                                 \
	}
#define COMMAND                                                                                    \
	{                                                                                          \
		"command", OPERATION_COMMAND,                                                      \
			"The program and its arguments as an array of strings, or one string for " \
			"'sh -c'.",                                                                \
			.is_required = true                                                        \
	}
#define CWD                                                                                        \
	{                                                                                          \
		"cwd", OPERATION_TEXT, "Directory inside the sandbox to start in."                 \
	}
#define ENV                                                                                        \
	{                                                                                          \
		"env", OPERATION_MAP, "Environment variables to set for the command."              \
	}
#define TIMEOUT                                                                                    \
	{                                                                                          \
		"timeout_ms", OPERATION_INTEGER,                                                   \
			"Ends the command after that many milliseconds (default 30000).",          \
			.min = 1, .max = OPERATION_TIMEOUT_MAX_MS                                  \
	}
#define STDIN                                                                                      \
	{                                                                                          \
		"stdin", OPERATION_TEXT, "Text that the command reads from standard input."        \
	}
#define POLICY                                                                                     \
	{ "image", OPERATION_TEXT,                                                                 \
	  "OCI image such as 'python:3.12-alpine', or 'host' for this machine's own programs, "    \
	  "read-only. Default: detected from the command and the project." },                      \
		{ "profile", OPERATION_TEXT,                                                       \
		  "Permission preset; it cannot exceed what the server was started with.",         \
		  .choices = profiles },                                                           \
		{ "compatibility_mode", OPERATION_TEXT,                                            \
		  "Preset for one agent's needs; it cannot exceed what the server allows.",        \
		  .choices = modes },                                                              \
		{ "network", OPERATION_FLAG, "false: no network. true: as the server allows." },   \
		{ "cpus", OPERATION_TEXT, "Processors: '2', '0.5'." },                             \
	{                                                                                          \
		"memory", OPERATION_AMOUNT, "Memory limit: '512MiB', '2GiB', or a number of MiB."  \
	}

static const struct operation_field ended[] = {
	{ "exit_code", OPERATION_INTEGER,
	  "The command's own; 124 at the deadline, 128 + n by signal n, 127 not found, 126 not "
	  "executable.",
	  .is_required = true },
	{ "stdout", OPERATION_TEXT, "What it printed; cut in the middle if it is long.",
	  .is_required = true },
	{ "stderr", OPERATION_TEXT, "The same for standard error.", .is_required = true },
	{ "duration_ms", OPERATION_INTEGER, "How long it took.", .is_required = true },
	{ "ended_by", OPERATION_TEXT, "exit, signal, deadline, memory, processes or cpu_time.",
	  .is_required = true },
	{ "signal", OPERATION_INTEGER, "The signal that ended it, if one did." },
	{ "reason", OPERATION_TEXT, "Why it was ended, in words, if a limit did." },
	{ "stdout_bytes", OPERATION_INTEGER, "All that it printed, before cutting." },
	{ "stderr_bytes", OPERATION_INTEGER, "The same for standard error." },
	{ "output_id", OPERATION_TEXT,
	  "If something was cut: the id under which sandbox_exec_output reads all of it by "
	  "range." },
	{ "denied", OPERATION_OBJECTS,
	  "Hosts that the network policy denied: host, port, the rule, and what would allow it." },
	{ "image", OPERATION_TEXT, "What it ran on." },
	{ "warm", OPERATION_FLAG, "Whether the sandbox had waited ready." },
	{ "notes", OPERATION_TEXT, "What agentkernel itself has to say about the run." },
	END,
};

static const struct operation_field sandbox_state[] = {
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "state", OPERATION_TEXT, "created, running, paused or stopped.", .is_required = true },
	{ "note", OPERATION_TEXT, "What was done, or that there was nothing to do." },
	END,
};

static const struct operation_field run_params[] = {
	COMMAND,
	POLICY,
	CWD,
	ENV,
	TIMEOUT,
	{ "files", OPERATION_FILES,
	  "Files to place before the command starts: an object of path and text, or an array of "
	  "objects with path, content and encoding ('utf8' or 'base64')." },
	STDIN,
	END,
};

static const struct operation_field create_params[] = {
	NAME("Its name: lower-case letters, digits, '.', '_' and '-'."),
	POLICY,
	CWD,
	ENV,
	{ "timeout_ms", OPERATION_INTEGER, "Deadline of each of its commands.", .min = 1,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	{ "ttl_ms", OPERATION_INTEGER, "Removes it after that many milliseconds.", .min = 1000,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	{ "labels", OPERATION_MAP, "Labels for finding it again." },
	END,
};

static const struct operation_field exec_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	COMMAND,
	CWD,
	ENV,
	{ "user", OPERATION_TEXT, "As whom: a name known inside, or a number." },
	TIMEOUT,
	STDIN,
	END,
};

static const struct operation_field exec_start_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	COMMAND,
	CWD,
	ENV,
	{ "user", OPERATION_TEXT, "As whom: a name known inside, or a number." },
	{ "timeout_ms", OPERATION_INTEGER, "Ends it after that many milliseconds (default: never).",
	  .min = 1, .max = OPERATION_TIMEOUT_MAX_MS },
	END,
};
static const struct operation_field exec_start_results[] = {
	{ "id", OPERATION_TEXT, "For sandbox_exec_output and sandbox_exec_kill.",
	  .is_required = true },
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	END,
};

static const struct operation_field exec_output_params[] = {
	{ "name", OPERATION_TEXT,
	  "The sandbox; not for an output_id of sandbox_run or "
	  "sandbox_exec." },
	{ "id", OPERATION_TEXT, "Of sandbox_exec_start, or an output_id.", .is_required = true },
	{ "stream", OPERATION_TEXT, "Which output (default stdout).", .choices = streams },
	{ "offset", OPERATION_INTEGER, "First byte (default 0).", .min = 0, .max = INT64_MAX },
	{ "length", OPERATION_INTEGER, "At most so many bytes (default 65536).", .min = 1,
	  .max = OPERATION_CONTENT_MAX_BYTES },
	END,
};
static const struct operation_field exec_output_results[] = {
	{ "output", OPERATION_TEXT, "The bytes as text.", .is_required = true },
	{ "offset", OPERATION_INTEGER, "Where they begin.", .is_required = true },
	{ "next_offset", OPERATION_INTEGER, "Where to go on.", .is_required = true },
	{ "running", OPERATION_FLAG, "Whether the command still runs.", .is_required = true },
	{ "exit_code", OPERATION_INTEGER, "Once it has ended." },
	END,
};

static const struct operation_field exec_kill_params[] = {
	NAME("The sandbox."),
	{ "id", OPERATION_TEXT, "Of sandbox_exec_start.", .is_required = true },
	{ "signal", OPERATION_TEXT, "Which signal (default TERM).", .choices = signals },
	END,
};
static const struct operation_field done_results[] = {
	{ "note", OPERATION_TEXT, "What was done.", .is_required = true },
	END,
};

static const struct operation_field list_params[] = {
	{ "running", OPERATION_FLAG, "true: only those that run." },
	END,
};
static const struct operation_field list_results[] = {
	{ "sandboxes", OPERATION_OBJECTS, "name, state, image, created, labels of each.",
	  .is_required = true },
	END,
};

static const struct operation_field name_params[] = { NAME("The sandbox."), END };

static const struct operation_field file_write_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	{ "path", OPERATION_TEXT, "Absolute path inside.", .is_required = true },
	{ "content", OPERATION_CONTENT, "What to write.", .is_required = true },
	{ "encoding", OPERATION_TEXT, "Of content: utf8 (default) or base64.",
	  .choices = encodings },
	{ "append", OPERATION_FLAG, "true: at the end instead of in place of it." },
	END,
};
static const struct operation_field file_write_results[] = {
	{ "path", OPERATION_TEXT, "The file.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "How many were written.", .is_required = true },
	END,
};

static const struct operation_field file_read_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	{ "path", OPERATION_TEXT, "Absolute path inside.", .is_required = true },
	{ "offset", OPERATION_INTEGER, "First byte (default 0).", .min = 0, .max = INT64_MAX },
	{ "length", OPERATION_INTEGER, "At most so many bytes (default 262144).", .min = 1,
	  .max = OPERATION_CONTENT_MAX_BYTES },
	END,
};
static const struct operation_field file_read_results[] = {
	{ "content", OPERATION_TEXT, "The file's text, or base64 if it is not text.",
	  .is_required = true },
	{ "encoding", OPERATION_TEXT, "utf8 or base64.", .is_required = true },
	{ "size", OPERATION_INTEGER, "Of the whole file.", .is_required = true },
	{ "offset", OPERATION_INTEGER, "Where content begins.", .is_required = true },
	{ "next_offset", OPERATION_INTEGER, "Where to go on, if there is more." },
	END,
};

static const struct operation_field file_list_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	{ "path", OPERATION_TEXT, "Absolute path of a directory inside (default: its home)." },
	END,
};
static const struct operation_field file_list_results[] = {
	{ "entries", OPERATION_OBJECTS, "name, type, size, mode, modified of each.",
	  .is_required = true },
	{ "cut", OPERATION_FLAG, "Whether there are more.", .is_required = true },
	END,
};

static const struct operation_field checkpoint_params[] = {
	NAME("The sandbox; frozen for a moment if it runs."),
	{ "comment", OPERATION_TEXT, "For the list." },
	END,
};
static const struct operation_field checkpoint_results[] = {
	{ "id", OPERATION_TEXT, "For sandbox_restore.", .is_required = true },
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "Size of what was kept.", .is_required = true },
	END,
};

static const struct operation_field restore_params[] = {
	NAME("The sandbox; it is stopped, put back and started again if it ran."),
	{ "id", OPERATION_TEXT, "Of sandbox_checkpoint.", .is_required = true },
	END,
};

static const struct operation_field fork_params[] = {
	NAME("The sandbox to start from."),
	{ "new_name", OPERATION_TEXT, "Of the new one.", .is_required = true },
	END,
};

static const struct operation_field network_log_results[] = {
	{ "entries", OPERATION_OBJECTS, "decision, host, port, reason, count of each destination.",
	  .is_required = true },
	END,
};

static const struct operation_field network_check_params[] = {
	{ "name", OPERATION_TEXT, "A sandbox; default: what sandbox_run would be allowed." },
	{ "host", OPERATION_TEXT, "HOST or HOST:PORT (default port 443).", .is_required = true },
	END,
};
static const struct operation_field network_check_results[] = {
	{ "allowed", OPERATION_FLAG, "Whether it may connect.", .is_required = true },
	{ "target", OPERATION_TEXT, "What was asked for.", .is_required = true },
	{ "reason", OPERATION_TEXT, "The rule.", .is_required = true },
	{ "fix", OPERATION_TEXT, "The option for the user that would allow it." },
	END,
};

static const struct operation_field info_params[] = {
	{ "name", OPERATION_TEXT, "The sandbox." },
	{ "uuid", OPERATION_TEXT, "Or its id." },
	END,
};
static const struct operation_field object_results[] = {
	{ "sandbox", OPERATION_OBJECT, "All that is known of it.", .is_required = true },
	END,
};
static const struct operation_field path_params[] = {
	NAME("The sandbox; it is started if it is not running."),
	{ "path", OPERATION_TEXT, "Absolute path inside.", .is_required = true },
	END,
};
static const struct operation_field extend_params[] = {
	NAME("The sandbox."),
	{ "by", OPERATION_TEXT, "How much longer it lives: '30m'.", .is_required = true },
	END,
};
static const struct operation_field extend_results[] = {
	{ "expires", OPERATION_INTEGER, "When, in seconds since 1970.", .is_required = true },
	END,
};
static const struct operation_field entries_results[] = {
	{ "entries", OPERATION_OBJECTS, "One object each.", .is_required = true },
	END,
};
static const struct operation_field checkpoint_list_params[] = {
	{ "id", OPERATION_TEXT, "Only this one: its id, or a comment that no other has." },
	END,
};
static const struct operation_field events_params[] = {
	{ "offset", OPERATION_INTEGER, "Where to begin, in bytes.", .is_required = true,
	  .max = INT64_MAX },
	END,
};
static const struct operation_field events_results[] = {
	{ "entries", OPERATION_OBJECTS, "Each line, and where it ends.", .is_required = true },
	{ "next_offset", OPERATION_INTEGER, "Where to go on.", .is_required = true },
	END,
};
static const struct operation_field id_params[] = {
	{ "id", OPERATION_TEXT, "Its id, or the comment it was made with, if no other has that.",
	  .is_required = true },
	END,
};

static const struct operation operations[] = {
	[OPERATION_RUN] = { "sandbox_run", "Run in a fresh sandbox",
			    "Runs one command in a fresh sandbox that is thrown away afterwards. "
			    "The first choice "
			    "for untrusted or generated code, package installs and one-off "
			    "scripts.",
			    OPERATION_DESTROYS | OPERATION_IS_OPEN | OPERATION_NEEDS_PROCESS,
			    run_params, ended },
	[OPERATION_CREATE] = { "sandbox_create", "Create a sandbox",
			       "Creates a named sandbox that stays, and starts it. Use it when "
			       "several commands need "
			       "the same files.",
			       OPERATION_IS_OPEN, create_params, sandbox_state },
	[OPERATION_EXEC] = { "sandbox_exec", "Run in a named sandbox",
			     "Runs a command in a named sandbox and waits for it. A non-zero exit "
			     "code is a result, "
			     "not an error.",
			     OPERATION_DESTROYS | OPERATION_IS_OPEN | OPERATION_NEEDS_PROCESS,
			     exec_params, ended },
	[OPERATION_LIST] = { "sandbox_list", "List sandboxes", "Lists the named sandboxes.",
			     OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE, list_params,
			     list_results },
	[OPERATION_REMOVE] = { "sandbox_remove", "Remove a sandbox",
			       "Stops a named sandbox and removes it with all of its files. One "
			       "that is not there is "
			       "fine.",
			       OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE, name_params,
			       sandbox_state },
	[OPERATION_FILE_WRITE] = { "sandbox_file_write", "Write a file",
				   "Writes a file in a named sandbox; directories above it are "
				   "made.",
				   OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT, file_write_params,
				   file_write_results },
	[OPERATION_FILE_READ] = { "sandbox_file_read", "Read a file",
				  "Reads a file of a named sandbox, whole or by range: text, or "
				  "base64 if it is not text.",
				  OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT, file_read_params,
				  file_read_results },
	[OPERATION_START] = { "sandbox_start", "Start a sandbox",
			      "Starts a named sandbox. One that runs already is fine.",
			      OPERATION_IS_IDEMPOTENT | OPERATION_IS_OPEN, name_params,
			      sandbox_state },
	[OPERATION_STOP] = { "sandbox_stop", "Stop a sandbox",
			     "Stops a named sandbox; its files stay. One that is stopped already "
			     "is fine.",
			     OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE, name_params,
			     sandbox_state },
	[OPERATION_EXEC_START] = { "sandbox_exec_start", "Start a long command",
				   "Starts a command in a named sandbox and returns at once with "
				   "an id: for servers, "
				   "watchers and long builds.",
				   OPERATION_DESTROYS | OPERATION_IS_OPEN, exec_start_params,
				   exec_start_results },
	[OPERATION_EXEC_OUTPUT] = { "sandbox_exec_output", "Read output",
				    "Reads by range what a command started by sandbox_exec_start "
				    "has printed, or the whole "
				    "of an output that was cut.",
				    OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT,
				    exec_output_params, exec_output_results },
	[OPERATION_EXEC_KILL] = { "sandbox_exec_kill", "End a long command",
				  "Sends a signal to a command started by sandbox_exec_start.",
				  OPERATION_DESTROYS | OPERATION_IS_CARE, exec_kill_params, done_results },
	[OPERATION_FILE_LIST] = { "sandbox_file_list", "List files",
				  "Lists a directory of a named sandbox.",
				  OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT, file_list_params,
				  file_list_results },
	[OPERATION_CHECKPOINT] = { "sandbox_checkpoint", "Make a checkpoint",
				   "Keeps what a named sandbox has on disk now, so that "
				   "sandbox_restore can put it back: "
				   "before risky steps.",
				   0, checkpoint_params, checkpoint_results },
	[OPERATION_RESTORE] = { "sandbox_restore", "Go back to a checkpoint",
				"Puts a named sandbox back to one of its checkpoints. What it "
				"wrote since is gone.",
				OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT, restore_params,
				sandbox_state },
	[OPERATION_FORK] = { "sandbox_fork", "Fork a sandbox",
			     "Makes a new sandbox that starts where another one is: to try several "
			     "ways at once.",
			     OPERATION_IS_OPEN, fork_params, sandbox_state },
	[OPERATION_NETWORK_LOG] = { "sandbox_network_log", "Show connections",
				    "Lists where a named sandbox has connected to, and what was "
				    "denied and why.",
				    OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT, name_params,
				    network_log_results },
	[OPERATION_NETWORK_CHECK] = { "sandbox_network_check", "Check a host",
				      "Tells whether a sandbox may connect to a host, by which "
				      "rule, and what the user would "
				      "have to change. Contacts nobody.",
				      OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT,
				      network_check_params, network_check_results },
	[OPERATION_INFO] = { "sandbox_info", "Show a sandbox", "Shows one named sandbox.",
			     OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE | OPERATION_IS_NO_TOOL,
			     info_params, object_results },
	[OPERATION_FILE_REMOVE] = { "sandbox_file_remove", "Remove a file",
				    "Removes a file of a named sandbox.",
				    OPERATION_DESTROYS | OPERATION_IS_NO_TOOL, path_params,
				    done_results },
	[OPERATION_EXTEND] = { "sandbox_extend", "Let a sandbox live longer",
			       "Moves the time at which it is removed.", OPERATION_IS_NO_TOOL,
			       extend_params, extend_results },
	[OPERATION_AUDIT] = { "sandbox_audit", "Show what was done",
			      "Lists what was done to a named sandbox.",
			      OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT | OPERATION_IS_NO_TOOL,
			      name_params, entries_results },
	[OPERATION_EVENTS] = { "sandbox_events", "Show what happens",
			       "Lists what was done to the caller's sandboxes, from an offset of "
			       "the "
			       "audit log on.",
			       OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT |
				       OPERATION_IS_NO_TOOL,
			       events_params, events_results },
	[OPERATION_EXEC_LIST] = { "sandbox_exec_list", "List long commands",
				  "Lists commands that were started and not waited for.",
				  OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT |
					  OPERATION_IS_NO_TOOL,
				  name_params, entries_results },
	[OPERATION_CHECKPOINT_LIST] = { "checkpoint_list", "List checkpoints",
					"Lists the checkpoints of all sandboxes, or one.",
					OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT |
						OPERATION_IS_NO_TOOL,
					checkpoint_list_params, entries_results },
	[OPERATION_CHECKPOINT_REMOVE] = { "checkpoint_remove", "Remove a checkpoint",
					  "Removes one checkpoint.",
					  OPERATION_DESTROYS | OPERATION_IS_NO_TOOL, id_params,
					  done_results },
};
static_assert(sizeof(operations) / sizeof(operations[0]) == OPERATION_COUNT,
	      "an operation has no row");

const struct operation *operation_get(enum operation_id id)
{
	assert(id < OPERATION_COUNT);
	return &operations[id];
}

const struct operation *operation_find(const char *name, enum operation_id *ret_id)
{
	for (unsigned id = 0; id < OPERATION_COUNT; id++) {
		if (strcmp(operations[id].name, name) != 0)
			continue;
		*ret_id = (enum operation_id)id;
		return &operations[id];
	}
	return NULL;
}

const struct operation_field *operation_param(const struct operation *o, const char *name)
{
	for (const struct operation_field *f = o->params; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}
