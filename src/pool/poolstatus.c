/*
 * poolstatus - what `daemon status` tells; see poolstatus.h.
 */
#include "pool/poolstatus.h"

#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "pool/pools.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* A pool's row in the status. */
struct figures {
	const char *agent, *image, *profile;
	bool has_places;
	unsigned warm, building, in_use;
	const char *why; /* why it has fewer than min_warm; NULL: it has enough */
};

static const char *find_reason(const struct pools *all, const struct pools_pool *p,
			       unsigned building)
{
	if (p->waiting_count - building >= p->min_warm)
		return NULL;
	if (all->is_short)
		return "memory is short";
	if (p->trouble[0])
		return p->trouble;
	return building || pools_count_waiting(all, false) < POOLS_WARM_MAX
		       ? "being filled"
		       : "the most that may wait are there";
}

static struct figures look_at(const struct pools *all, const struct pools_pool *p)
{
	struct figures f = { .agent = mode_get(p->policy.mode)->name,
			     .image = p->policy.image,
			     .profile = profile_get(p->policy.profile)->name,
			     .has_places = strcmp(p->parts.places, "yes") == 0 };

	for (unsigned i = 0; i < p->waiting_count; i++)
		*(p->waiting[i].init_fd >= 0 ? &f.warm : &f.building) += 1;
	for (unsigned i = 0; i < all->in_use; i++)
		f.in_use += all->claimed[i].pool == p;
	f.why = find_reason(all, p, f.building);
	return f;
}

static void format_pool(struct json *j, const struct pools *all, const struct pools_pool *p)
{
	const struct figures f = look_at(all, p);

	json_open_object(j, NULL);
	json_add_text(j, "image", f.image);
	json_add_text(j, "profile", f.profile);
	json_add_text(j, "mode", f.agent);
	json_add_bool(j, "workspace", f.has_places);
	json_add_number(j, "warm", f.warm);
	json_add_number(j, "building", f.building);
	json_add_number(j, "min_warm", p->min_warm);
	json_add_number(j, "in_use", f.in_use);
	json_add_number(j, "hits", (int64_t)p->hits);
	json_add_number(j, "misses", (int64_t)p->misses);
	json_add_text(j, "trouble", p->trouble[0] ? p->trouble : NULL);
	json_add_text(j, "why_not_full", f.why);
	json_close_object(j);
}

void poolstatus_format_json(const struct pools *all, const struct poolstatus_daemon *d,
			    struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_number(&j, "pid", getpid());
	json_add_text(&j, "build", buildid_get());
	json_add_number(&j, "uptime_ms", (int64_t)(clock_now_ms() - d->started_ms));
	json_add_number(&j, "in_use", all->in_use);
	json_add_number(&j, "given", (int64_t)all->given);
	json_add_number(&j, "strangers", (int64_t)d->strangers);
	json_add_bool(&j, "memory_short", all->is_short);
	json_open_array(&j, "pools");
	for (unsigned i = 0; i < all->count; i++)
		format_pool(&j, all, all->list[i]);
	json_close_array(&j);
	json_close_object(&j);
}

static void add_row(struct table *t, const struct pools *all, const struct pools_pool *p)
{
	const struct figures f = look_at(all, p);
	cleanup_free char *agent = mem_format("%s%s", f.agent, f.has_places ? " + workspace" : "");
	cleanup_free char *warm = mem_format("%u of %u", f.warm, p->min_warm);
	cleanup_free char *in_use = mem_format("%u", f.in_use);
	cleanup_free char *hits = mem_format("%" PRIu64, p->hits);
	cleanup_free char *misses = mem_format("%" PRIu64, p->misses);

	table_add_row(t, (const char *const[]){ agent, f.image, f.profile, warm, in_use, hits,
						misses, f.why ? f.why : "-" });
}

/* Formats a line about the daemon and a table of its pools. */
void poolstatus_format_table(const struct pools *all, const struct poolstatus_daemon *d,
			     struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(8);
	char uptime[PARSE_FORMAT_MAX_BYTES];

	buf_addf(out, "pid %d, build %s, up %s, %u in use, %" PRIu64 " given\n", (int)getpid(),
		 buildid_get(),
		 parse_format_duration((clock_now_ms() - d->started_ms) / 1000 * 1000, uptime),
		 all->in_use, all->given);
	table_add_row(t, (const char *const[]){ "AGENT", "IMAGE", "PROFILE", "WARM", "IN USE",
						"HITS", "MISSES", "WHY NOT FULL" });
	for (unsigned i = 0; i < all->count; i++)
		add_row(t, all, all->list[i]);
	table_format(t, out);
	if (d->strangers)
		buf_addf(out,
			 "%" PRIu64
			 " runs had other limits, groups, priorities or cgroups than the "
			 "daemon, and built their own\n",
			 d->strangers);
}
