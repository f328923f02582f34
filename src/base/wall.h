#pragma once
/*
 * wall - the protections ("walls") of a sandbox by name, so that tests can disable one.
 *
 * A protection behind another is never exercised, because the first one already refuses. A test
 * build (make TESTING=1) disables the walls named in AGENTKERNEL_WALL_OFF, separated by commas, and
 * tests/escape/walls shows for each what gets through then. In an ordinary build wall_stands() is
 * the constant true, and the names are not in the program.
 */
#include <stdbool.h>

#define WALLS(X)                                                                                   \
	X(USER_NAMESPACE, "user-namespace")                                                        \
	X(PID_NAMESPACE, "pid-namespace")                                                          \
	X(IPC_NAMESPACE, "ipc-namespace")                                                          \
	X(UTS_NAMESPACE, "uts-namespace")                                                          \
	X(CGROUP_NAMESPACE, "cgroup-namespace")                                                    \
	X(NETWORK_NAMESPACE, "network-namespace")                                                  \
	X(GROUPS_DROPPED, "groups-dropped")                                                        \
	X(INOTIFY_SHARE, "inotify-share")                                                          \
	X(OLD_ROOT_GONE, "old-root-gone")                                                          \
	X(TARGETS_IN_ROOT, "targets-in-root")                                                      \
	X(PROGRAMS_READ_ONLY, "programs-read-only")                                                \
	X(MOUNTS_READ_ONLY, "mounts-read-only")                                                    \
	X(ROOT_READ_ONLY, "root-read-only")                                                        \
	X(PROC_READ_ONLY, "proc-read-only")                                                        \
	X(PROC_MASKS, "proc-masks")                                                                \
	X(ETC_HIDDEN, "etc-hidden")                                                                \
	X(LIMIT_FILES_READ_ONLY, "limit-files-read-only")                                          \
	X(CREDENTIAL_MASKS, "credential-masks")                                                    \
	X(WORKSPACE_MASKS, "workspace-masks")                                                      \
	X(WORKSPACE_PROTECTION, "workspace-protection")                                            \
	X(OWN_DEVICES, "own-devices")                                                              \
	X(NODEV, "nodev")                                                                          \
	X(NOSUID, "nosuid")                                                                        \
	X(PRIVATE_PROPAGATION, "private-propagation")                                              \
	X(DISK_LIMIT, "disk-limit")                                                                \
	X(CAPABILITIES, "capabilities")                                                            \
	X(BOUNDING_SET, "bounding-set")                                                            \
	X(NO_NEW_PRIVS, "no-new-privs")                                                            \
	X(OWN_KEYRING, "own-keyring")                                                              \
	X(HIDDEN_INIT, "hidden-init")                                                              \
	X(LANDLOCK_FILES, "landlock-files")                                                        \
	X(LANDLOCK_SCOPES, "landlock-scopes")                                                      \
	X(SECCOMP, "seccomp")                                                                      \
	X(SECCOMP_NAMESPACES, "seccomp-namespaces")                                                \
	X(SECCOMP_MOUNTS, "seccomp-mounts")                                                        \
	X(SECCOMP_SOCKETS, "seccomp-sockets")                                                      \
	X(SECCOMP_TERMINALS, "seccomp-terminals")                                                  \
	X(SECCOMP_KEYS, "seccomp-keys")                                                            \
	X(SECCOMP_RINGS, "seccomp-rings")                                                          \
	X(SECCOMP_KERNEL, "seccomp-kernel")                                                        \
	X(SECCOMP_ODD, "seccomp-odd")                                                              \
	X(SECCOMP_INIT, "seccomp-init")                                                            \
	X(SECCOMP_OTHERS, "seccomp-others")                                                        \
	X(SECCOMP_ARCHITECTURES, "seccomp-architectures")                                          \
	X(SECCOMP_TRACING, "seccomp-tracing")                                                      \
	X(SET_ID_REFUSAL, "set-id-refusal")                                                        \
	X(DESCRIPTORS_CLOSED, "descriptors-closed")                                                \
	X(CLEAN_ENVIRONMENT, "clean-environment")                                                  \
	X(DEFINED_START, "defined-start")                                                          \
	X(OWN_TERMINAL, "own-terminal")                                                            \
	X(OWN_SESSION, "own-session")                                                              \
	X(RLIMITS, "rlimits")                                                                      \
	X(CGROUP, "cgroup")                                                                        \
	X(LIFELINE, "lifeline")                                                                    \
	X(PARENTS_DEATH, "parents-death")                                                          \
	X(GATE_ADDRESSES, "gate-addresses")                                                        \
	X(COPIES_IN_ROOT, "copies-in-root")

enum wall {
#define WALL_NAME(symbol, name) WALL_##symbol,
	WALLS(WALL_NAME)
#undef WALL_NAME
		WALL_COUNT
};

#ifdef AGENTKERNEL_TESTING

bool wall_stands(enum wall wall);

/* For a helper started without other variables: the variable that names walls, if it is set. */
char *const *wall_environment(void);

#else

static inline bool wall_stands(enum wall wall)
{
	(void)wall;
	return true;
}

static inline char *const *wall_environment(void)
{
	static char *const none[] = { 0 };

	return none;
}

#endif
