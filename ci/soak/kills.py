#!/usr/bin/python3
"""Kills, again and again, in a run with every fault; afterwards the nodes are as they were before.

    SOAK_KILLS=100 SOAK_TIME=240 SOAK_SEED=7 ci/soak/kills.py

The faults are shuffled and cut into runs of a few, so that a run is complete after some kills and the next runs have the other
faults. Each kill: the run goes on ('culprit resume'), the N-th step of its log from there is waited for, then a random delay;
then dies what is due, on the victim or another node. The orchestrator is stopped at the same moment, so that it mends nothing by a new contact, and
killed once the nodes have been looked at. For a cut network it goes on until then.

A node is clean when no process, no nftables table and no undo journal of ours is there. It has the lease and 2 s for that,
then LATE_S more, which is late. What is still there then is mended by 'culprit undo', or left behind. After each kill every node's fingerprint (mounts, limits,
servers, rules, ...) must be the one from before, and no cell may be confirmed twice. A run that is complete must have every
cell once; a cell whose attempts were all invalid for another reason is counted as given up.

SOAK_TIME: seconds after which no kill begins. SOAK_FINISH=1: the run is completed at the end, without kills; without it the
next sitting goes on with it. SOAK_SEED: kill K of this seed is always of the same kind, step, delay and choice of node. SOAK_RESULTS
(results/soak): kills.csv and runs.csv, appended to. SOAK_WORK (OUT/soak): the run. SOAK_LAB, SOAK_SUBNET: the lab.
"""
import collections
import csv
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, os.environ.get("OUT", "out"))
CULPRIT = os.path.join(OUT, "culprit")
WORK = os.path.join(ROOT, os.environ.get("SOAK_WORK", os.path.join(OUT, "soak")))
RESULTS = os.path.join(ROOT, os.environ.get("SOAK_RESULTS", "results/soak"))
LAB = os.environ.get("SOAK_LAB", "/run/culprit/soak")
SUBNET = os.environ.get("SOAK_SUBNET", "10.66.0.0/24")
LEASE_S, GRACE_S, LATE_S = 2, 2, 10
LIMIT_S = 300  # for anything that is waited for
NODES = ("s1", "s2", "s3", "c1", "o1")

NOBODY = "agent, guard and standby"  # lives on
# What is killed: processes of a node's session, all at the same moment.
DEATHS = {
    "orchestrator": (),
    "agent": ("agent",),
    "guard": ("guard",),
    "standby": ("standby",),
    "agent and guard": ("agent", "guard"),
    "agent and standby": ("agent", "standby"),
    "guard and standby": ("guard", "standby"),
    NOBODY: ("agent", "guard", "standby"),
    "network": (),
}
STEPS = 24  # a faulty cell has eleven: begin, trace, workload, inject, verify, onset, verify-again, undo, offset, stop, collect
DELAY_S = 0.8
FAULTS = 4  # of a run
KILLS_OF_CELL = 4  # after these it is let pass: a cell is not confirmed while each of its attempts is hit
ATTEMPTS = 4
# What brings a fault's effect out within seconds, as in scenarios/errors.lua; the others run under ddw.
UNDER_DDW = 'workloads = { "ddw" }'
FAULT_TEXT = {
    "err-inodes": 'workloads = { "create" }, spare = 4',
    "err-files": 'workloads = { "create" }',
    "err-remount": 'workloads = { "create" }',
    "err-space": 'workloads = { "ddw" }, size = "24MiB"',
    "err-fsize": 'workloads = { "ddw" }, limit = "2MiB"',
}
KILL_FIELDS = ("seed", "run", "kill", "what", "node", "event", "delay_ms", "fault", "on_victim", "held", "clean_s", "outcome", "quarantined")
RUN_FIELDS = ("seed", "run", "cells", "once", "given_up", "kills")

# The agent is the guard's parent; it leads the session that the others hold. All are stopped first: none can act in between.
HELD = r'''
lines() { cat /var/lib/culprit/undo/*.json 2>/dev/null | grep -c "^{\"$1\""; }
[ "$(lines add)" -le "$(lines done)" ] || echo held
'''
STRIKE = r'''
g=$(pgrep -o -x culprit-guard) || exit 3
for what; do
	case $what in
	agent) p="$p $(ps -o ppid= -p "$g")" ;;
	guard) p="$p $g" ;;
	standby) p="$p $(pgrep -x culprit-standby)" ;;
	esac
done
kill -STOP $p || exit
''' + HELD + "kill -KILL $p"
LEFT = r'''
nft list tables 2>/dev/null | grep culprit_
pgrep -xl 'dd|sg_.*|culprit-.*'
ls /var/lib/culprit/undo
'''
CUT = "nft 'add table inet cut; add chain inet cut in { type filter hook input priority -500; policy drop; }'"
FINGERPRINT = r'''
d=$(ls -d /var/lib/culprit/agent/*/ | head -1)
pid=$(pgrep -x 'glusterfsd?' | head -1)
printf '{"id":1,"op":"fingerprint"%s}\n{"id":2,"op":"bye"}\n' "${pid:+,\"pids\":[$pid]}" |
	"$d"/ld-linux* --library-path "$d" "$d"/culprit-agent serve
'''


