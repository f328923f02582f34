/* buildid - which build of agentkernel this program is; see buildid.h. */
#include "base/buildid.h"

#include "buildid_text.h" /* BUILDID_TEXT, made by the Makefile */

#include <stdlib.h>

_Static_assert(sizeof(BUILDID_TEXT) <= BUILDID_MAX_BYTES, "the name of a build is too long");

#ifdef AGENTKERNEL_TESTING

static int is_newer(void)
{
	return getenv("AGENTKERNEL_TEST_NEWER") != NULL;
}

const char *buildid_get(void)
{
	return is_newer() ? "newer-build" : BUILDID_TEXT;
}

unsigned buildid_version(unsigned version)
{
	return version + (is_newer() ? 1 : 0);
}

#else

const char *buildid_get(void)
{
	return BUILDID_TEXT;
}

#endif
