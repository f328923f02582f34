#pragma once
/* metrics - what the server counts, for Prometheus: GET /metrics. */
#include "http/webcall.h"

/* A call is over. `result` is borrowed, and NULL or an error's where there is none. */
void metrics_count_end(struct api *a, const struct call *c, const json_t *result);

webcall_direct_fn metrics_tell;
