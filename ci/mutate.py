#!/usr/bin/python3
"""Mutation testing: makes small errors in the C sources, one at a time, and counts those that the unit tests find.

    ci/mutate.py [--seed N] [-n N] [--only PATH]... [--jobs N]    the N mutants of a seed (in files below PATH)
    ci/mutate.py --list ...                                       print them without running them
    ci/mutate.py --mutant FILE:LINE:OPERATOR[:K]                  one mutant again, with the output of the test that kills it
    ci/mutate.py --again ...                                      run the survivors of the last run once more

A mutant is killed if a test of its folder (TESTS) fails twice or takes too long. One that does not compile, or that compiles to the
same code, is replaced by the next. EQUIVALENT lists survivors that no test can kill, with the reason; they are counted apart, as are
mutants of code that no test of the folder links. Which mutants a seed draws depends on the text of their lines only, so that a
change elsewhere does not draw others.

All happens in a copy of the tree and of its build, OUT-mutate; the sources are never changed. A mutated program may kill
or delete anything, so tests run in namespaces of their own: no other processes, no network, a read-only file system and an empty
/tmp. Results are appended to OUT-mutate/results as they come; the same command goes on after an interruption, and begins anew
with --fresh. Exit: 0 all killed, 1 there are survivors, 2 it cannot run.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.environ.get("OUT", "out")
COPY = os.path.join(ROOT, OUT + "-mutate")
TREE = os.path.join(COPY, "tree")
EQUIVALENT = os.path.join(ROOT, "ci", "mutate_equivalent.txt")

# Folders of ci/tests for a product folder, other than that of its last name.
TESTS = {
    "diag/app": "app causal", "diag/capture/ebpf": "capture", "diag/capture/ptrace": "capture", "diag/capture/sampler": "capture",
    "diag/capture/tools": "capture", "diag/judge": "judge judging", "faults/primitives": "primitives agent",
    "harness/run": "experiment remote", "harness/live": "recording watch", "harness/judging": "judging store flow", "harness/lua": "scenario inventory fs",
    "harness/nodes": "remote inventory", "harness/scenario": "scenario experiment", "harness/timeline": "timeline serve",
    "harness/web": "serve timeline watch", "harness/web/serve": "serve",
}
# Tests that need a lab, a tracer of the kernel or a network, or that measure time.
LEFT_OUT = re.compile(r"tests/(lab/|capture/(ebpf|flow|async|file_calls|sums_events|filter|leave|ptrace|recorder)|throttle/supervisor"
                      r"|fs/orangefs|fleet/(maker|rivals)_)")
SLOW_S = float(os.environ.get("SLOW_S", "30"))  # a test that takes longer than this is left out
LIMIT_S = 5  # for a test with a mutant, and three times what it takes without one

SANDBOX = """mount --make-rprivate / && mount --bind "$0" /mnt && mount -o remount,bind,ro / && mount -t tmpfs tmpfs /tmp &&
mount -t tmpfs tmpfs /run && ip link set lo up && cd /mnt && "$@"; exit $?"""  # not as process 1, whose children would think that it is gone


def fail(text):
    print(f"mutate.py: {text}", file=sys.stderr)
    sys.exit(2)


# What each operator does to one line: a pattern, and what comes in its place. Weights keep frequent kinds from crowding out others.
CALL = r"(?:\w*_)?(?:free|clear|close|fclose|unlink|munmap|closedir)"
SWAP = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
        "true": "false", "false": "true", "break;": "continue;", "continue;": "break;"}
swap = lambda m: SWAP[m[0].strip()].join(m[0].split(m[0].strip()))
OPERATORS = {
    "compare": (r" (?:<=?|>=?|==|!=) ", swap, 2),
    "negate": (r"(?<=\bif \()(?!.*\) \w+ \()(.+)(?=\)(?: \{)?$)", lambda m: f"!({m[0]})", 2),
    "logic": (r"(?: |^\s*)(?:&&|\|\|)(?: |$)", swap, 3),
    "error": (r"^\t\t+(?:return (?:-E\w+|rc|\w+\(.*\be(?:rr)?,.*\)|-1|NULL|false)|goto \w+);$", lambda m: "\t\t;", 8),
    "constant": (r"(?<![\w.\[\"'])(?:[1-9]\d*|0)(?![\w.\]\"'])", lambda m: str(int(m[0]) + 1), 1),
    "default": (r"(?:(?<=^#define )\w+ +|\.\w+ = |^static const \w+ \w+ = )\d+(?=[,}; ]|$)",
                lambda m: re.sub(r"\d+$", lambda d: str(int(d[0]) * 2 + 1), m[0]), 6),
    "boolean": (r"\b(?:true|false)\b", swap, 2),
    "arithmetic": (r" [+-] (?!\d+[;,)])", swap, 2),
    "jump": (r"^\t+(?:break|continue);$", swap, 1),
    "close": (rf"^\t+(?!free){CALL}\([^;]*\);$", lambda m: "\t;", 1),
    "call": (rf"^\t+(?!(?:return|{CALL}|va_\w+|if|for|while)\b)\w+\([^;]*\);$", lambda m: "\t;", 3),
}
Mutant = collections.namedtuple("Mutant", "file line operator k text new key")


def code_lines(path):
    """Lines of a file, with comments and strings blanked out for the search."""
    with open(path) as f:
        text = f.read()
    blank = lambda m: re.sub(r"[^\n]", "\0", m[0])
    hidden = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)
    return text.split("\n"), hidden.split("\n")


def mutants_of(file, seed):
    lines, hidden = code_lines(os.path.join(ROOT, file))
    seen = collections.Counter()
    for i, (text, code) in enumerate(zip(lines, hidden)):
        if code.startswith("#") and not code.startswith("#define"):
            continue
        for name, (pattern, change, weight) in OPERATORS.items():
            for k, m in enumerate(re.finditer(pattern, code)):
                if m[0].strip() and "\0" in m[0] and name not in ("negate", "error", "close", "call"):
                    continue
                real = re.compile(pattern).match(text, m.start()) if "\0" in m[0] else m
                part = text[m.start():m.end()]
                new = text[:m.start()] + change(m if real is m else {0: part}) + text[m.end():]
                seen[name, text, k] += 1
                name_of_it = f"{seed} {file} {name} {text.strip()} {k} {seen[name, text, k]}"
                u = (int(hashlib.sha256(name_of_it.encode()).hexdigest()[:12], 16) + 1) / 2**48
                yield Mutant(file, i + 1, name, k, text.strip(), new.strip(), u ** (1 / weight)), new


def sources(only):
    files = subprocess.run(["git", "ls-files", "harness/*.c", "faults/*.c", "diag/*.c"], cwd=ROOT, capture_output=True, text=True,
                           check=True).stdout.split()
    files = [f for f in files if not f.endswith((".bpf.c", "/main.c")) and
             (not only or any(f == o or f.startswith(o.rstrip("/") + "/") for o in only))]
    return files or fail(f"no C source below {' '.join(only)}; give files or folders of harness, faults or diag")


class Build:
    """The copy, and what compiles, links and runs in it."""

    def __init__(self):
        if not os.path.exists(os.path.join(ROOT, OUT, "libcore.a")):
            fail(f"there is no {OUT}/libcore.a; run 'make' first")
        shutil.rmtree(TREE, ignore_errors=True)
        os.makedirs(TREE)
        names = [n for n in os.listdir(ROOT) if not n.startswith((".", "out", "runs"))] + [OUT]
        subprocess.run(["cp", "-a", *names, TREE], cwd=ROOT, check=True)
        programs = [f"{OUT}/{p}" for p in ("culprit", "agent/culprit-agent", "tests/base/text_test")]
        said = subprocess.run(["make", "-n", "-B", "V=1", f"OUT={OUT}", *programs], cwd=TREE, capture_output=True, text=True,
                              check=True).stdout.splitlines()
        self.cc = shlex.split(next(l for l in said if l.endswith(" harness/base/text.c")))[:-3]
        self.cc = [w for w in self.cc if w not in ("-MMD", "-MP", "-g")] + ["-O1", f"-I{OUT}/gen", "-w"]
        self.links = {p: shlex.split(next(l for l in said if f" -o {p} " in l)) for p in programs}
        if shutil.which("ld.gold"):  # in a third of the time
            self.links = {p: [*words, "-fuse-ld=gold"] for p, words in self.links.items()}
        self.sources, self.plain, self.base_s = {}, {}, {}
        self.lock = threading.Lock()

    def has(self, program, file):
        """Whether a program contains the code of a source, which its debug information names."""
        with self.lock:
            if program not in self.sources:
                with open(os.path.join(TREE, program), "rb") as f:
                    self.sources[program] = f.read()
            return file.encode() + b"\0" in self.sources[program]

    def includes(self, test, file):
        with open(os.path.join(TREE, test)) as f:
            return f'#include "{file}"' in f.read()

    def compile(self, text, job):
        source, to = (os.path.join(job, "mutant." + end) for end in "co")  # one name: equal code makes equal objects
        with open(source, "w") as f:
            f.write(text)
        if subprocess.run([*self.cc, "-o", to, source], cwd=TREE, capture_output=True).returncode:
            return None
        with open(to, "rb") as f:
            return f.read()

    def compile_plain(self, file, job):
        if file not in self.plain:
            with open(os.path.join(TREE, file)) as f:
                self.plain[file] = self.compile(f.read(), job)
        return self.plain[file]

    def link(self, program, file, job):
        """Links a program anew, with the mutant before the archives, into the job's folder."""
        like = program if program in self.links else f"{OUT}/tests/base/text_test"
        words = [w.replace("tests/base/text_test", program[len(OUT) + 1:]) for w in self.links[like]]
        part, test = os.path.join(job, "mutant.o"), os.path.join("ci", program[len(OUT) + 1:] + ".c")
        if like != program and self.includes(test, file):  # the test is compiled with the mutant in it
            place = os.path.join(job, "include", file)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(os.path.join(job, "mutant.c"), place)
            part = os.path.join(job, "test.o")
            done = subprocess.run([self.cc[0], f"-I{job}/include", *self.cc[1:], "-o", part, test], cwd=TREE, capture_output=True)
            os.unlink(place)
            if done.returncode:
                return False
            words = [w for w in words if not w.endswith("_test.o")]
        at = words.index("-o")
        to = os.path.join(job, program[len(OUT) + 1:])
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.lexists(to):
            os.unlink(to)
        words[at + 1:at + 2] = [to, part]
        return subprocess.run(words, cwd=TREE, capture_output=True).returncode == 0

    def tests_of(self, file):
        """(test, programs to link) of the folder's tests that run a source's code, the fastest first; and those too slow."""
        folder, found, slow = os.path.dirname(file), [], []
        for room in TESTS.get(folder, os.path.basename(folder)).split():
            for name in sorted(os.listdir(f"{TREE}/ci/tests/{room}")) if os.path.isdir(f"{TREE}/ci/tests/{room}") else []:
                test = f"{OUT}/tests/{room}/{name[:-2]}"
                if not name.endswith("_test.c") or LEFT_OUT.search(test):
                    continue
                programs = [test] if self.has(test, file) else []
                if self.has(test, "agent/culprit-agent") and self.has(f"{OUT}/agent/culprit-agent", file):
                    programs.append(f"{OUT}/agent/culprit-agent")
                if programs:
                    (slow if self.seconds(test) > SLOW_S else found).append((self.seconds(test), test, programs))
        return [f[1:] for f in sorted(found)], [s[1] for s in slow]

    def seconds(self, test):
        """What a test takes without a mutant; more than any limit if it fails then."""
        with self.lock:
            known = self.base_s.get(test)
        if known is None:
            begin = time.monotonic()
            done = sandboxed(test, SLOW_S)
            known = time.monotonic() - begin if done and not done.returncode else 10 * SLOW_S
            with self.lock:
                self.base_s[test] = known
        return known


    def fails(self, test, program):
        """Whether a test with a mutant fails twice or takes too long, and its output. A busy machine may fail a test once, and may be
        slower than when the test was timed."""
        for attempt in range(2):
            limit = LIMIT_S + 3 * self.seconds(test)
            done = sandboxed(program, limit)
            if done is None:
                with self.lock:
                    self.base_s.pop(test, None)
                if LIMIT_S + 2 * self.seconds(test) < limit:
                    return True, f"{test}: more than {limit:.0f} s"
            elif done.returncode == 0:
                return False, ""
        return True, done.stdout if done else f"{test}: more than {limit:.0f} s"


