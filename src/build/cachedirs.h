#pragma once
/*
 * cachedirs - the directories that RUN --mount=type=cache shows, which stay from build to build.
 *
 * They lie in build-cache/ of the state directory, by id. A step holds a lock on each that it uses:
 * shared, or alone if the mount says so. After a build the least recently used ones that nobody
 * holds are removed until the rest is within the maxima.
 */
#include "base/err.h"

struct ak;

#define CACHEDIRS_DIR "build-cache"
#define CACHEDIRS_MAX 256u
#define CACHEDIRS_MAX_BYTES (20ull << 30)

/* Locks one for this process and its children, and marks it as used. */
ERR_CHECKED int cachedirs_hold(const char *path, int flock_operation, struct err *e);
void cachedirs_prune(const struct ak *ak);
