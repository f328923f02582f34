#pragma once
/* direct - routes that are no single call: health, figures, several at once, the audit log. */
#include "http/webcall.h"

webcall_direct_fn direct_health, direct_ready, direct_stats, direct_batch, direct_write_files,
	direct_events;
