"""world - what there is to reach outside a sandbox, and the ways to run the attacker in one.

A World belongs to one caller (root, or an id without an account) and holds its canaries: files with
a secret, listeners, a process, shared objects, a terminal. untouched() says what has happened to
them. A Place is one way to run the attacker: a fresh sandbox or a named one, with a profile, an
image, a user inside. Everything here is real; nothing of it is this machine's own.
"""
import ctypes
import dataclasses
import hashlib
import os
import pty
import select
import shutil
import socket
import stat
import subprocess
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
USER_ID = 12345
OTHER_ID = 4321  # owner of directories shown to root's sandboxes
GROUP_ID = 54321  # a supplementary group of the caller
PROGRAMS = ("agentkernel", "agentkernel-gate", "agentkernel-image", "escape")
RUN_SECONDS = 120
BYSTANDER = "bystander"  # an unrelated sandbox
SECRET_SHOWN = 16  # that many characters count as the whole secret
IPC_CREAT = 0o1000
KEYCTL_JOIN_SESSION_KEYRING, KEY_SPEC_SESSION_KEYRING = 1, -3
ADD_KEY, KEYCTL = (248, 250) if os.uname().machine == "x86_64" else (217, 219)  # libc has no wrappers for these

libc = ctypes.CDLL(None, use_errno=True)
own_session = threading.local()  # the kernel keeps a session keyring for each thread


