/*
 * metrics - counters for Prometheus; see metrics.h.
 *
 * Theory of operation. Counters start at zero with the server, as Prometheus expects. The number of
 * sandboxes in each state is a property of the machine, so one call (sandbox_list) determines it.
 * Only one at a time, because this route needs no key: concurrent requests get the last counts, or
 * a text without these lines.
 */
#include "http/metrics.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	unsigned ms;
	const char *seconds;
} steps[] = {
	{ 2, "0.002" }, { 5, "0.005" },  { 10, "0.01" },    { 25, "0.025" },
	{ 50, "0.05" }, { 100, "0.1" },  { 250, "0.25" },   { 1000, "1" },
	{ 5000, "5" },  { 30000, "30" }, { 300000, "300" }, { ~0u, "+Inf" },
};
_Static_assert(COUNT_OF(steps) == API_LATENCY_STEPS, "the histogram has other steps");

/* As in a worker process's "ended_by". */
static const char *const limit_words[] = { "deadline", "memory", "processes", "cpu_time" };
_Static_assert(COUNT_OF(limit_words) == API_LIMIT_KINDS, "there are other limits");

static const char *const state_words[] = { "created", "running",  "paused",
					   "stopped", "sleeping", "damaged" };
_Static_assert(COUNT_OF(state_words) == API_STATE_KINDS, "there are other states");

/* ---- counting ---- */

static void count_latency(struct api_counts *n, uint64_t ms)
{
	size_t i = 0;

	while (i + 1 < COUNT_OF(steps) && ms > steps[i].ms)
		i++;
	n->latency[i]++;
	n->latency_sum_s += (double)ms / 1000;
}

static void count_result(struct api_counts *n, const json_t *result)
{
	const char *ended_by = json_string_value(json_object_get(result, "ended_by"));
	const json_t *warm = json_object_get(result, "warm");
	const json_t *error = json_object_get(result, "error");
	const char *code = error ? json_string_value(json_object_get(error, "code")) : NULL;

	if (!code)
		code = "";

	if (warm)
		*(json_is_true(warm) ? &n->warm_starts : &n->cold_starts) += 1;
	if (strcmp(code, "timeout") == 0)
		n->unanswered++;
	n->denials += json_array_size(json_object_get(result, "denied"));
	for (size_t i = 0; ended_by && i < COUNT_OF(limit_words); i++)
		n->limits_hit[i] += strcmp(ended_by, limit_words[i]) == 0;
}

void metrics_count_end(struct api *a, const struct call *c, const json_t *result)
{
	enum operation_id id = OPERATION_COUNT;
	bool is_done = result && !json_object_get(result, "error");

	(void)operation_find(c->operation->name, &id);
	a->counts.freezes += is_done && (id == OPERATION_CHECKPOINT || id == OPERATION_FORK);
	a->counts.restarts += is_done && (id == OPERATION_START || id == OPERATION_RESTORE);
	if (c->operation->hints & OPERATION_NEEDS_PROCESS)
		count_latency(&a->counts, clock_now_ms() - c->started_ms);
	count_result(&a->counts, result);
}

/* ---- formatting ---- */

static void add(struct buf *out, const char *name, const char *kind, uint64_t value)
{
	buf_addf(out, "# TYPE agentkernel_%s %s\nagentkernel_%s %" PRIu64 "\n", name, kind, name,
		 value);
}

static void add_latency(struct buf *out, const struct api_counts *n)
{
	uint64_t total = 0;

	buf_addf(out, "# TYPE agentkernel_command_seconds histogram\n");
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		total += n->latency[i];
		buf_addf(out, "agentkernel_command_seconds_bucket{le=\"%s\"} %" PRIu64 "\n",
			 steps[i].seconds, total);
	}
	buf_addf(out,
		 "agentkernel_command_seconds_sum %f\nagentkernel_command_seconds_count %" PRIu64
		 "\n",
		 n->latency_sum_s, total);
}

static void add_counters(struct buf *out, const struct api *a)
{
	const struct api_counts *n = &a->counts;

	add(out, "requests_total", "counter", a->request_count);
	add(out, "calls_total", "counter", a->call_count);
	add(out, "refused_total", "counter", a->refused_count);
	add(out, "calls_running", "gauge", a->slots.count[SLOTS_CALL] + a->slots.count[SLOTS_CARE]);
	add(out, "connections", "gauge", a->connections.count);
	buf_addf(out,
		 "# TYPE agentkernel_starts_total counter\n"
		 "agentkernel_starts_total{warm=\"true\"} %" PRIu64 "\n"
		 "agentkernel_starts_total{warm=\"false\"} %" PRIu64 "\n",
		 n->warm_starts, n->cold_starts);
	buf_addf(out,
		 "# TYPE agentkernel_build_info gauge\n"
		 "agentkernel_build_info{version=\"%s\",build=\"%s\"} 1\n",
		 AGENTKERNEL_VERSION, buildid_get());
	add(out, "unanswered_total", "counter", n->unanswered);
	add(out, "freezes_total", "counter", n->freezes);
	add(out, "restarts_total", "counter", n->restarts);
	add(out, "denials_total", "counter", n->denials);
	buf_addf(out, "# TYPE agentkernel_limits_hit_total counter\n");
	for (size_t i = 0; i < COUNT_OF(limit_words); i++)
		buf_addf(out, "agentkernel_limits_hit_total{limit=\"%s\"} %" PRIu64 "\n",
			 limit_words[i], n->limits_hit[i]);
	add_latency(out, n);
}

static void count_states(struct api_counts *n, const json_t *sandboxes)
{
	const json_t *sandbox;
	size_t index;

	memset(n->states, 0, sizeof(n->states));
	n->outdated = 0;
	n->has_states = true;
	json_array_foreach((json_t *)(uintptr_t)sandboxes, index, sandbox)
	{
		const char *state = json_string_value(json_object_get(sandbox, "state"));

		n->outdated += json_is_true(json_object_get(sandbox, "is_outdated"));
		for (size_t i = 0; state && i < COUNT_OF(state_words); i++)
			n->states[i] += strcmp(state, state_words[i]) == 0;
	}
}

static void reply(const struct api *a, struct connection *c)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	add_counters(&out, a);
	if (a->counts.has_states)
		buf_addf(&out, "# TYPE agentkernel_sandboxes gauge\n");
	for (size_t i = 0; a->counts.has_states && i < COUNT_OF(state_words); i++)
		buf_addf(&out, "agentkernel_sandboxes{state=\"%s\"} %" PRIu64 "\n", state_words[i],
			 a->counts.states[i]);
	if (a->counts.has_states)
		add(&out, "sandboxes_outdated", "gauge", a->counts.outdated);
	connection_reply(c, 200, "text/plain; version=0.0.4", buf_text(&out), out.len, NULL);
}

static void encode_listed(struct webcall *x, json_t *result)
{
	const json_t *sandboxes = json_object_get(result, "sandboxes");

	if (sandboxes)
		count_states(&x->api->counts, sandboxes);
	reply(x->api, x->connection);
	json_decref(result);
}

void metrics_tell(struct api *a, struct connection *c)
{
	static const struct route list_route = { .operation = OPERATION_LIST,
						 .tell = encode_listed };
	struct webcall *x = connection_user(c);
	json_t *args = json_object();
	struct err e = { 0 };

	x->route = &list_route;
	x->place.kind = SLOTS_READER;
	if (a->counts.is_counting || webcall_start(x, args, &e) < 0)
		reply(a, c);
	else
		a->counts.is_counting = x->is_counting = true;
	json_decref(args);
}
