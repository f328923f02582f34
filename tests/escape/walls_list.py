"""walls_list - which walls can be taken away, and which cases turn red then; see walls.

A Removal with several walls is about walls that stand behind each other: "red when all are off, green
when any stands". `needed` names those of them that the others need in order to be missing: while it stands a
sandbox without the others cannot be built, and so it is not put back alone.
"""
import dataclasses
import re

import hostside
from world import TOP, Place


def wall_names():
    with open(f"{TOP}/src/base/wall.h") as f:
        return re.findall(r'X\(\w+, "([a-z-]+)"\)', f.read())


@dataclasses.dataclass
class Removal:
    walls: tuple
    cases: tuple
    place: Place = None
    host_side: object = None  # instead of a place: a function of hostside
    needed: tuple = ()
    outside: str = ""  # the change that world.look() must report

    @property
    def caller(self):
        return self.place.caller

    @property
    def name(self):
        return self.place.name + ":" + ",".join(self.cases)

    def run(self, world, variables):
        if self.host_side:
            return self.host_side(world, variables)
        return self.place, self.place.attack(world, variables=variables, only=",".join(self.cases))


def off(*walls, cases, caller="root", host_side=None, needed=(), outside="", **place):
    return Removal(walls, tuple(cases.split()), Place(caller, **place), host_side, needed, outside)


LANDLOCK = ("landlock-files", "landlock-scopes")

REMOVALS = (
    # namespaces
    off("user-namespace", cases="FS31"),
    off("user-namespace", "pid-namespace", cases="PR08d PR08e", needed=("user-namespace",)),
    off("user-namespace", "pid-namespace", "landlock-scopes", cases="NS05d", needed=("user-namespace",),
        outside="the canary process has ended"),
    off("ipc-namespace", cases="NS25a", outside="the secret was told"),
    off("ipc-namespace", "landlock-files", cases="NS25b"),
    off("uts-namespace", cases="NS16"),
    off("cgroup-namespace", cases="PR04b"),
    off("network-namespace", cases="NW07a", profile="restrictive", outside="a listener was reached"),
    off("network-namespace", "landlock-scopes", cases="NW21a", profile="restrictive"),
    off("groups-dropped", cases="FS32"),
    off("inotify-share", cases="FS26"),
    # files
    off("old-root-gone", "landlock-files", cases="FS03b"),
    off("programs-read-only", cases="FS05a", outside="has changed"),
    off("mounts-read-only", cases="FS05b", outside="shown-ro/file has changed"),
    off("root-read-only", "landlock-files", cases="FS07", profile="restrictive", caller="user"),
    off("etc-hidden", cases="FS01b"),
    off("proc-read-only", cases="PR02e"),
    off("proc-masks", cases="PR03b PR03c"),
    off("limit-files-read-only", cases="PR04c", caller="user"),
    off("credential-masks", cases="FS01c", profile="permissive", outside="the secret was told"),
    off("workspace-masks", cases="FS19", outside="the secret was told"),
    off("workspace-protection", cases="FS16a FS16b", outside=".git/hooks/pre-commit has changed"),
    off("own-devices", cases="FS22a FS22b"),
    off("nodev", cases="FS14b"),
    off("private-propagation", cases="FS34", host_side=hostside.later_mount),
    off("disk-limit", cases="FS21a FS21b", extra=("--disk", "16M")),
    # privileges
    off("capabilities", "bounding-set", cases="NS08a NW24a NW24b NW24c"),
    off("bounding-set", cases="NS08b"),
    off("no-new-privs", "seccomp", *LANDLOCK, cases="NS08d", needed=("seccomp", *LANDLOCK)),
    off("nosuid", "no-new-privs", "seccomp", *LANDLOCK, cases="NS08e", needed=("seccomp", *LANDLOCK)),
    # a root caller's init has changed its ids, and an init that counts memory keeps a capability:
    # the kernel hides both
    off("hidden-init", *LANDLOCK, cases="PR08a PR08b NS04a NS04b NS12b", caller="user",
        profile="permissive"),
    off("set-id-refusal", cases="FS15a FS15b FS15c FS15d", outside="set-id"),
    off("own-keyring", "seccomp-keys", cases="NS18b"),
    # Landlock
    off("landlock-files", cases="FS33", outside="stdin has changed"),
    off("landlock-scopes", cases="NS05b NS05c"),
    # system calls
    off("seccomp", cases="NS01a NS01b NS02a NS02b NS19 NS20a NS20b NS21a NS22a NS29f TT01a"),
    off("seccomp-namespaces", cases="NS01a NS01b NS02a NS02b"),
    off("seccomp-mounts", "capabilities", "bounding-set", "landlock-files", cases="FS04a FS04b"),
    off("seccomp-sockets", cases="NS29b NS29c NS29f"),
    off("seccomp-terminals", cases="TT01a TT01b TT02"),
    off("seccomp-keys", cases="NS18a"),
    off("seccomp-rings", cases="NS19 NS20a NS20b"),
    off("seccomp-kernel", cases="NS23"),
    off("seccomp-kernel", "capabilities", "bounding-set", cases="NS17g"),
    off("seccomp-odd", cases="NS21a NS21b FS27"),
    off("seccomp-init", cases="NS05e NS05f NS05g"),
    off("seccomp-others", "hidden-init", *LANDLOCK, cases="NS04c", caller="user",
        profile="permissive"),
    off("seccomp-architectures", cases="NS22a"),
    off("seccomp-tracing", cases="OK04", profile="restrictive"),
    # how a command starts
    off("descriptors-closed", cases="NS13a TT06"),
    off("clean-environment", cases="NS15a NS15b"),
    off("defined-start", cases="CP11"),
    off("own-terminal", cases="TT04", host_side=hostside.terminal),
    off("own-terminal", "own-session", "seccomp-terminals", cases="TT01c", host_side=hostside.terminal,
        needed=("own-terminal",)),
    # limits and ends
    off("rlimits", cases="NS28b"),
    off("cgroup", cases="NS27", extra=("--memory", "64M")),
    off("cgroup", "rlimits", cases="NS06", extra=("--pids", "60")),
    off("lifeline", "parents-death", cases="CP07", host_side=hostside.without_supervisor),
    # the gate, and operations on files from outside
    off("targets-in-root", cases="FS35", host_side=hostside.mount_race),
    off("copies-in-root", cases="FS09", host_side=hostside.copy_race),
    off("gate-addresses", cases="NW07b", outside="a listener was reached"),
)
