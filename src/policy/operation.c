/* operation - the operations that programs can call; see operation.h. */
#include "policy/operation.h"

#include "policy/mode.h"
#include "policy/policy.h"

#include <assert.h>
#include <string.h>

static const char *const network_policies[] = { "allow", "deny", NULL };
static const char *const encodings[] = { "utf8", "base64", NULL };
static const char *const streams[] = { "stdout", "stderr", NULL };
static const char *const signals[] = { "TERM", "KILL", "INT", "HUP", NULL };

#define END                                                                                        \
	{                                                                                          \
		NULL                                                                               \
	}
#define NAME                                                                                       \
	{                                                                                          \
		"name", OPERATION_TEXT, "Sandbox.", .is_required = true                            \
	}
#define PATH                                                                                       \
	{                                                                                          \
		"path", OPERATION_TEXT, "Absolute, ~/..., or relative to its working directory.",  \
			.is_required = true                                                        \
	}
#define TASK                                                                                       \
	{                                                                                          \
		"id", OPERATION_TEXT, "Of sandbox_exec_start.", .is_required = true                \
	}
#define COMMAND                                                                                    \
	{                                                                                          \
		"command", OPERATION_COMMAND, "Argument list, or a string for sh -c.",             \
			.is_required = true                                                        \
	}
#define CWD                                                                                        \
	{                                                                                          \
		"cwd", OPERATION_TEXT, "Working directory."                                        \
	}
#define ENV                                                                                        \
	{                                                                                          \
		"env", OPERATION_MAP, "Environment variables."                                     \
	}
#define AS_USER                                                                                    \
	{                                                                                          \
		"user", OPERATION_TEXT, "User name or number inside."                              \
	}
#define TIMEOUT                                                                                    \
	{                                                                                          \
		"timeout_ms", OPERATION_INTEGER, "Kills it then. Default 30000.",                  \
			.min = 1, .max = OPERATION_TIMEOUT_MAX_MS                                  \
	}
#define STDIN                                                                                      \
	{                                                                                          \
		"stdin", OPERATION_TEXT, "Its standard input."                                     \
	}
#define OTHER .is_unlisted = true
/* Turns a block of policy/fields.def into a parameter. */
#define POLICY_PARAM(id, name, type, ...) { name, type, __VA_ARGS__ },

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
	  "If something was cut: the id under which sandbox_exec_output reads all of it." },
	{ "denied", OPERATION_OBJECTS,
	  "Hosts that the network policy denied: host, port, the rule, and what would allow it." },
	{ "image", OPERATION_TEXT, "What it ran on." },
	{ "warm", OPERATION_FLAG, "Whether the sandbox had waited ready." },
	{ "notes", OPERATION_TEXT, "What agentkernel itself has to say about the run." },
	END,
};

static const struct operation_field sandbox_state[] = {
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "state", OPERATION_TEXT, "created, running, paused, stopped or sleeping.",
	  .is_required = true },
	{ "note", OPERATION_TEXT, "What was done, or that there was nothing to do." },
	END,
};

static const struct operation_field run_params[] = {
	COMMAND,
#define PARAM POLICY_PARAM
#include "policy/fields.def"
	CWD,     ENV,
	TIMEOUT, { "files", OPERATION_FILES, "Files to write first: {path: text}, or a list." },
	STDIN,   END,
};

