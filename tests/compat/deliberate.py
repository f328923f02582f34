"""The differences between inside and outside that are meant, each with its reason.

A difference is explained when each of its lines matches a row: "- TEXT" was printed outside alone,
"+ TEXT" inside alone. Program, case and lines are shell patterns. What a user would expect to work is
a failure and has no row here.
"""
from collections import namedtuple

Row = namedtuple("Row", "program case callers lines reason")
ALL = ("root", "user", "subuser")
ONE_ID = ("user",)

NO_OTHER_ID = "an ordinary user without a range in /etc/subuid has one id: the kernel has no other to change to"
ONE_OWNER = "one id: giving a file to another owner says yes and changes nothing (Owners of files)"
READ_ONLY_USR = "/usr is this machine's, read-only: removing a file there fails with EROFS, also one that does not exist"
NO_SET_ID = "nothing in the host image needs set-id files, and in a directory of the host they would count outside (in an image they can be made)"

ROWS = [
    # CPython's tests
    Row("python", "*", ALL, ["+ failed *Read-only file system: '/usr/lib/python3*", "+ skipped PyZipFileTests.test_write_*"], READ_ONLY_USR),
    Row("python", "test_posix", ("root", "subuser"), ["+ failed PosixTester.test_*chown: OSError: *Invalid argument*"],
        "a sandbox has the ids 0 to 65534; the test gives a file to 2147483648"),
    Row("python", "test_posix", ONE_ID, ["+ failed PosixTester.test_*chown: AssertionError: 0 != 2147483648"], ONE_OWNER),
    Row("python", "test_posix", ONE_ID, ["+ failed PosixGroupsTester.test_*groups: PermissionError: *"], NO_OTHER_ID),
    Row("python", "test_os", ONE_ID, ["+ failed ChownFileTests.test_chown_with_root: AssertionError: 0 != 1000"], ONE_OWNER),
    Row("python", "test_os", ALL, ["+ skipped MakedirTests.test_exist_ok_s_isgid_directory"], NO_SET_ID),
    Row("python", "test_shutil", ALL, ["+ skipped TestCopy.test_copy*xattr*"],
        "attributes named trusted.* are for the machine's root (those named user.* work)"),
    Row("python", "test_socket", ALL, ["+ skipped GeneralModuleTests.test_sethostname"], "the host name is the sandbox's, and stays"),
    Row("python", "test_spwd", ALL, ["+ skipped TestSpwdRoot.test_getspnam"], "no password of this machine is inside"),
    Row("python", "test_subprocess", ALL, ["- skipped POSIXProcessTestCase.test_preexec_fork_failure"],
        "the test needs a limit on processes, which there is inside alone"),
    Row("python", "test_subprocess", ONE_ID, ["+ failed POSIXProcessTestCase.test_user: *Invalid argument",
                                              "+ failed POSIXProcessTestCase.test_group: *Invalid argument"], NO_OTHER_ID),
    Row("python", "test_time", ALL, ["+ skipped TimeTestCase.test_monotonic_settime"], "the clock is the machine's: nobody inside sets it"),
    # system interfaces
    Row("calls", "udp-lite", ALL, ["- ok", "+ socket(*: Protocol not supported", "+ exit status 1"],
        "TCP and UDP are the protocols that the gate decides about; there are no others"),
    Row("calls", "setuid-bit", ALL, ["- ok", "+ fchmod(*: Operation not permitted", "+ exit status 1"], NO_SET_ID),
    Row("calls", "chown", ONE_ID, ["- ok", "+ st.st_uid == 33*", "+ exit status 1"], ONE_OWNER),
    Row("system", "tar with owners", ONE_ID, ["- 33:33", "+ 0:0"], ONE_OWNER),
    # other users
    Row("accounts", "setpriv", ONE_ID, ["- 65534", "+ setpriv: *Invalid argument", "+ exit status *"], NO_OTHER_ID),
    Row("accounts", "runuser", ONE_ID, ["- 65534", "+ runuser: *Operation not permitted", "+ exit status 1"], NO_OTHER_ID),
    Row("accounts", "su*", ONE_ID, ["- 0", "- 65534", "- www-data", "+ su*: *Operation not permitted", "+ su*: *Invalid argument",
                                    "+ sudo: no valid sudoers sources*", "+ sudo: error initializing*", "+ exit status 1"], NO_OTHER_ID),
    Row("accounts", "umask and limits of a login", ONE_ID, ["- *", "+ su: cannot set groups: Operation not permitted", "+ exit status 1"],
        NO_OTHER_ID),
    Row("memcached", "become nobody", ONE_ID, ["- nobody", "+ failed to *", "+ exit status 1"], NO_OTHER_ID),
    Row("nginx", "serve a file", ONE_ID, ["- <p>served</p>", "- 200 text/html", "+ curl: (28) *", "+ 000*", "+ *setgid(65534) failed*",
                                          "+ *exited with fatal code 2 and cannot be respawned", "+ exit status 1"], NO_OTHER_ID),
    Row("nginx", "workers become nobody", ONE_ID, ["- nobody"], NO_OTHER_ID),
    Row("sshd", "[!s]*", ONE_ID, ["- *", "+ Connection *by 127.0.0.1 port *", "+ kex_exchange_identification: *", "+ Server listening*",
                                  "+ setgroups: Operation not permitted*", "+ scp: Connection closed*", "+ fatal: Could not read from remote*",
                                  "+ ", "+ Please make sure*", "+ and the repository exists.", "+ exit status *"], NO_OTHER_ID),
    Row("sshd", "on a terminal", ALL, ["+ lastlog_openseek: *", "+ "], "/var/log is the sandbox's own and empty"),
    Row("accounts", "sudo*", ALL, ["- *", "+ sudo: *", "+ exit status 1"],
        "no_new_privs: nobody gains rights inside, so sudo has nothing to do, and the host's sudoers are not shown"),
    Row("accounts", "a system *", ALL, ["- *:x:*", "+ *:[*x]:*:*"], "/etc/passwd and group have system accounts without comments, members and passwords"),
    # the rest
    Row("databases", "start files", ALL, ["- /etc/environment", "+ ls: cannot access '/etc/environment'*", "+ exit status 2"],
        "/etc/environment is hidden: proxies with passwords stand there"),
    Row("debian", "*", ALL, ["- *", "+ *"],
        "/var/lib/dpkg and /var/lib/apt are the host's own data: with the host image there is no package manager (an image has one)"),
    Row("system", "*directories", ALL, ["+ missing /*"],
        "empty directories that nothing needs are not made: each would cost every start"),
    Row("compilers", "sanitizers", ("user", "subuser"), ["+ *", "- *"],
        "without a cgroup RLIMIT_DATA keeps the memory limit, and counts the range that AddressSanitizer reserves (-p permissive has no such limit; with "
        "a delegated cgroup or as root it works)"),
    Row("gdb", "*", ALL, ["+ warning: Error disabling address space randomization: Operation not permitted"],
        "personality() is refused beyond Linux's own: programs run at random addresses, in gdb too"),
    Row("network", "ip addr", ALL, ["+ lo inet 198.18.0.2/32"], "the address from which connections reach the gate"),
    Row("databases", "getent hosts", ALL, ["- 127.0.0.1 localhost", "+ ::1 localhost *"],
        "/etc/hosts is the sandbox's own; it names both loopback addresses"),
]
