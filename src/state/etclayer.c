/* etclayer - caches the layer that hides names of the host's /etc; see etclayer.h. */
#include "state/etclayer.h"

#include "base/buildid.h"
#include "base/hash.h"
#include "base/wall.h"
#include "state/runtimecache.h"
#include "host/etchide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

static int fill(int dir_fd, const void *context, struct err *e)
{
	return etchide_make_layer(dir_fd, context, e);
}

int etclayer_hold(const struct ak *ak, char *const *etc_private, char **ret, int *ret_held_fd,
		  struct err *e)
{
	char name[128];
	const struct runtimecache_dir d = { .kind = "etc",
					    .name = name,
					    .max = ETCLAYER_MAX,
					    .fill = fill,
					    .context = etc_private };
	uint32_t hash[2] = { 1, 2 };
	struct stat st;

	*ret = NULL;
	if (!wall_stands(WALL_ETC_HIDDEN))
		return 0;
	if (stat("/etc", &st) < 0)
		return err_sys(e, errno, "look at /etc");
	for (char *const *path = etc_private; path && *path; path++)
		for (unsigned i = 0; i < 2; i++)
			hash[i] = hash_text(hash[i], *path);
	(void)snprintf(name, sizeof(name), "%s-%" PRIx64 "-%" PRIx64 ".%lx-%08" PRIx32 "%08" PRIx32,
		       buildid_get(), (uint64_t)st.st_ino, (uint64_t)st.st_ctim.tv_sec,
		       (unsigned long)st.st_ctim.tv_nsec, hash[0], hash[1]);
	*ret = runtimecache_hold(ak, &d, ret_held_fd);
	return 0;
}