def checked(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


class Listeners:
    """TCP on every address, UDP, an abstract and a path socket: each answers, and is counted."""

    def __init__(self, directory, token):
        self.hits = []
        self.abstract = f"@agentkernel-escape-{token}"
        self.path = f"{directory}/socket"
        tcp = socket.socket(socket.AF_INET6)
        tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        tcp.bind(("::", 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + self.abstract[1:])
        path = socket.socket(socket.AF_UNIX)
        path.bind(self.path)
        os.chmod(self.path, 0o777)
        self.port = tcp.getsockname()[1]
        self.udp_port = udp.getsockname()[1]
        self.udp = udp
        self.sockets = {"tcp": tcp, "udp": udp, "abstract": abstract, "path": path}
        for name, s in self.sockets.items():
            if name != "udp":
                s.listen(64)
        self.forgotten = socket.socket()  # a descriptor that the caller left open
        self.forgotten.bind(("127.0.0.1", 0))
        self.forgotten.listen(1)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        poll = select.poll()
        names = {s.fileno(): name for name, s in self.sockets.items()}
        for fd in names:
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                s = self.sockets[names[fd]]
                if names[fd] == "udp":
                    _, peer = s.recvfrom(64)
                    s.sendto(b"!", peer)
                else:
                    peer_socket, peer = s.accept()
                    try:
                        peer_socket.send(b"!")
                    except OSError:
                        pass
                    peer_socket.close()
                self.hits.append(names[fd])


def own_address():
    """An address of this machine that is not loopback; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("198.51.100.1", 9))
            address = s.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Shared:
    """System V objects and a POSIX queue that anyone may use."""

    def __init__(self, token, secret):
        self.key = int(token[:7], 16) | 0x100
        self.secret = secret.encode()
        self.queue = f"agentkernel-escape-{token}"
        old = os.umask(0)
        self.shm = checked(libc.shmget(self.key, 4096, IPC_CREAT | 0o666), "shmget")
        self.sem = checked(libc.semget(self.key, 1, IPC_CREAT | 0o666), "semget")
        self.msg = checked(libc.msgget(self.key, IPC_CREAT | 0o666), "msgget")
        self.mq = checked(libc.mq_open(b"/" + self.queue.encode(), os.O_RDWR | os.O_CREAT, 0o666, None), "mq_open")
        os.umask(old)
        libc.shmat.restype = ctypes.c_void_p
        self.place = libc.shmat(self.shm, None, 0)
        ctypes.memmove(self.place, self.secret, len(self.secret))

    def is_untouched(self):
        return ctypes.string_at(self.place, len(self.secret)) == self.secret

    def remove(self):
        libc.shmctl(self.shm, 0, None)
        libc.semctl(self.sem, 0, 0)
        libc.msgctl(self.msg, 0, None)
        libc.mq_unlink(b"/" + self.queue.encode())


class World:
    def __init__(self, caller, build):
        self.caller = caller
        self.token = os.urandom(8).hex()
        self.secret = f"CANARY-{os.urandom(12).hex()}"
        self.shown_text = f"CANARY-{os.urandom(12).hex()}"  # which a profile may show
        self.outputs = []  # output of all commands in this world
        self.base = tempfile.mkdtemp(prefix="agentkernel-escape.", dir="/tmp")
        os.chmod(self.base, 0o755)
        self.id = USER_ID if caller == "user" else 0
        for name in PROGRAMS:
            shutil.copy(f"{build}/{name}", self.path(name))
        self.binary_digest = digest(self.path("agentkernel"))
        self.make_files()
        self.listeners = Listeners(self.base, self.token)
        self.shared = Shared(self.token, self.secret)
        self.make_key()
        self.master, self.slave = pty.openpty()
        self.pts = os.ttyname(self.slave)
        self.start_process()
        self.core_pattern = open("/proc/sys/kernel/core_pattern").read()
        self.mounts = sorted(line.split(" ", 2)[2] for line in open("/proc/self/mountinfo"))
        self.before = self.look()

    def path(self, *names):
        return os.path.join(self.base, *names)

    def write(self, path, text=None, mode=0o644, uid=None, gid=None):
        path = path if path.startswith("/") else self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write((text or self.secret) + "\n")
        os.chmod(path, mode)
        os.chown(path, self.id if uid is None else uid, self.id if gid is None else gid)
        return path

    def make_files(self):
        shown_id = self.id or OTHER_ID
        self.file = self.write("canary", mode=0o666)
        for name in ".ssh/id_ed25519", ".aws/credentials", ".netrc":
            self.write(f"home/{name}")
        self.write("home/notes", self.shown_text)
        for name in (".git/hooks/pre-commit", ".git/config", ".gitmodules", ".vscode/settings.json",
                     ".mcp.json", "opencode.json", ".env"):
            self.write(f"work/{name}")
        self.write("work/.git/config", "[core]")
        self.write("work/.git/HEAD", "ref: refs/heads/main")
        self.write("shown/roots", mode=0o600, uid=0, gid=0)
        self.write("shown/groups", self.shown_text if self.id else None, mode=0o040, uid=0, gid=GROUP_ID)
        self.write("shown-ro/file", mode=0o666)
        self.stdin = self.write("stdin", mode=0o666)
        os.mknod(self.path("shown/device"), stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero
        os.chmod(self.path("shown/device"), 0o666)
        self.usr_open = self.write(f"/usr/local/share/agentkernel-escape-{self.token}", mode=0o666)
        self.usr_root = self.write(f"{self.usr_open}-root", mode=0o600, uid=0, gid=0)
        self.usr_groups = self.write(f"{self.usr_open}-groups", self.shown_text if self.id else None, mode=0o040,
                                     uid=0, gid=GROUP_ID)
        self.shm_files = [self.write(f"{d}/agentkernel-escape-{self.token}") for d in ("/dev/shm", "/tmp", "/var/tmp")]
        for top, dirs, files in os.walk(self.base):
            for name in dirs:
                os.chown(os.path.join(top, name), self.id, self.id)
        os.makedirs(self.path("own"))  # for files that the runner creates later
        for name in "home", "own":
            os.chown(self.path(name), self.id, self.id)
        os.chown(self.path("shown"), shown_id, shown_id)
        self.state = self.path("home", "state")

    def make_key(self):
        if not hasattr(own_session, "is_joined"):
            checked(libc.syscall(KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None), "keyctl")
            own_session.is_joined = True
        payload = self.secret.encode()
        self.key = f"agentkernel-escape-{self.token}"
        checked(libc.syscall(ADD_KEY, b"user", self.key.encode(), payload, len(payload), KEY_SPEC_SESSION_KEYRING),
                "add_key")

    def start_process(self):
        self.process = subprocess.Popen(
            self.as_caller("sleep", "1000"), stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "SECRET": self.secret})

    def settle(self):
        """From here on, what has changed before counts as how it must be."""
        self.listeners.hits.clear()
        self.outputs.clear()
        if self.process.poll() is not None:
            self.start_process()
        self.before = self.look()

    def arguments(self, **more):
        """What the attacker is told."""
        told = {
            "file": self.file, "home": self.path("home"), "usr_open": self.usr_open, "usr_root": self.usr_root,
            "usr_groups": self.usr_groups, "work": self.path("work"),
            "shown": "/shown", "shown_ro": "/shown-ro", "device": "/shown/device", "stdin_file": 1,
            "shm_file": os.path.basename(self.usr_open), "state": self.state, "binary": self.path("agentkernel"),
            "pid": self.process.pid, "ipc_key": self.shared.key, "queue": self.shared.queue, "key": self.key,
            "host_name": os.uname().nodename, "port": self.listeners.port, "udp_port": self.listeners.udp_port,
            "address": own_address(), "abstract": self.listeners.abstract, "socket": self.listeners.path,
            "control": f"{self.state}/sandboxes/{BYSTANDER}/control.sock", "pts": os.path.basename(self.pts),
            "pts_dev": os.stat(self.pts).st_dev, "caps": 0,
        }
        told.update(more)
        return [f"{key}={value}" for key, value in told.items() if value is not None]

    # ---- running ----

    def as_caller(self, *words, groups=True):
        if self.caller == "root":
            return [*(("setpriv", "--groups", str(GROUP_ID)) if groups else ()), *words]
        return ["setpriv", "--reuid", str(USER_ID), "--regid", str(USER_ID), "--groups", str(GROUP_ID),
                "--no-new-privs", *words]

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": self.path("home"), "AGENTKERNEL_HOME": self.state,
                "AGENTKERNEL_IMAGE": "host", "SECRET_TOKEN": self.secret, "BASH_ENV": "/x", "LD_AUDIT": "",
                "SSH_AUTH_SOCK": self.listeners.path, "PLAIN": "plain"}

    def hostile_start(self, words):
        """With a forgotten directory and listener, loose limits, odd signals and umask, and a file as stdin."""
        return ["prlimit", "--core=unlimited", "bash", "-c",
                f'umask 077; exec 8<"{self.base}" 9<&{self.listeners.forgotten.fileno()}; exec "$@"', "bash",
                "env", "--ignore-signal=QUIT", "--block-signal=USR1", *words]

    def run(self, *words, stdin=None, variables=None, is_hostile=False, cwd=None):
        words = self.as_caller(*words)
        if is_hostile:
            words = self.hostile_start(words)
        with open(stdin or "/dev/null") as stdin_file:
            done = subprocess.run(words, stdin=stdin_file, capture_output=True, timeout=RUN_SECONDS, text=True,
                                  pass_fds=(self.listeners.forgotten.fileno(),), env={**self.environment(), **(variables or {})}, cwd=cwd or self.path("work"))
        self.outputs.append(done.stdout + done.stderr)
        return done

    def ak(self, *words, **options):
        return self.run(self.path("agentkernel"), *words, **options)

    def must(self, *words, **options):
        done = self.ak(*words, **options)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode} {done.stderr.strip()} {done.stdout.strip()}")
        return done.stdout.strip()

    # ---- checking ----

    def look(self):
        """What must not change, by name."""
        seen = {"core_pattern": open("/proc/sys/kernel/core_pattern").read(), "host name": os.uname().nodename}
        seen["binary"] = digest(self.path("agentkernel"))
        for top, dirs, files in os.walk(self.base):
            for name in dirs + files:
                path = os.path.join(top, name)
                if path.startswith((self.state, self.path("own"))):
                    continue
                st = os.lstat(path)
                is_own = path.startswith(self.path("work")) and not any(
                    part.startswith(".") for part in path.removeprefix(self.path("work")).split("/"))
                if is_own and name not in ("opencode.json",):
                    if stat.S_ISREG(st.st_mode) and st.st_mode & 0o6000:
                        seen[f"set-id {path}"] = st.st_mode
                    if not stat.S_ISLNK(st.st_mode) and "security.capability" in os.listxattr(path):
                        seen[f"capability {path}"] = True
                    continue
                seen[path] = (st.st_mode, st.st_uid, digest(path) if stat.S_ISREG(st.st_mode) else None)
        for path in [self.usr_open, self.usr_root, self.usr_groups, *self.shm_files]:
            seen[path] = digest(path)
        return seen

    def untouched(self):
        """A list of sentences; empty is good."""
        after, wrong = self.look(), []
        for name in sorted(set(self.before) | set(after)):
            if self.before.get(name) != after.get(name):
                wrong.append(f"{name} has changed")
        if self.listeners.hits:
            wrong.append(f"a listener was reached: {sorted(set(self.listeners.hits))}")
        if self.process.poll() is not None:
            wrong.append("the canary process has ended")
        if not self.shared.is_untouched():
            wrong.append("shared memory has changed")
        if select.select([self.master], [], [], 0)[0]:
            wrong.append("something was written to the caller's terminal")
        if any(self.secret[:SECRET_SHOWN] in text for text in self.outputs):
            wrong.append("the secret was told")
        if self.mounts != sorted(line.split(" ", 2)[2] for line in open("/proc/self/mountinfo")):
            wrong.append("the host's mounts have changed")
        return wrong

    def start_bystander(self):
        self.must("sandbox", "create", BYSTANDER, "--no-config")
        self.must("sandbox", "start", BYSTANDER)

    def bystander_answers(self):
        return self.ak("exec", "-T", BYSTANDER, "echo", "here").stdout == "here\n"

    def remove_sandboxes(self):
        if os.path.isdir(self.state):
            for name in self.ak("sandbox", "list", "--all", "--quiet").stdout.split():
                self.ak("sandbox", "remove", "--force", name)

    def remove(self):
        self.remove_sandboxes()
        self.process.kill()
        self.process.wait()
        self.shared.remove()
        for path in [self.usr_open, self.usr_root, self.usr_groups, *self.shm_files]:
            os.unlink(path)
        shutil.rmtree(self.base, ignore_errors=True)


@dataclasses.dataclass
class Place:
    """One way to run the attacker."""
    caller: str
    profile: str = "moderate"
    user: str = ""  # "": the profile's user
    image: str = "host"
    kind: str = "run"
    event: str = ""  # for a named sandbox: its history
    slow: bool = False
    extra: tuple = ()  # more options
    lacks: tuple = ()  # arguments to omit
    program: str = "/escape"  # path in the image, if nothing can be mounted

    @property
    def name(self):
        words = [self.caller, self.kind, self.profile, self.image]
        words += [f"as {self.user}"] if self.user else []
        words += [self.event] if self.event else []
        return ", ".join(words)

    @property
    def is_root_inside(self):
        return self.profile != "restrictive" and self.user in ("", "root")

    def options(self, world):
        words = ["--no-config", "-p", self.profile, "--image", self.image]
        if self.program == "/escape":
            words += ["--mount", f"{world.path('escape')}:/escape:ro"]
        if "shown" not in self.lacks:
            words += ["--mount", f"{world.path('shown')}:/shown"]
        if "work" not in self.lacks:
            words += ["--workspace", world.path("work"), "--mask", ".env"]
        elif self.profile == "permissive":
            words += ["--no-workspace"]
        if "shown_ro" not in self.lacks:
            words += ["--mount", f"{world.path('shown-ro')}:/shown-ro:ro"]
        return words + list(self.extra)

    def told(self, world, **more):
        told = {"caps": int(self.is_root_inside), **({"slow": 1} if self.slow else {}), **more}
        told.update({key: None for key in self.lacks})
        if "shown" in self.lacks:
            told["device"] = None
        return world.arguments(**told)

    def attack(self, world, variables=None, name=None, only=None):
        """{case: (verdict, detail)}"""
        words = self.told(world, **({"only": only} if only else {}))
        user = ["-u", self.user] if self.user else []
        if name and self.event == "detached":
            task = world.must("exec", "-d", *user, name, self.program, *words, is_hostile=True)
            done = world.ak("logs", "-f", name, task)
        elif name:
            done = world.ak("exec", "-T", *user, name, self.program, *words, stdin=world.stdin, variables=variables,
                            is_hostile=True)
        else:
            done = world.ak("run", *user, *self.options(world), self.program, *words, stdin=world.stdin,
                            variables=variables, is_hostile=True)
        return parse(done, self.name)


def parse(done, name):
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    bad = [row for row in rows if len(row) != 3]
    if done.returncode != 0 or bad or not rows:
        raise RuntimeError(f"{name}: status {done.returncode}: {done.stderr.strip()} {bad}")
    return {case: (verdict, detail) for case, verdict, detail in rows}
