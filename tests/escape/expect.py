"""expect - what the table of cases does not say by itself: where a profile allows what is an attack
elsewhere, where a control cannot be run outside, and which rows of the threat list other tests prove.
"""
import ctypes

LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1
LANDLOCK_ABI = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION)
LANDLOCK_SCOPES_ABI = 6  # Linux 6.12


def may_signal_init(place):
    """Without scopes: the pid 1 of a fresh sandbox obeys who has its user, and passes signals on to its own command."""
    is_same_user = place.caller == "user" or place.is_root_inside
    return LANDLOCK_ABI < LANDLOCK_SCOPES_ABI and place.kind == "run" and not place.event.startswith("waited ready") and is_same_user


# (case, places, the verdict there, why): everything else is denied, and neighbours (OK..) work
EXCEPTIONS = (
    ("FS07", lambda p: p.profile != "restrictive" and (p.is_root_inside or p.caller == "user"), "ESCAPED",
     "the root is writable, and the sandbox's own"),
    ("FS01d", lambda p: p.profile == "permissive", "ESCAPED", "the home directory is shown, read-only"),
    ("NS15b", lambda p: p.profile == "permissive", "ESCAPED",
     "variables are passed, less what looks like a secret"),
    ("FS32", lambda p: p.caller == "user", "ESCAPED", "an ordinary caller cannot drop its groups (SECURITY.md)"),
    ("TT07", lambda p: p.caller == "user" and p.kind == "named" and p.image != "host", "ESCAPED",
     "an ordinary caller's pipes are the sandbox's user's too (SECURITY.md)"),
    ("TT07", lambda p: p.event == "detached", "ESCAPED", "a detached command's pipes are the sandbox's own"),
    ("OK04", lambda p: p.profile == "restrictive", "denied", "no tracing at all"),
    ("NS05b", lambda p: may_signal_init(p), "ESCAPED", "this kernel's Landlock has no scopes"),
    ("NS05c", lambda p: may_signal_init(p), "ESCAPED", "this kernel's Landlock has no scopes"),
)

# Cases that are not tried outside, and why. "walls": removing the protection is the control (make
# check-walls).
NO_CONTROL = {
    "FS07": "allowed by other profiles",
    "FS34": "walls",
    "PR04c": "walls",  # it would be the machine's own limits
    "NS12b": "walls",  # it would run the machine's own pid 1 again
    "NS30": "the kernel has been repaired (since 5.16.11)",
    "PR06": "what is no mount can be removed anywhere",
    "NS01c": "the kernel refuses it too",
    "NS22b": "this kernel has no x32 entry (CONFIG_X86_X32_ABI)",
    "NS22c": "no kernel has these calls",
    "FS15e": "a link within one mount works anywhere",
    "NW06": "there is no cloud here; NW07b is the same wall",
}

# Features that a kernel or a machine may lack: the answer outside, and the feature.
LACKS = {
    "PR02a": ("ENOENT", "this kernel has no sysrq (CONFIG_MAGIC_SYSRQ)"),
    "NS17a": ("ENOSYS", "this kernel has no modules (CONFIG_MODULES)"),
    "NS17e": ("ENOSYS", "this kernel has no port permissions (CONFIG_X86_IOPL_IOPERM)"),
    "PR04b": ("/", "this machine's processes lie in the first cgroup"),
}

# Cases that run outside, or need more than one machine: (row, what, where it is tested)
ELSEWHERE = (
    ("FS08 FS10", "links and names that a sandbox chose, when its files are read or copied from outside",
     "tests/named/files.bats, tests/named/hostile.bats, tests/named/attacks.bats"),
    ("FS11", "hostile archives and layers",
     "tests/image/hostile.bats, tests/unit/test_layer.c, tests/fuzz/fuzz_layer.c"),
    ("FS12", "programs with the names of well-known tools, in PATH and in the sandbox", "tests/named/attacks.bats"),
    ("FS29", "checkpoints that were changed", "tests/named/checkpoint.bats"),
    ("NW01-NW05, NW09-NW19", "names, addresses, DNS, TLS and HTTP through the gate", "tests/net/attacks.bats"),
    ("NW25", "the HTTP API: other origins, other names, missing keys", "tests/clients/http.bats"),
    ("CP01", "a control socket that did get inside", "tests/named/attacks.bats"),
    ("NW22 NW23", "ports and addresses that lead into a sandbox", "nowhere: there are none, nothing is forwarded into a sandbox"),
    ("CP03", "names, images and commands that look like options", "tests/clients/http.bats, tests/cli/input.bats"),
    ("CP06", "malformed orders and requests", "tests/fuzz/fuzz_control.c, tests/named/supervisor.bats"),
    ("CP07", "what is left after kill -9", "tests/named/crash.bats, tests/cli/leftovers.bats"),
    ("CP08", "names and ids of sandboxes that were forked", "tests/named/lifecycle.bats, tests/named/checkpoint.bats"),
    ("CP10", "processes that do not end: signals ignored, stopped, another session", "tests/cli/behaviour.bats"),
    ("CP12", "kernels and hosts that lack a wall", "tests/cli/input.bats, tests/vm"),
    ("CP14", "the audit log", "tests/cli/audit.bats"),
    ("CP17 CP18", "repositories that a sandbox has changed", "tests/cli/workspace.bats"),
)


def expected(case, place):
    """The verdict, and why if it is not the ordinary one."""
    for name, is_there, verdict, why in EXCEPTIONS:
        if name == case and is_there(place):
            return verdict, why
    return ("works" if case.startswith("OK") else "denied"), None