def node(name, script, *args):
    return subprocess.Popen([CULPRIT, "lab", "exec", "--dir", LAB, name, "--", "sh", "-c", script, "sh", *args],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def said(process):
    return process.communicate(timeout=LIMIT_S)[0]


def on_all(names, script):
    started = {name: node(name, script) for name in names}
    return {name: said(process) for name, process in started.items()}


def fingerprints():
    """What an agent finds on each node, and what it had to clean."""
    found = {}
    for name, text in on_all(NODES, FINGERPRINT).items():
        lines = [json.loads(line) for line in text.splitlines()]
        hello = next((line for line in lines if line.get("event") == "hello"), {})
        result = next((line["result"] for line in lines if line.get("id") == 1 and "result" in line), None)
        found[name] = {"is": result, "cleaned": hello.get("cleaned"), "unclean": hello.get("unclean")}
    return found


def wait_clean(names, deadline):
    """Looks at least once. Returns the moment when all were seen clean, or None, and what was there at the last look."""
    left = dict.fromkeys(names, "")
    while True:
        left = {name: text for name, text in on_all(left, LEFT).items() if text}
        now = time.monotonic()
        if not left:
            return (now if now <= deadline else None), left
        if now > deadline:
            return None, left
        time.sleep(0.02)


class Soak:
    def __init__(self, seed):
        self.seed = seed
        self.run_number = len(rows("runs.csv", seed)) + 1
        self.hits = collections.Counter(row["fault"] for row in rows("kills.csv", seed) if int(row["run"]) == self.run_number)
        self.run = os.path.join(WORK, f"run-{seed}-{self.run_number}")
        self.process = None
        self.before = None

    def lab_up(self):
        subprocess.run([CULPRIT, "lab", "down", "--dir", LAB], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
        must([CULPRIT, "lab", "up", "--dir", LAB, "--subnet", SUBNET, "--servers", "3", "--clients", "1", "--cpus", "1", "--memory", "512MiB"])
        must([CULPRIT, "undo", "--inventory", os.path.join(LAB, "inventory.lua")])
        self.before = fingerprints()
        if any(not one["is"] or one["cleaned"] or one["unclean"] for one in self.before.values()):
            fail(f"the nodes of a new lab cannot be looked at: {self.before}")

    def go_on(self):
        log = open(os.path.join(WORK, "said"), "a", encoding="utf-8")
        if os.path.exists(os.path.join(self.run, "run.db")):
            words = ["resume", self.run, "--inventory", os.path.join(LAB, "inventory.lua"), "--quiet"]
        else:
            shutil.rmtree(self.run, ignore_errors=True)
            scenario = os.path.join(WORK, f"soak-{self.seed}-{self.run_number}.lua")
            write_scenario(self.seed, self.run_number, scenario)
            words = ["run", "--quiet", "--lease", f"{LEASE_S}s", "--inventory", os.path.join(LAB, "inventory.lua"), "--seed",
                     str(self.seed * 1000 + self.run_number), "-o", self.run, scenario]
        self.process = subprocess.Popen([CULPRIT, *words], stdout=log, stderr=log)

    def new_lines(self):
        """Lines of the run's log, from now on; ends with the process."""
        path, rest, wait_until = os.path.join(self.run, "run.log"), "", time.monotonic() + LIMIT_S
        at = os.path.getsize(path) if os.path.exists(path) else 0
        self.go_on()
        while time.monotonic() < wait_until:
            ended = self.process.poll() is not None
            if os.path.exists(path):
                with open(path, encoding="utf-8") as log:
                    log.seek(at)
                    text = log.read()
                    at = log.tell()
                *lines, rest = (rest + text).split("\n")
                if lines:
                    wait_until = time.monotonic() + LIMIT_S
                yield from lines
            if ended:
                return
            time.sleep(0.01)
        fail(f"nothing more comes from the run after {LIMIT_S} s")

    def sql(self, query, *args):
        # Not read-only: what a killed writer left must be rolled back first.
        with sqlite3.connect(f"file:{self.run}/run.db?mode=rw", uri=True, timeout=30) as db:
            return db.execute(query, args).fetchall()

    def counts(self):
        """Cells of the plan, confirmed attempts, cells that have one, cells whose attempts are used up."""
        return (self.sql("SELECT count(*) FROM cell")[0][0],
                *self.sql("SELECT count(*), count(DISTINCT cell) FROM attempt WHERE outcome = 'confirmed'")[0],
                self.sql("SELECT count(*) FROM (SELECT cell FROM attempt GROUP BY cell HAVING sum(outcome = 'confirmed') = 0"
                         " AND sum(outcome = 'invalid') >= ?)", ATTEMPTS)[0][0])

    def end_run(self):
        """The process has ended by itself: is the run complete?"""
        if not os.path.exists(os.path.join(self.run, "run.db")):
            fail(f"the run does not begin, see {WORK}/said")
        cells, confirmed, distinct, given_up = self.counts()
        if distinct + given_up < cells:
            return False
        folders = set(os.listdir(os.path.join(self.run, "cells")))
        known = {f"{cell:04d}.{number}" for cell, number in self.sql("SELECT cell, number FROM attempt")}
        once = int(confirmed == distinct and folders <= known)
        append("runs.csv", RUN_FIELDS, (self.seed, self.run_number, cells, once, given_up, self.hits.total()))
        print(f"run {self.run_number}: complete after {self.hits.total()} kills: {cells} cells, {given_up} given up, the others "
              f"{'once each' if once else 'NOT once each'}", flush=True)
        if once:
            shutil.rmtree(self.run)
        self.run_number += 1
        self.hits.clear()
        self.run = os.path.join(WORK, f"run-{self.seed}-{self.run_number}")
        return True

    def reach(self, steps):
        """Goes on with the run until its log has that many steps more. The last one's cell and name."""
        for _ in range(20):
            for line in self.new_lines():
                found = re.search(r" cell (\d+) attempt \d+ step (\S+)$", line)
                if not found or self.hits[self.fault_of(int(found[1]))[0]] >= KILLS_OF_CELL:
                    continue
                steps -= 1
                if not steps:
                    return int(found[1]), found[2]
            if not self.end_run() and self.process.returncode == 2:
                fail(f"the run was refused, see {WORK}/said")
        fail("the run makes no progress")

    def fault_of(self, cell):
        """Its name, and where it acts."""
        fault, victims = self.sql("SELECT fault, victims FROM cell WHERE number = ?", cell)[0]
        return fault.split("(")[0], json.loads(victims or "[]")

    def strike(self, what, where):
        """Returns whether an act was in the node's journal, or None if there was nobody to kill."""
        if what == "orchestrator":
            held = bool(said(node(where, HELD)))
            self.process.kill()
            return held
        if what == "network":
            return bool(said(node(where, HELD + CUT)))
        self.process.send_signal(signal.SIGSTOP)
        killing = node(where, STRIKE, *DEATHS[what])
        held = said(killing)
        return bool(held) if killing.returncode == 0 else None

    def mend(self, left):
        """What was still there at the deadline. Is it mended, and was it a quarantine?"""
        quarantined = any(said(node(name, "grep -qs '\"repairing\"' /var/lib/culprit/undo/*.json && echo yes")) for name in left)
        undo = subprocess.run([CULPRIT, "undo", "--inventory", os.path.join(LAB, "inventory.lua")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
        notes = undo.stdout
        if undo.returncode:
            notes += "".join(said(node(name, "tail -n 40 /var/lib/culprit/undo/*.json")) for name in left)
        return undo.returncode == 0, quarantined, notes

    def kill(self, number):
        draw = random.Random(f"{self.seed}.{number}")
        order = list(DEATHS)
        random.Random(f"{self.seed}.{(number - 1) // len(order)}").shuffle(order)
        what, steps = order[(number - 1) % len(order)], draw.randint(1, STEPS)
        delay_s, anywhere = draw.uniform(0, DELAY_S), draw.random() < 0.2
        elsewhere = draw.choice(("s1", "s2", "s3", "c1"))
        cell, event = self.reach(steps)
        fault, victims = self.fault_of(cell)
        where = elsewhere if anywhere or not victims else victims[0]
        time.sleep(delay_s)
        held = self.strike(what, where)
        deadline = (begin := time.monotonic()) + LEASE_S + GRACE_S
        if held is None:
            self.stop()
            print(f"kill {number}: {what} on {where} at {event} + {delay_s * 1000:.0f} ms: the session had ended", flush=True)
            return None
        names = [where] if what == "network" else NODES
        clean, left = wait_clean(names, deadline)
        outcome = "clean" if clean else "late"
        if clean is None and what != NOBODY:
            clean, left = wait_clean(names, deadline + LATE_S)
        self.stop()
        if what == "network":
            must([CULPRIT, "lab", "exec", "--dir", LAB, where, "--", "nft", "delete", "table", "inet", "cut"])
            others, still = wait_clean(NODES, time.monotonic() + LEASE_S + GRACE_S)
            clean, left = (clean if others else None), left | still
        quarantined, notes = False, ""
        if clean is None:
            mended, quarantined, notes = self.mend(left)
            outcome = "mended" if mended else "left"
        after = fingerprints()
        if after != self.before or wait_clean(NODES, time.monotonic() + LIMIT_S)[0] is None:
            outcome = "left"
        cells, confirmed, distinct, _ = self.counts()
        if confirmed != distinct:
            fail(f"{self.run}: {confirmed} confirmed attempts of {distinct} cells")
        clean_s = f"{clean - begin:.2f}" if clean else ""
        self.hits[fault] += 1
        append("kills.csv", KILL_FIELDS, (self.seed, self.run_number, number, what, where, event, f"{delay_s * 1000:.0f}", fault,
                                          int(where in victims), int(held), clean_s, outcome, int(quarantined)))
        print(f"kill {number}: {what} on {where}, {fault}, {event} + {delay_s * 1000:.0f} ms{', act held' if held else ''}: {outcome}"
              f"{f' after {clean_s} s' if clean_s else ''}{', quarantined' if quarantined else ''}; {distinct} of {cells} cells", flush=True)
        if outcome != "clean":
            with open(os.path.join(WORK, f"kill-{self.seed}-{number}"), "w", encoding="utf-8") as file:
                json.dump({"left": left, "undo": notes, "before": self.before, "after": after}, file, indent=1)
        if outcome == "left":
            self.lab_up()
        return outcome

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()

    def finish(self):
        for _ in range(20):
            for _line in self.new_lines():
                pass
            if self.end_run():
                return
            if self.process.returncode == 2:
                break
        fail(f"the run cannot be completed, see {WORK}/said")


def fail(text, code=3):
    print(f"soak: {text}", file=sys.stderr)
    sys.exit(code)


def must(argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S)
    if done.returncode:
        fail(f"'{' '.join(argv[:3])}' ended with {done.returncode}: {done.stdout}")
    return done.stdout


def rows(name, seed):
    path = os.path.join(RESULTS, name)
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["seed"] == str(seed)]


def append(name, fields, values):
    path = os.path.join(RESULTS, name)
    new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(fields)
        writer.writerow(values)


def number_from(name, default):
    text = os.environ.get(name, "")
    if text and not re.fullmatch(r"[0-9]{1,9}", text):
        fail(f"{name} must be a whole number, not '{text}'", 2)
    return int(text) if text else default


def fault_names():
    listed = json.loads(must([CULPRIT, "list", "faults", "--json"]))
    return sorted(fault["name"] for fault in listed["faults"] if fault["name"] != "none")


def write_scenario(seed, run_number, path):
    """The run's share of the faults: each has its turn once before one has its second."""
    names = fault_names()
    rounds, first = divmod((run_number - 1) * FAULTS, len(names))
    chosen = []
    for turn in (rounds, rounds + 1):
        order = list(names)
        random.Random(f"{seed}.faults.{turn}").shuffle(order)
        chosen += order
    faults = "".join(f'\n\t\t{{ "{name}", {FAULT_TEXT.get(name, UNDER_DDW)} }},' for name in dict.fromkeys(chosen[first:first + FAULTS]))
    text = f"""return {{
	name = "soak", workloads = {{ {{ "ddw", fresh = 1, records = 1000 }}, "create" }}, attempts = {ATTEMPTS},
	faults = {{ {faults}
	}},
	detectors = {{ "always-healthy" }}, phases = {{ before = "1s", fault = "4s", after = "0s" }}, gates = {{ onset = "300s" }},
}}
"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    seed = number_from("SOAK_SEED", random.SystemRandom().randrange(1, 1000000))
    kills, limit_s = number_from("SOAK_KILLS", 100), number_from("SOAK_TIME", 10**9)
    if os.geteuid():
        fail("the lab needs root")
    os.makedirs(WORK, exist_ok=True)
    os.makedirs(RESULTS, exist_ok=True)
    soak, begin = Soak(seed), time.monotonic()
    number = max((int(row["kill"]) for row in rows("kills.csv", seed)), default=0) + 1
    print(f"SOAK_SEED={seed}, from kill {number}, run {soak.run_number}", flush=True)
    tally = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # the lab goes down
    try:
        soak.lab_up()
        while sum(tally.values()) < kills and time.monotonic() - begin < limit_s:
            outcome = soak.kill(number)
            number += 1
            if outcome:
                tally[outcome] = tally.get(outcome, 0) + 1
        if os.environ.get("SOAK_FINISH"):
            soak.finish()
    finally:
        soak.stop()
        subprocess.run([CULPRIT, "lab", "down", "--dir", LAB], stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    print(", ".join(f"{what}: {n}" for what, n in sorted(tally.items())) or "no kill")
    return 1 if tally.get("left") else 0


if __name__ == "__main__":
    sys.exit(main())
