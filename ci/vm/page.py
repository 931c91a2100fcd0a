#!/usr/bin/env python3
"""Makes a page of results from the logs of 'make check-vm':  ci/vm/page.py $OUT/vm/log/*.tap >results/vm-DATE.md"""
import pathlib, re, sys

TITLES = {
    "tracers": "Tracers, kernel by kernel",
    "faults": "Faults on glusterd's bricks",
    "own": "Services of systemd-run, netem and io.max",
    "ends": "What ends while a fault acts",
}


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    if not files:
        sys.exit("usage: page.py LOG ...")
    order = list(TITLES)
    files.sort(key=lambda f: order.index(f.stem) if f.stem in order else len(order))
    totals, parts, made = [], [], []
    for file in files:
        lines = file.read_text().splitlines()
        rows, seconds, kernels, ended = [], "?", [], any(re.match(r"1\.\.\d+", line) for line in lines)
        for line in lines:
            if m := re.match(r"(not )?ok \d+ - (.*)", line):
                name, _, why = m[2].partition(" # SKIP ")
                rows.append(["failed" if m[1] else "skipped" if why else "passed", name, [why] if why else []])
            elif m := re.match(r"1\.\.0 # SKIP (.*)", line):
                rows.append(["skipped", "all", [m[1]]])
            elif m := re.match(r"# seconds: (\d+)", line):
                seconds = m[1]
            elif m := re.match(r"# build: (.*)", line):
                made.append(m[1])
            elif m := re.search(r"\b(\d+\.\d+\.\d+\S*-amd64)$", line):
                kernels.append(m[1])
            elif line.startswith("# ") and rows and rows[-1][0] == "failed" and not re.search(r": up after \d+ s$", line):
                rows[-1][2].append(line[2:])
        count = {what: sum(row[0] == what for row in rows) for what in ("passed", "failed", "skipped")}
        note = "" if ended else " (cut short)"
        totals.append(f"| {TITLES.get(file.stem, file.stem)}{note} | {', '.join(dict.fromkeys(kernels))} | {count['passed']} | {count['failed']} "
                      f"| {count['skipped']} | {seconds} |")
        parts.append(f"\n## {TITLES.get(file.stem, file.stem)}\n")
        for what, name, why in rows:
            parts.append(f"- {what}: {name}")
            if why:
                parts.append("\n  ```text\n" + "\n".join("  " + text[:160] for text in why[:12]) + "\n  ```\n")
    print("# On Debian's kernels and systemd\n\n"
          "`make check-vm` on emulated machines (`qemu-system-x86_64 -accel tcg`, one processor and 512 MiB each). This page is made from its\n"
          "log by `ci/vm/page.py`; what failed is listed with what the test printed.\n\n"
          + "".join(f"- {text}\n" for text in dict.fromkeys(made)) + ("\n" if made else "") +
          "| test | kernels | passed | failed | skipped | seconds |\n|---|---|---|---|---|---|")
    print("\n".join(totals))
    print("\n".join(parts))


if __name__ == "__main__":
    main()
