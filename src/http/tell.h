#pragma once
/*
 * tell - from the result of a call to the answer of its route.
 *
 * Answers have an envelope and the members that existing clients read; docs/design/http.md has the
 * contract. Each takes the result.
 */
#include "http/webcall.h"

webcall_tell_fn tell_command, tell_created, tell_detached, tell_detached_list, tell_detached_logs,
	tell_detached_started, tell_entries, tell_extended, tell_file, tell_file_gone, tell_killed,
	tell_removed, tell_restore_target, tell_result, tell_sandbox, tell_sandboxes, tell_snapshot,
	tell_snapshot_gone, tell_snapshot_made, tell_snapshots, tell_started, tell_stopped,
	tell_stream, tell_written;
