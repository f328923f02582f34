/* backend - who builds the walls of a sandbox; see backend.h. */
#include "engine/backend.h"

#include "policy/policy.h"

#include <assert.h>

const struct backend *const backend_all[] = {
	[POLICY_BACKEND_NATIVE] = &nativebackend,
	NULL,
};
static_assert(sizeof(backend_all) / sizeof(backend_all[0]) == POLICY_BACKEND_COUNT + 1,
	      "a backend has no row");

const struct backend *backend_of(const struct policy *p)
{
	return backend_all[p->backend];
}
