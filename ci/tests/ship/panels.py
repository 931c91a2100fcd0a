"""Panels of 'culprit ship --dashboard' asked as Grafana would ask them: each query runs in ClickHouse, and answers what
'culprit query' answers to the view that it is made of. panels.py CULPRIT DASHBOARD VIEWS PORT DATABASE ATTEMPT LOG|RUN..."""
import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

culprit, dashboard, views, port, database, attempt, *logs = sys.argv[1:]
variables = {"database": database, "attempt": attempt, "__from": "0", "__to": "4000000000000", "__interval_ms": "1000"}
estimated = re.compile(r"p\d\d")  # from powers of two here, exact there


def of_grafana(sql):
    sql = re.sub(r"\$\{?(\w+)\}?", lambda m: variables[m[1]], sql)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", (sql + " FORMAT JSONCompact").encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as e:
        raise SystemExit(f"{e.read().decode()[:600]}\n{sql}") from None
    return [c["name"] for c in found["meta"]], found["data"]


def of_culprit(sql):
    for name, value in (("slot_s", "1.0"), ("attempt", attempt), ("from_s", "0"), ("to_s", "1e9")):
        sql = sql.replace(f":{name}", value)
    if attempt != "0":
        sql = re.sub(r"\bfrom (totals|events|readings|sums|requests)\b", rf"from (select * from \1 where attempt = {attempt})", sql)
    done = subprocess.run([culprit, "query", "--json", *logs, sql], capture_output=True, text=True)
    # Asked of readings for calls, it says so; a panel is then empty.
    if done.returncode and not (done.returncode == 2 and "is no log of calls" in done.stderr):
        raise SystemExit(f"{done.stderr}\n{sql}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [list(row.values()) for row in rows]


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def summed(rows, column):
    return sum(filter(None, (number(row[column]) for row in rows)))


def compared(sql, names, rows):
    """The columns that both must agree in: where a limit cuts ties off, those that the rows are ordered by."""
    limit = re.search(r"^limit (\d+)\s*$", sql, re.M)
    ordered = re.findall(r"^order by (.*)$", sql, re.M)
    for column, name in enumerate(names):
        of_ties = limit and len(rows) == int(limit[1]) and not any(name.split()[0] in o for o in ordered)
        if name not in ("time", "t") and not estimated.match(name) and not of_ties:
            yield column, name


titles = {re.search(r"^title: (.*)$", p.read_text(), re.M)[1]: p for p in Path(views).glob("*.view")}
panels = json.loads(Path(dashboard).read_text())["panels"]
filled = 0
for panel in panels:
    names, there = of_grafana(panel["targets"][0]["rawSql"])
    head, sql = titles[panel["title"]].read_text().split("query:\n")
    here = [] if "needs: run" in head and attempt == "0" else of_culprit(sql)
    assert len(here) == len(there), (panel["title"], len(here), len(there))
    if panel["type"] == "timeseries":
        assert names[0] == "time" and all(re.match(r"\d{4}-", row[0]) for row in there), (panel["title"], names)
        assert [row[0] for row in there] == sorted(row[0] for row in there), panel["title"]
    for column, name in compared(sql, names, there):
        a, b = summed(here, column), summed(there, column)
        assert abs(a - b) <= 1e-6 * max(abs(a), 1e-9), (panel["title"], name, a, b)
    filled += bool(there)
    print(f"{panel['title']}: {len(there)} rows")
assert len(panels) == len(titles) - 1, "all views but the verdicts"
assert filled, "no panel has rows"
