#!/usr/bin/env python3
"""Random queries over the events of logs, against a count over 'culprit log --json'.

usage: counted.py CULPRIT N SEED LOG ...   prints "N queries, R rows, none differs", or the first query that differs, and exits 1
"""
import json, random, subprocess, sys

NUMBERS = ["number", "time_ns", "seq", "pid", "tid", "async", "result", "service_ns", "fd", "inode", "offset"]
TEXTS = ["call", "errno", "thread", "kind", "log"]


def read(culprit, log):
    out = subprocess.run([culprit, "log", "--json", log], check=True, capture_output=True, text=True).stdout
    for r in map(json.loads, out.splitlines()):
        if r["type"] != "call":
            continue
        tag = r.get("tag") or {}
        row = {c: r.get(c) for c in ("number", "seq", "pid", "tid", "call", "result", "errno", "service_ns", "fd", "kind", "offset")}
        row |= {"time_ns": r["start_ns"], "thread": r.get("name"), "async": int(r.get("async", False)),
                "inode": tag.get("inode"), "log": log}
        yield {c: None if v == "" else v for c, v in row.items()}


def quote(v):
    return "'" + v.replace("'", "''") + "'" if isinstance(v, str) else str(v)


def condition(draw, rows):
    """SQL, and what it is for a row: true, false or None as in SQL."""
    c = draw.choice(NUMBERS + TEXTS)
    pick = lambda: draw.choice(rows)[c]
    kind = draw.choice(["null", "cmp", "cmp", "in", "between"])
    v = pick()
    if kind == "null" or v is None:
        want = draw.random() < 0.5
        return f"e.{c} is {'' if want else 'not '}null", lambda r: (r[c] is None) == want
    if kind == "in":
        vs = [x for x in (pick() for _ in range(3)) if x is not None] + [v]
        return f"e.{c} in ({', '.join(map(quote, vs))})", lambda r: None if r[c] is None else r[c] in vs
    if kind == "between" and c in NUMBERS:
        w = pick()
        a, b = sorted([v, v if w is None else w])
        return f"e.{c} between {a} and {b}", lambda r: None if r[c] is None else a <= r[c] <= b
    op, f = draw.choice([("=", lambda x: x == v), ("<>", lambda x: x != v)] + ([] if c in TEXTS else [
        ("<", lambda x: x < v), (">=", lambda x: x >= v)]))
    return f"e.{c} {op} {quote(v)}", lambda r: None if r[c] is None else f(r[c])


def where(draw, rows):
    parts = [condition(draw, rows) for _ in range(draw.randint(0, 3))]
    if not parts:
        return "1", lambda r: True
    if draw.random() < 0.3:
        return "(" + " or ".join(s for s, _ in parts) + ")", lambda r: any(f(r) for _, f in parts)
    return " and ".join(s for s, _ in parts), lambda r: all(f(r) for _, f in parts)


def aggregate(draw):
    c = draw.choice(NUMBERS + TEXTS)
    some = lambda rows: [r[c] for r in rows if r[c] is not None]
    kinds = [("count(*)", len), (f"count(e.{c})", lambda rows: len(some(rows))),
             (f"count(distinct e.{c})", lambda rows: len(set(some(rows)))),
             (f"min(e.{c})", lambda rows: min(some(rows), default=None)),
             (f"max(e.{c})", lambda rows: max(some(rows), default=None))]
    if c in NUMBERS and c != "time_ns":
        kinds.append((f"sum(e.{c})", lambda rows: sum(some(rows)) if some(rows) else None))
    return draw.choice(kinds)


def grouped(draw, rows):
    sql, keep = where(draw, rows)
    by = draw.sample(["call", "errno", "pid", "tid", "thread", "fd", "kind", "log", "async"], draw.randint(0, 2))
    asked = [aggregate(draw) for _ in range(draw.randint(1, 3))]
    groups = {} if by else {(): []}
    for r in rows:
        if keep(r):
            groups.setdefault(tuple(r[c] for c in by), []).append(r)
    want = [list(key) + [f(g) for _, f in asked] for key, g in groups.items()]
    text = f"select {', '.join(['e.' + c for c in by] + [s for s, _ in asked])} from events e where {sql}"
    return text + (" group by " + ", ".join("e." + c for c in by) if by else ""), want


def listed(draw, rows):
    sql, keep = where(draw, rows)
    columns = draw.sample(NUMBERS + TEXTS, draw.randint(1, 4))
    return f"select {', '.join('e.' + c for c in columns)} from events e where {sql}", [[r[c] for c in columns] for r in rows if keep(r)]


def main():
    culprit, n, seed, logs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    draw, rows, total = random.Random(seed), [r for log in logs for r in read(culprit, log)], 0
    order = lambda table: sorted(table, key=lambda row: [(v is None, str(type(v)), v if v is not None else 0) for v in row])
    for i in range(n):
        sql, want = draw.choices([grouped, listed], [2, 1])[0](draw, rows)
        ran = subprocess.run([culprit, "query", "--json", *logs, sql], capture_output=True, text=True)
        # Columns may have one name: values in their order.
        got = [[v for _, v in json.loads(line, object_pairs_hook=list)] for line in ran.stdout.splitlines()]
        if ran.returncode or order(got) != order(want):
            print(f"query {i} of seed {seed} differs: {sql}\n{ran.stderr}got {order(got)[:3]} ({len(got)} rows)\nwant {order(want)[:3]} ({len(want)} rows)")
            sys.exit(1)
        total += len(want)
    print(f"{n} queries over {len(rows)} calls, {total} rows, none differs")


main()
