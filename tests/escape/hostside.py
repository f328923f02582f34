"""hostside - attacks in which something outside moves too: a supervisor or gate that is killed, a copy
that races, a terminal that could be typed into, a mount that comes later.
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import time

from world import Place, parse

STARTS = 24  # attempts with starting sandboxes
COPIES = 12  # copies, while a directory and a link are swapped continuously
WAIT_SECONDS = 10
LAST_SECONDS = 2  # for a sandbox to end without its supervisor


def until(is_so, what):
    end = time.monotonic() + WAIT_SECONDS
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(f"never: {what}")
        time.sleep(0.01)


def field(world, name, key):
    with open(f"{world.state}/sandboxes/{name}/run") as f:
        for entry in f.read().split("\0"):
            if entry.startswith(f"{key}="):
                return entry.split("=", 1)[1]
    raise RuntimeError(f"{name} has no {key}")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # before or after it was opened
        return True


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def kill_supervisor(world, name):
    supervisor, init = int(field(world, name, "supervisor")), int(field(world, name, "init"))
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: is_gone(supervisor) and is_gone(init), "the end of a sandbox without supervisor")


def kill_gate(world, name):
    """Ends the gate, if the sandbox has one by now; the next connection starts another."""
    world.ak("exec", "-T", name, "/escape", "only=NW07b", *Place(world.caller).told(world))
    for pid in children(int(field(world, name, "supervisor"))):
        with open(f"/proc/{pid}/comm") as f:
            if f.read().startswith("ak-gate"):
                os.kill(pid, signal.SIGKILL)
                until(lambda: is_gone(pid), "the end of a gate")
                return True
    raise RuntimeError("the sandbox had no gate to kill")


# ---- cases ----

def terminal(world, variables=None, only="TT01a,TT01b,TT02,TT03,TT04"):
    """As from a shell: the caller's terminal is stdin, stdout and the controlling terminal."""
    place = Place(world.caller, event="from a terminal")
    master, slave = pty.openpty()
    number, device = os.path.basename(os.ttyname(slave)), os.stat(os.ttyname(slave)).st_dev
    told = place.told(world, only=only, own_terminal=1, pts=number, pts_dev=device)
    subprocess.run(["stty", "-echo", "-icanon", "min", "0"], stdin=slave, check=True)
    words = ["setsid", "--ctty", "--wait", *world.as_caller(
        world.path("agentkernel"), "run", *place.options(world), "/escape", *told)]
    child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, cwd=world.path("work"),
                             env={**world.environment(), **(variables or {})})
    text = b""
    while child.poll() is None or select.select([master], [], [], 0.05)[0]:
        if select.select([master], [], [], 0.05)[0]:
            text += os.read(master, 65536)
    subprocess.run(["stty", "-icanon", "min", "0"], stdin=slave, check=True)
    typed = os.read(slave, 64) if select.select([slave], [], [], 0)[0] else b""
    os.close(slave)
    os.close(master)
    done = subprocess.CompletedProcess(words, child.returncode, text.decode().replace("\r", ""), "")
    answers = parse(done, place.name)
    answers["TT01c"] = ("ESCAPED", f"{typed.decode()} was typed") if typed else ("denied", "nothing typed")
    return place, answers


