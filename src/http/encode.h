#pragma once
/*
 * encode - turns the result of a call into the answer of its route.
 *
 * Answers have an envelope and the members that existing clients read; docs/design/http.md has the
 * contract. Each function takes ownership of the result.
 */
#include "http/webcall.h"

webcall_tell_fn encode_command, encode_created, encode_detached, encode_detached_list,
	encode_detached_logs, encode_detached_started, encode_entries, encode_extended, encode_file,
	encode_file_gone, encode_restore_target, encode_result, encode_sandbox, encode_sandboxes,
	encode_snapshot, encode_snapshot_made, encode_snapshots, encode_stream, encode_words,
	encode_written;
