#pragma once
/* args - the arguments of an operation (policy/operation), from the path and body of a request. */
#include "http/webcall.h"

/* `body` is NULL for a route without one; *ret is a new reference. */
webcall_args_fn args_create, args_detached, args_exec, args_extend, args_file, args_file_read,
	args_file_write, args_id, args_name, args_nothing, args_run, args_snapshot, args_uuid;