def sandboxed(program, limit):
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *user, "--pid", "--fork", "--kill-child",
               "--mount-proc", "--net", "--ipc", "--uts", "sh", "-c", SANDBOX, TREE, program]
    with tempfile.TemporaryFile("w+", errors="replace") as said:  # a pipe would wait for processes that outlive the test
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return None
        said.seek(0)
        return subprocess.CompletedProcess(command, child.returncode, said.read())


def judge(build, mutant, new, job, out=None):
    """'killed', 'SURVIVED', 'not covered', 'test left out', or None for a mutant that is not one."""
    with open(os.path.join(TREE, mutant.file)) as f:
        lines = f.read().split("\n")
    lines[mutant.line - 1] = new
    tests, slow = build.tests_of(mutant.file)
    if not tests:
        return "test left out" if slow else "not covered"
    plain = build.compile_plain(mutant.file, job)
    code = build.compile("\n".join(lines), job)
    if code is None or code == plain:
        return None
    agent = os.path.join(job, "agent")
    try:
        for test, programs in tests:
            if not all([build.link(p, mutant.file, job) for p in programs]):
                return None
            if test not in programs:
                os.makedirs(os.path.dirname(os.path.join(job, test[len(OUT) + 1:])), exist_ok=True)
                shutil.copy(os.path.join(TREE, test), os.path.join(job, test[len(OUT) + 1:]))
            killed, said = build.fails(test, os.path.relpath(job, TREE) + test[len(OUT):])
            if killed:
                if out:
                    print(said, file=out)
                return "killed"
        return "test left out" if slow else "SURVIVED"
    finally:
        shutil.copy(os.path.join(TREE, OUT, "agent/culprit-agent"), os.path.join(agent, "culprit-agent"))


