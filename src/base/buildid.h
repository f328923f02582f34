#pragma once
/*
 * buildid - which build of agentkernel this program is, and which versions it speaks.
 *
 * The build is a digest of the sources, made by the Makefile: two programs with the same one were
 * made from the same text. Processes that live long (supervisors, the daemon) may be of another
 * build than whoever speaks to them; what they exchange and what lies on disk has a version, and
 * buildid_version() is where a build for tests claims to be a later one (AGENTKERNEL_TEST_NEWER=1).
 */

#define BUILDID_MAX_BYTES 16 /* with its NUL */

const char *buildid_get(void);

#ifdef AGENTKERNEL_TESTING
unsigned buildid_version(unsigned version);
#else
static inline unsigned buildid_version(unsigned version)
{
	return version;
}
#endif
