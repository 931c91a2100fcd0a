#!/usr/bin/python3
"""Prints the page of a soak: ci/soak/page.py DATE FOLDER >results/soak-DATE.md (FOLDER holds kills.csv and runs.csv, and may hold notes.md, its last section)"""
import csv
import math
import os
import sys

WHAT = ("orchestrator", "network", "agent", "guard", "standby", "agent and guard", "agent and standby", "guard and standby",
        "agent, guard and standby")
OUTCOMES = ("clean", "late", "mended", "left")


def fail(text):
    print(f"page.py: {text}", file=sys.stderr)
    sys.exit(2)


def rows(folder, name, needed):
    path = os.path.join(folder, name)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [field for field in needed if field not in (reader.fieldnames or ())]
            if missing:
                fail(f"{path}: there is no column '{missing[0]}'")
            found = list(reader)
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    for line, row in enumerate(found, 2):
        if None in row or None in row.values():
            fail(f"{path}:{line}: a row of {len(reader.fieldnames)} columns is expected")
        if name == "kills.csv" and (row["outcome"] not in OUTCOMES or row["what"] not in WHAT):
            fail(f"{path}:{line}: unknown kind of death or outcome: {row['what']}, {row['outcome']}")
    return found


def upper_limit(k, n):
    """Clopper-Pearson, one side, 95 %: the largest share at which k or fewer of n still happen in 5 % of cases."""
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        at_most = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
        low, high = (p, high) if at_most > 0.05 else (low, p)
    return 100 * high


def table(title, names, kills, key):
    lines = [f"| {title} | kills | an act was held | clean in time | late | longest, s | mended by `undo` | of these quarantined | left behind |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name in (*names, None):
        of = [kill for kill in kills if name is None or kill[key] == name]
        clean = [kill for kill in of if kill["outcome"] in ("clean", "late")]
        late = sum(kill["outcome"] == "late" for kill in clean)
        longest = max((float(kill["clean_s"]) for kill in clean if kill["clean_s"]), default=None)
        mended = [kill for kill in of if kill["outcome"] == "mended"]
        cells = (name or "**all**", len(of), sum(kill["held"] == "1" for kill in of), len(clean) - late, late,
                 "-" if longest is None else f"{longest:.1f}",
                 len(mended), sum(kill["quarantined"] == "1" for kill in mended), sum(kill["outcome"] == "left" for kill in of))
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        fail("usage: " + __doc__.split("\n")[0])
    date, folder = sys.argv[1:]
    kills = rows(folder, "kills.csv", ("seed", "run", "kill", "what", "fault", "held", "clean_s", "outcome", "quarantined"))
    runs = rows(folder, "runs.csv", ("seed", "run", "cells", "once", "given_up"))
    if not kills:
        fail(f"'{folder}' holds no kills")
    seeds = sorted({kill["seed"] for kill in kills}, key=int)
    once = sum(run["once"] == "1" for run in runs)
    left = sum(kill["outcome"] == "left" for kill in kills)
    no_one = [kill for kill in kills if kill["what"] == WHAT[-1]]
    print(f"""# Soak: {len(kills)} kills under {len({kill["fault"] for kill in kills})} faults, {date}

`ci/soak/kills.py` (`make soak`) kills parts of culprit, or cuts a network, in runs of a few faults each on a lab of three servers, a
client and a host outside. Its head says how a moment is drawn, what dies and what is checked. The lease is 2 s. "Clean in time": within
lease + 2 s no process, rule or undo journal of ours is on any node, though nobody contacts it, and every node's fingerprint is the one
from before. "Late": also by itself, but within another 10 s. "Quarantined": an undo that takes longer, such as a file-system check, was under way at that time.

Seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}; the figures are in `{folder.rstrip('/')}`. This page is the output of `ci/soak/page.py`.
A run that a sitting left unfinished counts in the kills and not in the completed runs.

{table("killed", [what for what in WHAT if any(kill["what"] == what for kill in kills)], kills, "what")}

Left behind: {left} of {len(kills)}; at 95 % confidence at most {upper_limit(left, len(kills)):.1f} % of kills.

Resumed runs that were completed: {len(runs)}, of them without a cell that was confirmed twice or lost: {once}. Cells:
{sum(int(run["cells"]) for run in runs)}, of them given up, because all their attempts were invalid for other reasons: {sum(int(run["given_up"]) for run in runs)}.

When agent, guard and standby die at the same moment, no process is left to act on a node without systemd: with an act held, the node stays as it is
until the next contact, here `culprit undo`. {len(no_one)} kills were of this kind, {sum(kill["held"] == "1" for kill in no_one)} while an act was held. With systemd a transient unit outlives them
(`ci/tests/primitives/systemd.t`); the lab has none.

## By fault

The fault of the cell in which the kill fell.

{table("fault", sorted({kill["fault"] for kill in kills}), kills, "fault")}""")
    notes = os.path.join(folder, "notes.md")
    if os.path.exists(notes):
        with open(notes, encoding="utf-8") as file:
            print("\n" + file.read(), end="")


if __name__ == "__main__":
    main()
