"""report - docs/SECURITY-CASES.md: the table of cases as a run has found them.

The same run gives the same bytes. Answers (errnos) depend on the kernel, so on another kind of kernel
only the cases and their walls are compared.
"""
import os
import re
import subprocess

import hostside
from expect import ELSEWHERE, LACKS, LANDLOCK_ABI, NO_CONTROL, expected
from walls_list import REMOVALS
from world import TOP

PATH = f"{TOP}/docs/SECURITY-CASES.md"


def kernel():
    """What answers depend on."""
    release = ".".join(os.uname().release.split(".")[:2])
    groups = "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1"
    return f"Linux {release} on {os.uname().machine}, Landlock ABI {LANDLOCK_ABI}, cgroup {groups}"


def table(build):
    """(case, wall, what is tried)"""
    text = subprocess.run([f"{build}/escape", "list"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t")[:3] for line in text.splitlines()]
    return rows + [[case, wall, name] for case, name, wall, _ in hostside.CASES]


def summarise(case, rows):
    """The wall's answers, in how many places, and where a profile allows it."""
    answers, denied, allowed = set(), 0, {}
    for _, place, verdict, detail in rows:
        wanted, why = expected(case, place)
        if verdict == "absent":
            continue
        if why:
            allowed[why] = allowed.get(why, 0) + 1
        else:
            denied += 1
            answers.update(detail.split(",") if detail else [])
    return ", ".join(sorted(answers)), denied, "; ".join(f"{count}: {why}" for why, count in sorted(allowed.items()))


def control_words(case, control):
    if case in control:
        return "works" if control[case][0] == "ESCAPED" else LACKS.get(case, (0, control[case][0]))[1]
    if NO_CONTROL.get(case, "walls") != "walls":
        return NO_CONTROL[case]
    return "wall removed" if any(case in removal.cases for removal in REMOVALS) else "NONE"


def document(build, results):
    rows = sorted(table(build))
    by_case = {}
    for row in results.rows:
        by_case.setdefault(row[0], []).append(row)
    places = sorted({row[1].name for row in results.rows})
    attacks = [row for row in rows if not row[0].startswith("OK")]
    lines = [
        "# What was tried against the sandbox, and what stopped it",
        "",
        "Made by `make security-cases`; `make check` fails when a run says something else. A case is a piece of",
        "`tests/escape/`, a program that makes the system calls of an attack. Each is tried in every place below",
        "where it can be (with a directory of the host shown and without, as root inside and as a user), and what it",
        "aims at outside is looked at afterwards: files, listeners, a process, shared memory, a terminal.",
        "",
        "*Answer*: what the attacker got. *Places*: how many denied it. *Allowed*: where the profile permits it.",
        "*Control*: what the same attempt does without walls, as root outside; \"wall removed\" where that would",
        "touch the machine, or has no meaning: there a build with that wall left out shows it (`make check-walls`).",
        "",
        f"Answers of {kernel()}.",
        "",
        "| case | tried | wall | answer | places | allowed | control |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, wall, name in attacks:
        answer, denied, allowed = summarise(case, by_case.get(case, []))
        lines.append(f"| {case} | {name} | {wall} | {answer} | {denied} | {allowed or '–'} | "
                     f"{control_words(case, results.control)} |")
    lines += ["", "## What must go on working", "", "| case | what | places | not in |", "|---|---|---|---|"]
    for case, _, name in rows:
        if case.startswith("OK"):
            _, working, refused = summarise(case, by_case.get(case, []))
            lines.append(f"| {case} | {name} | {working} | {refused or '–'} |")
    lines += [
        "",
        "## Walls, and what gets through without them",
        "",
        "`make check-walls` builds a program whose walls can be left out (`src/base/wall.h`), leaves out each in",
        "turn and requires that these cases get through. Several in a row stand behind each other: the cases get",
        "through when all are off, and are stopped again when any one is put back. Marked with * are those that",
        "cannot be put back alone: while they stand, a sandbox without the others cannot be built.",
        "",
        "| off | gets through |",
        "|---|---|",
    ]
    for removal in REMOVALS:
        walls = ", ".join(wall + "*" * (wall in removal.needed) for wall in removal.walls)
        lines.append(f"| {walls} | {', '.join(removal.cases)} |")
    lines += ["", "## Proved by other tests", "", "| rows | what | where |", "|---|---|---|"]
    lines += [f"| {row} | {what} | {where} |" for row, what, where in ELSEWHERE]
    lines += ["", "## Places", ""] + [f"- {name}" for name in places] + [""]
    return "\n".join(lines)


def without_answers(text):
    """Cases and walls alone, and other tables by their first columns."""
    return [re.split(r" *\| *", line)[1:4] for line in text.splitlines() if line.startswith("| ")]


def compare(document_now):
    try:
        with open(PATH) as f:
            committed = f.read()
    except FileNotFoundError:
        return ["docs/SECURITY-CASES.md is missing: make security-cases"]
    if f"Answers of {kernel()}." not in committed:
        print(f"  answers are not compared: docs/SECURITY-CASES.md is of another kind of kernel than {kernel()}")
        if without_answers(committed) == without_answers(document_now):
            return []
    elif committed == document_now:
        return []
    old, new = set(committed.splitlines()), set(document_now.splitlines())
    return ["docs/SECURITY-CASES.md does not say what this run says (make security-cases writes it):"] + \
        [f"- {line}" for line in sorted(old - new)] + [f"+ {line}" for line in sorted(new - old)]
