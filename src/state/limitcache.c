/* limitcache - caches directories of limit files; see limitcache.h. */
#include "state/limitcache.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "state/runtimecache.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/sysinfo.h>

#define FORMAT_NUMBER                                                                              \
	1 /* of host/limitfiles' format: another number gives another directory                    \
	   */

/* Contains everything that a file depends on, including the machine's memory and CPUs. */
static bool format_name(const struct limitfiles_figures *f, struct buf *out)
{
	const unsigned char *mask = (const unsigned char *)&f->usable;
	size_t len = sizeof(f->usable);
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return false;
	buf_addf(out, "%d-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%lx-%d-", FORMAT_NUMBER,
		 f->memory_bytes, f->cpus_milli, f->pids_count, machine.totalram, f->has_v1);
	while (len > 0 && mask[len - 1] == 0)
		len--;
	for (size_t i = 0; i < len; i++)
		buf_addf(out, "%02x", mask[i]);
	return !out->is_cut;
}

static int fill(int dir_fd, const void *context, struct err *e)
{
	CLEANUP(limitfiles_done) struct limitfiles files;

	limitfiles_init(&files);
	return limitfiles_make(&files, dir_fd, context, e);
}

char *limitcache_get(const struct ak *ak, const struct limitfiles_figures *f)
{
	cleanup_buf struct buf name;
	struct runtimecache_dir d = {
		.kind = "limits", .max = LIMITCACHE_MAX, .fill = fill, .context = f
	};

	buf_init(&name, NAME_MAX);
	if (!format_name(f, &name))
		return NULL;
	d.name = buf_text(&name);
	return runtimecache_get(ak, &d);
}