def equivalents():
    """(file, operator, line's text) of known ones: FILE<tab>OPERATOR<tab>TEXT<tab>REASON."""
    if not os.path.exists(EQUIVALENT):
        return {}
    with open(EQUIVALENT) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and line[0] != "#"]
    return {tuple(r[:3]): r[3] for r in rows}


def name_of(m):
    return f"{m.file}:{m.line}:{m.operator}" + (f":{m.k}" if m.k else "")


def identity(m):
    return "\t".join((m.file, m.operator, str(m.k), m.text, m.new))


def report(results):
    table = collections.defaultdict(collections.Counter)
    for m, verdict in results:
        for folder in (os.path.dirname(m.file), "all"):
            table[folder][verdict] += 1
    kinds = ("killed", "SURVIVED", "equivalent", "not covered", "test left out")
    print(f"\n{'folder':32} {'n':>5} " + " ".join(f"{k:>13}" for k in kinds) + "  killed of killed and survived")
    for folder in sorted(table, key=lambda f: (f == "all", f)):
        row = table[folder]
        of = row["killed"] + row["SURVIVED"]
        print(f"{folder:32} {sum(row.values()):5} " + " ".join(f"{row[k]:13}" for k in kinds) +
              (f" {100 * row['killed'] / of:5.0f} %" if of else ""))
    for kind in kinds[1:]:
        for m, verdict in sorted(results):
            if verdict == kind:
                print(f"{kind}: {name_of(m)}: {m.text} -> {m.new}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-n", type=int, default=200)
    p.add_argument("--only", action="append", metavar="PATH")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--list", action="store_true")
    p.add_argument("--mutant", metavar="FILE:LINE:OPERATOR[:K]")
    p.add_argument("--again", action="store_true")
    p.add_argument("--fresh", action="store_true")
    a = p.parse_args()
    only = [a.mutant.split(":")[0]] if a.mutant else a.only
    drawn = sorted((m for f in sources(only) for m in mutants_of(f, a.seed)), key=lambda d: -d[0].key)
    if a.mutant:
        drawn = [d for d in drawn if name_of(d[0]) == a.mutant] or fail(f"there is no mutant '{a.mutant}'; see --list")
    if a.list:
        for m, _ in drawn[:a.n] if a.only is None else drawn:
            print(f"{name_of(m)}: {m.text} -> {m.new}")
        return 0
    if subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--mount", "--net", "true"]).returncode:
        fail("cannot make namespaces for the tests; run it as root, or allow unprivileged user namespaces")
    log = os.path.join(COPY, "results")
    os.makedirs(COPY, exist_ok=True)
    if a.fresh and os.path.exists(log):
        os.unlink(log)
    known = {}
    if os.path.exists(log) and not a.mutant:
        with open(log) as f:
            known = dict(line.rstrip("\n").split("\t", 1)[::-1] for line in f if line.endswith("\n"))
    known = {k: v for k, v in known.items() if not (a.again and v == "SURVIVED")}
    same, build, results, judged, lock = equivalents(), Build(), [], [0], threading.Lock()
    todo = iter(drawn)

    def work(number):
        job = os.path.join(TREE, f"job{number}")
        os.makedirs(job)
        for part in ("agent", "helpers"):
            subprocess.run(["cp", "-a", os.path.join(TREE, OUT, part), job], check=True)
        os.symlink(os.path.join("..", OUT, "culprit"), os.path.join(job, "culprit"))
        while True:
            with lock:
                m, new = next(todo, (None, None))
                if m is None or judged[0] >= a.n:
                    return
            verdict = known.get(identity(m)) or judge(build, m, new, job, sys.stdout if a.mutant else None) or "no mutant"
            with lock:
                if identity(m) not in known and not a.mutant:
                    with open(log, "a") as f:
                        f.write(f"{verdict}\t{identity(m)}\n")
                if verdict == "SURVIVED" and (m.file, m.operator, m.text) in same:
                    verdict = "equivalent"
                if verdict != "no mutant" and judged[0] < a.n:
                    results.append((m, verdict))
                    judged[0] += verdict in ("killed", "SURVIVED", "equivalent")
                    print(f"{len(results):4} {verdict:13} {name_of(m)}: {m.text} -> {m.new}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        list(pool.map(work, range(a.jobs)))
    report(results)
    slow = sorted(t for t, s in build.base_s.items() if s > SLOW_S)
    if slow:
        print(f"not run, for they fail here without a mutant or take more than {SLOW_S} s: {' '.join(slow)}")
    return 1 if any(v == "SURVIVED" for _, v in results) else 0


if __name__ == "__main__":
    sys.exit(main())
