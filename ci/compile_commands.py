#!/usr/bin/env python3
"""Prints compile_commands.json for clangd and other tools that read C.

    ci/compile_commands.py [TARGET ...] >compile_commands.json    # all and fuzz, unless targets are given

The commands are the ones that make would run, so that they cannot differ from the Makefile. A file that several rules
compile (the fuzzers compile the product again) has the command that make prints first.
"""
import json
import os
import shlex
import subprocess
import sys


def fail(why):
    sys.exit(f"compile_commands: {why}")


def printed_by_make(root, targets):
    # A make that runs this script has its own job server and flags; this one only prints.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    made = subprocess.run(["make", "--no-print-directory", "-n", "-B", "V=1", *targets], cwd=root, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if made.returncode:
        fail(f"'make -n -B {' '.join(targets)}' failed: {made.stderr.strip()}")
    return made.stdout


def entries(root, printed):
    seen = set()
    for line in printed.replace("\\\n", " ").splitlines():
        try:
            arguments = shlex.split(line)
        except ValueError:  # a shell construct over several lines: not a compiler
            continue
        sources = [a for a in arguments if a.endswith(".c")]
        if "-c" not in arguments or len(sources) != 1 or sources[0] in seen:
            continue
        seen.add(sources[0])
        entry = {"directory": root, "file": sources[0], "arguments": arguments}
        if "-o" in arguments[:-1]:
            entry["output"] = arguments[arguments.index("-o") + 1]
        yield entry


def main():
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = list(entries(root, printed_by_make(root, sys.argv[1:] or ["all", "fuzz"])))
    if not found:
        fail("make printed no compiler's command with -c: has the rule for objects in the Makefile changed?")
    json.dump(found, sys.stdout, indent=1)
    print()


main()
