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

ROWS = [
    Row("python", "*", ALL, ["+ failed *Read-only file system: '/usr/lib/python3*"],
        "/usr is this machine's, read-only: removing a file there fails with EROFS, also one that does not exist"),
    Row("python", "test_posix", ALL, ["+ failed PosixTester.test_*chown: OSError: *Invalid argument*"],
        "a sandbox has the ids 0 to 65534; the test gives a file to 2147483648"),
    Row("python", "test_os", ALL, ["+ skipped *_s_isgid_directory"], "set-id bits are refused with the host image"),
    Row("python", "test_os", ONE_ID, ["+ failed ChownFileTests.*", "+ skipped *_s_isgid_directory"], NO_OTHER_ID),
    Row("python", "test_posix", ONE_ID, ["+ failed Posix*Tester.test_*"], NO_OTHER_ID),
    Row("python", "test_shutil", ALL, ["+ skipped TestCopy.test_copy*xattr*"], "trusted.* attributes belong to the host's root"),
    Row("python", "test_socket", ALL, ["+ skipped *.test_sethostname"], "the name of a sandbox is given to it"),
    Row("python", "test_time", ALL, ["+ skipped *.test_monotonic_settime"], "the clock is the machine's"),
    Row("python", "test_spwd", ALL, ["+ skipped *"], "there is no shadow file"),
    Row("python", "test_zipfile", ALL, ["+ skipped PyZipFileTests.*"], "/usr is this machine's, read-only"),
    Row("python", "test_subprocess", ALL, ["- skipped *.test_preexec_fork_failure"], "the limit of processes lets a test run that is skipped outside"),
    Row("compilers", "sanitizers", ("user", "subuser"), ["+ *", "- *"],
        "without a cgroup RLIMIT_DATA keeps the memory limit, and counts the range that AddressSanitizer reserves (-p permissive has no such limit; with "
        "a delegated cgroup or as root it works)"),
    Row("calls", "udp-lite", ALL, ["- ok", "+ socket(*: Protocol not supported", "+ exit status 1"],
        "TCP and UDP are the protocols that the gate decides about; there are no others"),
    Row("calls", "setuid-bit", ALL, ["- ok", "+ fchmod(*: Operation not permitted", "+ exit status 1"],
        "nothing with the host image needs set-id files, and in a directory of the host they would count outside (an image may have them)"),
    Row("calls", "chown", ONE_ID, ["- ok", "+ st.st_uid == 33*", "+ exit status 1"],
        "one id: giving a file to another owner says yes and changes nothing (Owners of files)"),
    Row("system", "tar with owners", ONE_ID, ["- 33:33", "+ 0:0"],
        "one id: giving a file to another owner says yes and changes nothing (Owners of files)"),
    Row("accounts", "setpriv", ONE_ID, ["- 65534", "+ setpriv: *Invalid argument", "+ exit status *"], NO_OTHER_ID),
    Row("accounts", "su*", ONE_ID, ["- 0", "- 65534", "- www-data", "+ su*: *Operation not permitted", "+ su*: *Invalid argument",
                                    "+ sudo: no valid sudoers sources*", "+ sudo: error initializing*", "+ exit status 1"], NO_OTHER_ID),
    Row("accounts", "runuser", ONE_ID, ["- 65534", "+ runuser: *Operation not permitted", "+ exit status 1"], NO_OTHER_ID),
    Row("memcached", "become nobody", ONE_ID, ["- nobody", "+ failed to *", "+ exit status 1"], NO_OTHER_ID),
    Row("accounts", "umask and limits of a login", ONE_ID, ["- *", "+ su: *Operation not permitted", "+ exit status 1"], NO_OTHER_ID),
    Row("accounts", "sudo*", ALL, ["- *", "+ sudo: *", "+ exit status 1"],
        "no_new_privs: nobody gains rights inside, so sudo has nothing to do, and the host's sudoers are not shown"),
    Row("accounts", "a system *", ALL, ["- *:x:*", "+ *:[*x]:*:*"], "/etc/passwd and group have system accounts without comments, members and passwords"),
    Row("databases", "start files", ALL, ["- /etc/environment", "+ ls: cannot access '/etc/environment'*", "+ exit status 2"],
        "/etc/environment is hidden: proxies with passwords stand there"),
    Row("debian", "*", ALL, ["- *", "+ *"],
        "/var/lib/dpkg and /var/lib/apt are the host's own data: with the host image there is no package manager (an image has one)"),
    Row("system", "*directories", ALL, ["+ missing /*"],
        "empty directories that nothing needs are not made: each would cost every start"),
    Row("nginx", "*", ONE_ID, ["- *", "+ *"], NO_OTHER_ID + ": its workers cannot become nobody (it works with --user user)"),
    Row("sshd", "*", ONE_ID, ["- *", "+ *"], NO_OTHER_ID + ": sshd cannot separate its privileges"),
    Row("sshd", "on a terminal", ALL, ["+ lastlog_openseek: *", "+ "], "/var/log is the sandbox's own and empty"),
    Row("gdb", "*", ALL, ["+ warning: Error disabling address space randomization: Operation not permitted"],
        "personality() is refused beyond Linux's own: programs run at random addresses, in gdb too"),
    Row("network", "ip addr", ALL, ["+ lo inet 198.18.0.2/32"], "the address from which connections reach the gate"),
    Row("databases", "getent hosts", ALL, ["- 127.0.0.1 localhost", "+ ::1 localhost *"],
        "/etc/hosts is the sandbox's own; it names both loopback addresses"),
]
