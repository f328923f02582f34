#!/usr/bin/env python3
"""Types the README's console blocks into a shell and compares what comes back, word for word.

    readme.py README.md SECTION...        in a directory that it may use; agentkernel is in PATH

Left free is what differs from run to run: the id of a checkpoint, ages, and the demo directory's path; and, for
callers who may make no cgroups, how a program takes it that it gets no more memory.
"""
import os
import re
import subprocess
import sys

DEMO = "/tmp/demo"
ID = re.compile(r"^[0-9a-f]{12}$", re.M)


def blocks(text, section):
    body = text.split("\n## %s\n" % section, 1)[1].split("\n## ", 1)[0]
    return re.findall(r"```console\n(.*?)```", body, re.S)


def steps(block):
    """[(command, expected output)]"""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def plain(text):
    text = text.replace(os.getcwd(), DEMO)
    return re.sub(r" +\d+ s +$", " AGE", text, flags=re.M).rstrip()


def main():
    text = open(sys.argv[1]).read()
    shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ids = {}
    wrong = 0
    count = 0
    for section in sys.argv[2:]:
        for block in blocks(text, section):
            for command, expected in steps(block):
                for old, new in ids.items():
                    command, expected = command.replace(old, new), expected.replace(old, new)
                shell.stdin.write("{ %s\n}; echo END-OF-STEP\n" % command)
                shell.stdin.flush()
                lines = []
                for line in shell.stdout:
                    if line == "END-OF-STEP\n":
                        break
                    lines.append(line)
                got = "".join(lines)
                if ID.match(expected.strip()) and ID.match(got.strip()):
                    ids[expected.strip()] = got.strip()
                    expected = got
                count += 1
                if os.geteuid() != 0 and "MemoryError" in got and "out of memory" in expected:
                    continue
                if plain(got) != plain(expected):
                    wrong += 1
                    print("$ %s\n--- README:\n%s\n--- here:\n%s" % (command, plain(expected), plain(got)))
    print("%d commands, %d wrong" % (count, wrong))
    sys.exit(wrong > 0 or count == 0)


main()