def later_mount(world, variables=None):
    """In a mount namespace where the shown directory propagates: what is mounted there while it runs."""
    place = Place(world.caller, event="mounts come later", extra=("--mount", f"{world.path('own/later')}:/later"))
    shutil.rmtree(world.path("own/later"), ignore_errors=True)
    os.makedirs(world.path("own/later/place"))
    os.chown(world.path("own/later"), world.id, world.id)
    told = place.told(world, only="FS34", later="/later")
    script = """mount --bind "$1" "$1" && mount --make-shared "$1" || exit 1
        (for i in $(seq 1000); do [ -e "$1/started" ] && break; sleep 0.01; done
        mount -t tmpfs none "$1/place"; echo "$2" >"$1/place/secret"; chmod 644 "$1/place/secret"
        touch "$1/mounted"; chmod 644 "$1/mounted") &
        shift 2; "$@"; status=$?; wait; exit $status"""
    words = world.as_caller(world.path("agentkernel"), "run", *place.options(world), "/escape", *told)
    shell = ["unshare", "--mount", "bash", "-c", script, "-", world.path("own/later"), "CANARY-later"]
    done = subprocess.run([*shell, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                          cwd=world.path("work"), env={**world.environment(), **(variables or {})})
    return place, parse(done, place.name)


def without_supervisor(world, variables=None):
    """What runs inside must not outlive a supervisor that is killed."""
    place = Place(world.caller, event="supervisor killed")
    child = subprocess.Popen(world.as_caller(world.path("agentkernel"), "run", "--no-config", "sleep", "30"),
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             cwd=world.path("work"), env={**world.environment(), **(variables or {})})
    found = []
    until(lambda: command_below(child.pid, found), "a command that runs")
    child.kill()
    child.wait()
    end = time.monotonic() + LAST_SECONDS
    while time.monotonic() < end and not all(is_gone(pid) for pid in found):
        time.sleep(0.01)
    left = [pid for pid in found if not is_gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    answer = ("ESCAPED", "it runs on without a supervisor") if left else ("denied", "gone")
    return place, {"CP07": answer}


def command_below(supervisor, found):
    """init and its command; true once the command is `sleep`."""
    for init in children(supervisor):
        for command in children(init):
            with open(f"/proc/{command}/comm") as f:
                if f.read() == "sleep\n":
                    found[:] = [init, command]
                    return True
    return False


def copy_race(world, variables=None):
    """CVE-2018-15664: directory and link change places while files are copied out and in."""
    place = Place(world.caller, kind="named", event="races with copies")
    victim = world.path("own/victim")
    for path in victim, world.path("own/out"):
        shutil.rmtree(path, ignore_errors=True)
    os.makedirs(victim, exist_ok=True)
    world.write(f"{victim}/secret")
    os.makedirs(world.path("own/out"), exist_ok=True)
    for path in victim, world.path("own/out"):
        os.chown(path, world.id, world.id)
    name, out = "racer", world.path("own/out")
    world.must("sandbox", "create", name, "--no-config", "--mount", f"{world.path('escape')}:/escape:ro",
               variables=variables)
    world.must("sandbox", "start", name, variables=variables)
    world.must("exec", name, "sh", "-c",
               f"mkdir -p /race/real && echo own >/race/real/secret && ln -s {victim} /race/link")
    world.must("exec", "-d", name, "/escape", "swap", "/race/real", "/race/link")
    world.write(world.path("own/in/secret"), "planted")
    escaped = None
    for i in range(COPIES):
        world.ak("cp", f"{name}:/race/real/secret", f"{out}/{i}", variables=variables)
        world.ak("cp", f"{name}:/race/real", f"{out}/tree{i}", variables=variables)
        world.ak("cp", world.path("own/in/secret"), f"{name}:/race/real/planted", variables=variables)
    for top, _, files in os.walk(out):
        for file in files:
            with open(os.path.join(top, file)) as f:
                if world.secret in f.read():
                    escaped = f"{file} holds a secret of the host"
    if os.path.exists(f"{victim}/planted"):
        escaped = "a file was written to the host"
    world.must("sandbox", "remove", "--force", name)
    return place, {"FS09": ("ESCAPED", escaped) if escaped else ("denied", "never outside")}


def mount_race(world, variables=None):
    """CVE-2021-30465: directory and link change places while others start with mounts in that directory."""
    place = Place(world.caller, kind="named", event="races with mounts")
    victim, shared, name = world.path("own/victim"), world.path("own/shared"), "swapper"
    for path in victim, shared:
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path if path == shared else f"{path}/place")
        os.chown(path, world.id, world.id)
        os.chmod(path, 0o777)
    world.must("sandbox", "create", name, "--no-config", "--mount", f"{world.path('escape')}:/escape:ro",
               "--mount", f"{shared}:/shared", variables=variables)
    world.must("sandbox", "start", name, variables=variables)
    world.must("exec", name, "sh", "-c", f"mkdir -p /shared/real/place && ln -s {victim} /shared/link")
    world.must("exec", "-d", name, "/escape", "swap", "/shared/real", "/shared/link")
    started, astray = 0, 0
    for _ in range(STARTS):
        done = world.ak("run", "--no-config", "--mount", f"{shared}:/shared", "--mount",
                        f"{world.path('shown-ro')}:/shared/real/place", "grep", "-c", "/place ", "/proc/self/mountinfo",
                        variables=variables)
        started += done.stdout == "1\n"
        astray += done.stdout == "0\n"
    world.must("sandbox", "remove", "--force", name)
    if astray:
        return place, {"FS35": ("ESCAPED", f"{astray} mounts went outside")}
    return place, {"FS35": ("denied", "never outside") if started else ("broken", "nothing started")}


CASES = (
    ("TT01c", "characters in the terminal that the sandbox was started from",
     "own terminal, own session, seccomp", terminal),
    ("FS09", "files outside by swapping directories and links during copies (CVE-2018-15664)",
     "paths resolved in the root", copy_race),
    ("FS35", "lead another sandbox's mounts outside by swapping a directory and a link (CVE-2021-30465)",
     "paths resolved in the root", mount_race),
    ("CP07", "run on after the supervisor was killed", "lifeline, parent's death", without_supervisor),
)


def attack(world, results):
    for case in terminal, later_mount, without_supervisor, copy_race, mount_race:
        place, answers = case(world)
        results.add(place, answers)
