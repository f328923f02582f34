/* rlimits - the per-process limits of the command; see rlimits.h. */
#include "host/rlimits.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "policy/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <sys/resource.h>

#define MEMLOCK_BYTES (8ull << 20)
#define STACK_BYTES (8ull << 20)
#define SIGPENDING_COUNT 1024u
#define MSGQUEUE_BYTES (800ull << 10)

static int set_limit(int resource, uint64_t soft, uint64_t hard, const char *name, struct err *e)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return err_sys(e, errno, "read limit %s", name);
	if (limit.rlim_max == RLIM_INFINITY || hard < limit.rlim_max)
		limit.rlim_max = hard;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	if (setrlimit(resource, &limit) < 0)
		return err_sys(e, errno, "set limit %s", name);
	return 0;
}

int rlimits_check(const struct policy *p, struct err *e)
{
	struct rlimit limit;

	if (policy_is_default(p, POLICY_NOFILE))
		return 0; /* the lower limit wins */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_sys(e, errno, "read limit nofile");
	if (limit.rlim_max != RLIM_INFINITY && p->nofile_count > limit.rlim_max)
		return err_set(e, ERR_INVALID,
			       "%s: %" PRIu64 " is above this shell's own hard limit of %" PRIu64
			       " (see ulimit -Hn)",
			       p->origin[POLICY_NOFILE].text, p->nofile_count,
			       (uint64_t)limit.rlim_max);
	return 0;
}

int rlimits_apply(const struct policy *p, unsigned flags, struct err *e)
{
	const uint64_t none = RLIM_INFINITY;
	uint64_t file_size = p->file_size_bytes ? p->file_size_bytes : none;
	uint64_t spare = flags & RLIMITS_WITHOUT_CGROUP ? 0 : RLIMITS_SPARE_COUNT;
	uint64_t processes = p->pids_count ? p->pids_count + RLIMITS_INIT_COUNT + spare : none;
	uint64_t cpu_s = p->cpu_time_ms ? (p->cpu_time_ms + 999) / 1000 : none;
	uint64_t data = p->memory_bytes && flags & RLIMITS_WITHOUT_CGROUP ? p->memory_bytes : none;
	const struct {
		int resource;
		const char *name;
		uint64_t soft, hard;
	} limits[] = {
		{ RLIMIT_CORE, "core", 0, 0 },
		{ RLIMIT_NOFILE, "nofile", p->nofile_count, p->nofile_count },
		{ RLIMIT_FSIZE, "file-size", file_size, file_size },
		{ RLIMIT_NPROC, "processes", processes, processes },
		/* SIGKILL one second after SIGXCPU */
		{ RLIMIT_CPU, "cpu-time", cpu_s, cpu_s == none ? none : cpu_s + 1 },
		{ RLIMIT_DATA, "data", data, data },
		{ RLIMIT_MEMLOCK, "memlock", MEMLOCK_BYTES, MEMLOCK_BYTES },
		{ RLIMIT_STACK, "stack", STACK_BYTES, none },
		{ RLIMIT_AS, "address space", none, none },
		/* charged to the caller's whole account, so each sandbox gets a part */
		{ RLIMIT_SIGPENDING, "pending signals", SIGPENDING_COUNT, SIGPENDING_COUNT },
		{ RLIMIT_MSGQUEUE, "message queues", MSGQUEUE_BYTES, MSGQUEUE_BYTES },
		{ RLIMIT_RTPRIO, "real-time priority", 0, 0 },
		{ RLIMIT_NICE, "nice", 0, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(limits) && wall_stands(WALL_RLIMITS); i++)
		if (set_limit(limits[i].resource, limits[i].soft, limits[i].hard, limits[i].name,
			      e) < 0)
			return -1;
	return 0;
}
