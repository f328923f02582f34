#pragma once
/* direct - routes that are not a single call: health, statistics, batches, the audit log. */
#include "http/webcall.h"

webcall_direct_fn direct_health, direct_ready, direct_stats, direct_batch, direct_write_files,
	direct_events;