static const struct operation_field create_params[] = {
	{ "name", OPERATION_TEXT, "a-z, 0-9, '.', '_', '-'.", .is_required = true },
#define PARAM POLICY_PARAM
#include "policy/fields.def"
	CWD,
	ENV,
	{ "timeout_ms", OPERATION_INTEGER, "Of each of its commands.", .min = 1,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	{ "ttl_ms", OPERATION_INTEGER, "Removes it then.", .min = 1000,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	{ "labels", OPERATION_MAP, "For finding it again." },
	{ "command", OPERATION_COMMAND, "A service that runs whenever it does.", OTHER },
	END,
};

static const struct operation_field exec_params[] = {
	NAME, COMMAND, CWD, ENV, AS_USER, TIMEOUT, STDIN, END,
};

static const struct operation_field exec_start_params[] = {
	NAME,
	COMMAND,
	CWD,
	ENV,
	AS_USER,
	{ "timeout_ms", OPERATION_INTEGER, "Kills it then. Default: never.", .min = 1,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	END,
};
static const struct operation_field exec_start_results[] = {
	{ "id", OPERATION_TEXT, "For sandbox_exec_wait, _output and _kill.", .is_required = true },
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "pid", OPERATION_INTEGER, "Inside." },
	END,
};

static const struct operation_field exec_wait_params[] = {
	NAME,
	TASK,
	{ "timeout_ms", OPERATION_INTEGER, "Stops waiting then. Default 30000.", .min = 1,
	  .max = OPERATION_WAIT_MAX_MS },
	END,
};
static const struct operation_field exec_wait_results[] = {
	{ "id", OPERATION_TEXT, "The command.", .is_required = true },
	{ "running", OPERATION_FLAG, "true: it has not ended yet.", .is_required = true },
	{ "exit_code", OPERATION_INTEGER, "Once it has ended." },
	END,
};

static const struct operation_field exec_output_params[] = {
	{ "name", OPERATION_TEXT, "Sandbox; not with an output_id." },
	{ "id", OPERATION_TEXT, "Of sandbox_exec_start, or an output_id.", .is_required = true },
	{ "stream", OPERATION_TEXT, "Default stdout.", .choices = streams },
	{ "offset", OPERATION_INTEGER, "First byte.", .min = 0, .max = INT64_MAX },
	{ "length", OPERATION_INTEGER, "Default 24576 bytes.", .min = 1,
	  .max = OPERATION_CONTENT_MAX_BYTES },
	{ "tail_lines", OPERATION_INTEGER, "The last lines instead.", .min = 1,
	  .max = OPERATION_TAIL_LINES_MAX },
	{ "tail_bytes", OPERATION_INTEGER, "The last bytes instead.", .min = 1,
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
	NAME,
	TASK,
	{ "signal", OPERATION_TEXT, "Default TERM.", .choices = signals },
	END,
};
static const struct operation_field done_results[] = {
	{ "note", OPERATION_TEXT, "What was done.", .is_required = true },
	END,
};

static const struct operation_field list_params[] = {
	{ "running", OPERATION_FLAG, "Only running ones." },
	END,
};
static const struct operation_field list_results[] = {
	{ "sandboxes", OPERATION_OBJECTS, "name, state, image, created, labels of each.",
	  .is_required = true },
	END,
};

static const struct operation_field name_params[] = { NAME, END };
static const struct operation_field stop_params[] = {
	NAME,
	{ "force", OPERATION_FLAG, "At once." },
	END,
};

static const struct operation_field file_write_params[] = {
	NAME,
	PATH,
	{ "content", OPERATION_CONTENT, "What to write.", .is_required = true },
	{ "encoding", OPERATION_TEXT, "Of content. Default utf8.", .choices = encodings },
	{ "append", OPERATION_FLAG, "Add at the end." },
	END,
};
static const struct operation_field file_write_results[] = {
	{ "path", OPERATION_TEXT, "The file.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "How many were written.", .is_required = true },
	END,
};

static const struct operation_field file_read_params[] = {
	NAME,
	PATH,
	{ "offset", OPERATION_INTEGER, "First byte.", .min = 0, .max = INT64_MAX },
	{ "length", OPERATION_INTEGER,
	  "Bytes. Without offset and length: the whole file, an error above 24576 bytes.", .min = 1,
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

static const struct operation_field file_edit_params[] = {
	NAME,
	PATH,
	{ "old_text", OPERATION_TEXT, "Exact text; must occur once.", .is_required = true },
	{ "new_text", OPERATION_TEXT, "In its place.", .is_required = true },
	{ "replace_all", OPERATION_FLAG, "Every occurrence." },
	END,
};
static const struct operation_field file_edit_results[] = {
	{ "path", OPERATION_TEXT, "The file.", .is_required = true },
	{ "replaced", OPERATION_INTEGER, "How many occurrences.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "Size of the file now.", .is_required = true },
	END,
};

static const struct operation_field file_list_params[] = {
	NAME,
	{ "path", OPERATION_TEXT, "Default: its working directory." },
	{ "after", OPERATION_TEXT, "Only names after this one." },
	END,
};
static const struct operation_field file_list_results[] = {
	{ "entries", OPERATION_OBJECTS, "name, type, size, mode, modified of each.",
	  .is_required = true },
	{ "cut", OPERATION_FLAG, "Whether there are more.", .is_required = true },
	END,
};
static const struct operation_field file_remove_params[] = {
	NAME,
	PATH,
	{ "recursive", OPERATION_FLAG, "A directory with all in it." },
	END,
};

static const struct operation_field upload_params[] = {
	NAME,
	PATH,
	{ "tar", OPERATION_BYTES, "Archive, base64, up to 8 MiB.", .is_required = true },
	END,
};
static const struct operation_field download_params[] = { NAME, PATH, END };
static const struct operation_field download_results[] = {
	{ "path", OPERATION_TEXT, "What was packed.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "Size of the archive.", .is_required = true },
	{ "tar", OPERATION_TEXT, "The archive in base64.", .is_required = true },
	END,
};

static const struct operation_field checkpoint_params[] = {
	NAME,
	{ "comment", OPERATION_TEXT, "For the list." },
	{ "every", OPERATION_TEXT, "Also one every '5m' from now on; 'off' ends that.", OTHER },
	{ "keep", OPERATION_INTEGER, "How many of those are kept. Default 10.", .min = 1,
	  .max = OPERATION_KEEP_MAX, OTHER },
	END,
};
static const struct operation_field checkpoint_results[] = {
	{ "id", OPERATION_TEXT, "For sandbox_restore; none if every is 'off'." },
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "bytes", OPERATION_INTEGER, "Size of what was kept." },
	{ "every_ms", OPERATION_INTEGER, "The interval, if it was set." },
	{ "keep", OPERATION_INTEGER, "How many are kept then." },
	END,
};

static const struct operation_field restore_params[] = {
	NAME,
	{ "id", OPERATION_TEXT, "Of sandbox_checkpoint.", .is_required = true },
	END,
};

static const struct operation_field fork_params[] = {
	NAME,
	{ "new_name", OPERATION_TEXT, "Of the copy.", .is_required = true },
	END,
};

static const struct operation_field network_log_results[] = {
	{ "entries", OPERATION_OBJECTS, "decision, host, port, reason, count of each destination.",
	  .is_required = true },
	END,
};

static const struct operation_field network_check_params[] = {
	{ "name", OPERATION_TEXT, "Sandbox. Default: what sandbox_run is allowed." },
	{ "host", OPERATION_TEXT, "HOST or HOST:PORT.", .is_required = true },
	END,
};
static const struct operation_field network_check_results[] = {
	{ "allowed", OPERATION_FLAG, "Whether it may connect.", .is_required = true },
	{ "target", OPERATION_TEXT, "What was asked for.", .is_required = true },
	{ "reason", OPERATION_TEXT, "The rule.", .is_required = true },
	{ "fix", OPERATION_TEXT, "What the user would have to allow." },
	END,
};
static const struct operation_field network_change_params[] = {
	NAME,
	{ "allow", OPERATION_TEXTS, "Hosts or address ranges, within what the server allows." },
	{ "block", OPERATION_TEXTS, "Hosts or address ranges." },
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
static const struct operation_field stats_results[] = {
	{ "name", OPERATION_TEXT, "The sandbox.", .is_required = true },
	{ "cpu_us", OPERATION_INTEGER, "Processor time used." },
	{ "memory", OPERATION_INTEGER, "Bytes in use now." },
	{ "peak_memory", OPERATION_INTEGER, "The most there was." },
	{ "memory_limit", OPERATION_INTEGER, "The most there may be." },
	{ "pids", OPERATION_INTEGER, "Processes and threads." },
	{ "pids_limit", OPERATION_INTEGER, "The most there may be." },
	{ "io_read", OPERATION_INTEGER, "Bytes from disks." },
	{ "io_written", OPERATION_INTEGER, "Bytes to disks." },
	{ "network_sent", OPERATION_INTEGER, "Bytes." },
	{ "network_received", OPERATION_INTEGER, "Bytes." },
	END,
};
static const struct operation_field extend_params[] = {
	NAME,
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
	{ "name", OPERATION_TEXT, "Only of this sandbox." },
	{ "id", OPERATION_TEXT, "Only this one." },
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
static const struct operation_field reach_params[] = {
	NAME,
	{ "port", OPERATION_INTEGER, "0: its main port.", .max = UINT16_MAX },
	{ "look", OPERATION_FLAG, "Only tell whose it is; do not wake it." },
	END,
};
static const struct operation_field reach_results[] = {
	{ "id", OPERATION_TEXT, "The sandbox's.", .is_required = true },
	{ "owner", OPERATION_TEXT, "The key's name." },
	{ "main_port", OPERATION_INTEGER, "0: there is none.", .is_required = true },
	{ "public_ports", OPERATION_OBJECTS, "Whose URLs need no key.", .is_required = true },
	END,
};
static const struct operation_field port_access_params[] = {
	NAME,
	{ "port", OPERATION_INTEGER, "Inside.", .min = 1, .max = UINT16_MAX, .is_required = true },
	{ "public", OPERATION_FLAG, "true: its URL needs no key." },
	END,
};
static const struct operation_field service_add_params[] = {
	NAME,
	{ "service", OPERATION_TEXT, "Its name.", .is_required = true },
	COMMAND,
	{ "port", OPERATION_INTEGER, "Ready when it answers.", .min = 1, .max = UINT16_MAX },
	{ "needs", OPERATION_TEXTS, "Services that have to be ready first." },
	CWD,
	ENV,
	END,
};
static const struct operation_field service_params[] = {
	NAME,
	{ "service", OPERATION_TEXT, "Its name.", .is_required = true },
	END,
};
static const struct operation_field session_params[] = {
	NAME,
	{ "command", OPERATION_COMMAND, "What to start; without id." },
	{ "id", OPERATION_TEXT, "A started command to join." },
	{ "offset", OPERATION_INTEGER, "First byte of its output.", .max = INT64_MAX },
	{ "tty", OPERATION_FLAG, "On a terminal." },
	{ "detachable", OPERATION_FLAG, "Goes on without its caller. Default: on a terminal." },
	{ "rows", OPERATION_INTEGER, "Of the terminal.", .min = 1, .max = UINT16_MAX },
	{ "cols", OPERATION_INTEGER, "Of the terminal.", .min = 1, .max = UINT16_MAX },
	CWD,
	ENV,
	AS_USER,
	{ "timeout_ms", OPERATION_INTEGER, "Kills it then. Default: never.", .min = 1,
	  .max = OPERATION_TIMEOUT_MAX_MS },
	END,
};
static const struct operation_field session_results[] = {
	{ "exit_code", OPERATION_INTEGER, "Once it has ended." },
	END,
};
static const struct operation_field services_results[] = {
	{ "services", OPERATION_OBJECTS, "service, state, port, restarts, id, command of each.",
	  .is_required = true },
	END,
};
static const struct operation_field id_params[] = {
	{ "id", OPERATION_TEXT, "Id, or a comment that no other has.", .is_required = true },
	END,
};

#define READS (OPERATION_READS_ONLY | OPERATION_IS_IDEMPOTENT)

static const struct operation operations[] = {
	[OPERATION_RUN] = { "sandbox_run", "Run in a fresh sandbox",
			    "Run one command in a fresh sandbox that is thrown away. First choice "
			    "for untrusted or generated code and one-off scripts.",
			    OPERATION_DESTROYS | OPERATION_IS_OPEN | OPERATION_NEEDS_PROCESS,
			    run_params, ended },
	[OPERATION_CREATE] = { "sandbox_create", "Create a sandbox",
			       "Create and start a named sandbox that stays: for several commands "
			       "on the same files.",
			       OPERATION_IS_OPEN, create_params, sandbox_state },
	[OPERATION_EXEC] = { "sandbox_exec", "Run in a named sandbox",
			     "Run a command in a named sandbox and wait for it. A non-zero exit "
			     "code is a result, not an error.",
			     OPERATION_DESTROYS | OPERATION_IS_OPEN | OPERATION_NEEDS_PROCESS,
			     exec_params, ended },
	[OPERATION_LIST] = { "sandbox_list", "List sandboxes", "List named sandboxes.",
			     READS | OPERATION_IS_CARE, list_params, list_results },
	[OPERATION_REMOVE] = { "sandbox_remove", "Remove a sandbox",
			       "Stop a sandbox and remove it with its files. One that does not "
			       "exist is no error.",
			       OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE,
			       name_params, sandbox_state },
	[OPERATION_FILE_WRITE] = { "sandbox_file_write", "Write a file",
				   "Write a file; directories above it are made.",
				   OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT, file_write_params,
				   file_write_results },
	[OPERATION_FILE_READ] = { "sandbox_file_read", "Read a file",
				  "Read a file, whole or a range: text, or base64 if it is not "
				  "text.",
				  READS, file_read_params, file_read_results },
	[OPERATION_FILE_EDIT] = { "sandbox_file_edit", "Edit a file",
				  "Replace exact text in a file.", OPERATION_DESTROYS,
				  file_edit_params, file_edit_results },
	[OPERATION_FILE_LIST] = { "sandbox_file_list", "List files", "List a directory.", READS,
				  file_list_params, file_list_results },
	[OPERATION_FILE_REMOVE] = { "sandbox_file_remove", "Remove a file",
				    "Remove a file or directory.", OPERATION_DESTROYS,
				    file_remove_params, done_results },
	[OPERATION_UPLOAD] = { "sandbox_upload", "Upload a directory",
			       "Unpack a tar archive into a directory, which is made.",
			       OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT, upload_params,
			       done_results },
	[OPERATION_DOWNLOAD] = { "sandbox_download", "Download a directory",
				 "Pack a directory as a tar archive, base64, up to 2 MiB.", READS,
				 download_params, download_results },
	[OPERATION_START] = { "sandbox_start", "Start a sandbox", "Start a sandbox.",
			      OPERATION_IS_IDEMPOTENT | OPERATION_IS_OPEN, name_params,
			      sandbox_state },
	[OPERATION_STOP] = { "sandbox_stop", "Stop a sandbox", "Stop a sandbox; its files stay.",
			     OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT | OPERATION_IS_CARE,
			     stop_params, sandbox_state },
	[OPERATION_EXEC_START] = { "sandbox_exec_start", "Start a long command",
				   "Start a command and return at once with its id: for servers "
				   "and "
				   "long builds.",
				   OPERATION_DESTROYS | OPERATION_IS_OPEN, exec_start_params,
				   exec_start_results },
	[OPERATION_EXEC_WAIT] = { "sandbox_exec_wait", "Wait for a long command",
				  "Wait until a started command ends.", READS, exec_wait_params,
				  exec_wait_results },
	[OPERATION_EXEC_OUTPUT] = { "sandbox_exec_output", "Read output",
				    "Read what a started command has printed, or all of an output "
				    "that was cut.",
				    READS, exec_output_params, exec_output_results },
	[OPERATION_EXEC_KILL] = { "sandbox_exec_kill", "End a long command",
				  "Send a signal to a started command.",
				  OPERATION_DESTROYS | OPERATION_IS_CARE, exec_kill_params,
				  done_results },
	[OPERATION_EXEC_LIST] = { "sandbox_exec_list", "List long commands",
				  "List started commands: id, pid, argument list, state.", READS,
				  name_params, entries_results },
	[OPERATION_CHECKPOINT] = { "sandbox_checkpoint", "Make a checkpoint",
				   "Keep what is on its disk now, before risky steps.", 0,
				   checkpoint_params, checkpoint_results },
	[OPERATION_CHECKPOINT_LIST] = { "checkpoint_list", "List checkpoints", "List checkpoints.",
					READS, checkpoint_list_params, entries_results },
	[OPERATION_CHECKPOINT_REMOVE] = { "checkpoint_remove", "Remove a checkpoint",
					  "Remove a checkpoint.", OPERATION_DESTROYS, id_params,
					  done_results },
	[OPERATION_RESTORE] = { "sandbox_restore", "Go back to a checkpoint",
				"Go back to a checkpoint; what was written since is gone.",
				OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT, restore_params,
				sandbox_state },
	[OPERATION_FORK] = { "sandbox_fork", "Fork a sandbox",
			     "Copy a sandbox as it is now, to try several ways.", OPERATION_IS_OPEN,
			     fork_params, sandbox_state },
	[OPERATION_PAUSE] = { "sandbox_pause", "Pause a sandbox", "Freeze all its processes.",
			      OPERATION_IS_IDEMPOTENT, name_params, sandbox_state },
	[OPERATION_RESUME] = { "sandbox_resume", "Resume a sandbox", "End a pause.",
			       OPERATION_IS_IDEMPOTENT, name_params, sandbox_state },
	[OPERATION_NETWORK_LOG] = { "sandbox_network_log", "Show connections",
				    "List connections: which hosts, which were denied and why.",
				    READS, name_params, network_log_results },
	[OPERATION_NETWORK_CHECK] = { "sandbox_network_check", "Check a host",
				      "Tell whether a host may be connected to, and by which rule. "
				      "Contacts nobody.",
				      READS, network_check_params, network_check_results },
	[OPERATION_INFO] = { "sandbox_info", "Show a sandbox", "Shows one named sandbox.",
			     READS | OPERATION_IS_CARE | OPERATION_IS_NO_TOOL, info_params,
			     object_results },
	[OPERATION_STATS] = { "sandbox_stats", "Show figures",
			      "Shows what a running sandbox uses: processor, memory, processes, "
			      "disk, network.",
			      READS | OPERATION_IS_NO_TOOL, name_params, stats_results },
	[OPERATION_NETWORK_CHANGE] = { "sandbox_network_change", "Change network rules",
				       "Adds rules for where a sandbox may connect to, at once "
				       "where "
				       "it runs.",
				       OPERATION_IS_NO_TOOL, network_change_params, done_results },
	[OPERATION_EXTEND] = { "sandbox_extend", "Let a sandbox live longer",
			       "Moves the time at which it is removed.", OPERATION_IS_NO_TOOL,
			       extend_params, extend_results },
	[OPERATION_AUDIT] = { "sandbox_audit", "Show what was done",
			      "Lists what was done to a named sandbox.",
			      READS | OPERATION_IS_NO_TOOL, name_params, entries_results },
	[OPERATION_EVENTS] = { "sandbox_events", "Show what happens",
			       "Lists what was done to the caller's sandboxes, from an offset of "
			       "the audit log on.",
			       READS | OPERATION_IS_NO_TOOL, events_params, events_results },
	[OPERATION_REACH] = { "sandbox_reach", "Reach a port",
			      "Wakes a sandbox for connections to its ports.",
			      OPERATION_IS_NO_TOOL | OPERATION_HANDS_OVER, reach_params,
			      reach_results },
	[OPERATION_PORT_ACCESS] = { "sandbox_port_access", "Open or close a port's URL",
				    "Tells whether a port's URL needs a key.",
				    OPERATION_IS_IDEMPOTENT | OPERATION_IS_NO_TOOL,
				    port_access_params, done_results },
	[OPERATION_SERVICE_ADD] = { "sandbox_service_add", "Add a service",
				    "Runs a command whenever the sandbox runs, and again when it "
				    "ends.",
				    OPERATION_DESTROYS | OPERATION_IS_IDEMPOTENT |
					    OPERATION_IS_OPEN | OPERATION_IS_NO_TOOL,
				    service_add_params, done_results },
	[OPERATION_SERVICE_LIST] = { "sandbox_service_list", "List services",
				     "Lists services and their states.",
				     READS | OPERATION_IS_NO_TOOL, name_params, services_results },
	[OPERATION_SERVICE_REMOVE] = { "sandbox_service_remove", "Remove a service",
				       "Ends a service for good.",
				       OPERATION_DESTROYS | OPERATION_IS_NO_TOOL, service_params,
				       done_results },
	[OPERATION_SERVICE_RESTART] = { "sandbox_service_restart", "Restart a service",
					"Ends a service's command and starts it again.",
					OPERATION_DESTROYS | OPERATION_IS_NO_TOOL, service_params,
					done_results },
	[OPERATION_SESSION] = { "sandbox_session", "Follow a command",
				"Starts or joins a long command: output as it comes, input, "
				"signals.",
				OPERATION_DESTROYS | OPERATION_IS_OPEN | OPERATION_NEEDS_PROCESS |
					OPERATION_IS_NO_TOOL,
				session_params, session_results },
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
		if (ret_id)
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
