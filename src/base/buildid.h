#pragma once
/*
 * buildid - identifies the build of this program and its protocol versions.
 *
 * The build id is a digest of the sources, computed by the Makefile: two programs with the same id
 * were built from the same sources. Long-running processes (supervisors, the daemon) may be of
 * another build than their clients; messages and files have a version, and in a test build
 * buildid_version() can claim a later one (AGENTKERNEL_TEST_NEWER=1).
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
