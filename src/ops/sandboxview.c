/* sandboxview - formats named sandboxes for output; see sandboxview.h. */
#include "ops/sandboxview.h"

#include "base/cleanup.h"
#include "ops/request.h"

#include <stdio.h>
#include <time.h>

void sandboxview_format_state(const struct inventory_entry *entry, struct buf *out)
{
	if (entry->trouble[0]) {
		buf_addf(out, "damaged: %s", entry->trouble);
		return;
	}
	buf_add_text(out, namedrun_state_word(entry->state));
	if (entry->state == NAMED_STOPPED && entry->reason)
		buf_addf(out, " (%s)", entry->is_expired ? "expired" : entry->reason);
	else if (entry->is_expired)
		buf_add_text(out, " (expired)");
	if (inventory_is_outdated(entry))
		buf_add_text(out, " (other build)");
}

void sandboxview_format_age(uint64_t then_s, char out[SANDBOXVIEW_AGE_MAX_BYTES])
{
	uint64_t now_s = (uint64_t)time(NULL);
	uint64_t age_s = now_s > then_s ? now_s - then_s : 0;

	if (age_s < 60)
		(void)snprintf(out, SANDBOXVIEW_AGE_MAX_BYTES, "%u s", (unsigned)age_s);
	else if (age_s < 3600)
		(void)snprintf(out, SANDBOXVIEW_AGE_MAX_BYTES, "%u min", (unsigned)(age_s / 60));
	else if (age_s < 2 * 86400)
		(void)snprintf(out, SANDBOXVIEW_AGE_MAX_BYTES, "%u h", (unsigned)(age_s / 3600));
	else
		(void)snprintf(out, SANDBOXVIEW_AGE_MAX_BYTES, "%u d", (unsigned)(age_s / 86400));
}

const char *sandboxview_find_trouble(const struct inventory_entry *entry)
{
	const char *trouble = entry->run.checkpoint_trouble;

	return entry->named.checkpoint_every_ms && trouble && trouble[0] ? trouble : NULL;
}

void sandboxview_add_members(struct json *j, const struct inventory_entry *entry)
{
	const struct named *n = &entry->named;

	json_add_text(j, "name", n->name);
	json_add_text(j, "id", n->id);
	json_add_text(j, "state",
		      entry->trouble[0] ? "damaged" : namedrun_state_word(entry->state));
	json_add_text(j, "reason",
		      entry->trouble[0]   ? entry->trouble
		      : entry->is_expired ? "expired"
					  : entry->reason);
	if (namedrun_is_live(entry->state))
		json_add_number(j, "pid", (int64_t)entry->run.init_pid);
	else
		json_add_null(j, "pid");
	json_add_text(j, "build", entry->build[0] ? entry->build : NULL);
	json_add_bool(j, "is_outdated", inventory_is_outdated(entry));
	json_add_text(j, "image", n->image);
	json_add_text(j, "backend",
		      n->backend ? n->backend : policy_backends[POLICY_BACKEND_NATIVE]);
	json_add_text(j, "origin", n->origin);
	json_add_text(j, "owner", n->owner);
	json_add_number(j, "created", (int64_t)n->created_s);
	if (n->expires_s)
		json_add_number(j, "expires", (int64_t)n->expires_s);
	else
		json_add_null(j, "expires");
	if (n->checkpoint_every_ms) {
		json_add_number(j, "checkpoint_every_ms", (int64_t)n->checkpoint_every_ms);
		json_add_number(j, "checkpoint_keep", (int64_t)n->checkpoint_keep);
		json_add_text(j, "checkpoint_trouble", sandboxview_find_trouble(entry));
	}
	json_open_array(j, "labels");
	for (char **label = n->labels; label && *label; label++)
		json_add_text(j, NULL, *label);
	json_close_array(j);
}

static void add_figure(struct json *j, const char *key, bool is_known, uint64_t value)
{
	if (is_known)
		json_add_number(j, key, (int64_t)value);
	else
		json_add_null(j, key);
}

void sandboxview_add_figures(struct json *j, const struct control_stats *s)
{
	add_figure(j, "cpu_us", s->has_cpu, s->cpu_us);
	add_figure(j, "memory", s->has_memory, s->memory_bytes);
	add_figure(j, "peak_memory", s->peak_memory_bytes, s->peak_memory_bytes);
	add_figure(j, "memory_limit", s->memory_limit_bytes, s->memory_limit_bytes);
	add_figure(j, "pids", s->has_pids, s->pids_count);
	add_figure(j, "pids_limit", s->pids_limit, s->pids_limit);
	add_figure(j, "io_read", s->has_io, s->read_bytes);
	add_figure(j, "io_written", s->has_io, s->written_bytes);
	json_add_number(j, "network_sent", (int64_t)s->sent_bytes);
	json_add_number(j, "network_received", (int64_t)s->received_bytes);
}

void sandboxview_add_checkpoint(struct json *j, const struct checkpoint *c)
{
	json_add_text(j, "id", c->id);
	json_add_text(j, "sandbox", c->sandbox);
	json_add_text(j, "comment", c->comment);
	json_add_text(j, "image", c->image);
	json_add_number(j, "created", (int64_t)c->created_s);
	json_add_bool(j, "automatic", c->is_automatic);
	json_add_number(j, "entries", (int64_t)c->entries);
	json_add_number(j, "bytes", (int64_t)c->bytes);
	if (c->has_cost)
		json_add_number(j, "alone_bytes", (int64_t)c->alone_bytes);
}

void sandboxview_add_object(struct json *j, const struct inventory_entry *entry)
{
	json_open_object(j, NULL);
	sandboxview_add_members(j, entry);
	json_close_object(j);
}

int sandboxview_load_policy(const struct ak *ak, const char *name, const struct request *r,
			    struct policy *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (r->typed_count > 0)
		return err_set(e, ERR_INVALID,
			       "%s: sandbox '%s' has its policy already (leave out one)",
			       r->settings.list[0].origin, name);
	if (named_open(ak, name, &n, e) < 0)
		return -1;
	return named_load_policy(&n, ret, e);
}
