#!/bin/bash
# Look-alikes act, which is measured; they score as controls in rows of their own; every node is as it was. Has its own lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/nodes.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "$(printf '%s\n' "'$2', not '$3'" && cat said)"; fi; }
of() { sqlite3 run/run.db "SELECT $2 FROM attempt a JOIN cell c ON a.cell = c.number, json_each(a.detail->'verified_still_on') e
	WHERE a.outcome = 'confirmed' AND c.fault = '$1'"; }

lab_up
check "every node has the agent" "$culprit" undo --inventory "$inventory"
before=$(fingerprints)
check "there is something to compare" [ "$(grep -c '"mounts"' <<<"$before")" = 5 ]
cat >alike.lua <<'L'
return { name = "alike", workloads = { { "ddr", records = 4 } }, faults = { "none", "hot-file", { "metadata-storm", processes = 2 }, { "scrub", pause = "10ms" } },
	detectors = { "always-same", "peer-robust" }, phases = { before = "1s", fault = "5s", after = "1s" }, attempts = 3 }
L
"$culprit" run --dry-run --json --inventory "$inventory" --seed 1 alike.lua >plan.json 2>said
check "a plan has no victims" python3 -c 'import json
cells = json.load(open("plan.json"))["cells"]
assert len(cells) == 4 and not any(c["victims"] for c in cells), cells'
timeout 500 "$culprit" run --quiet --seed 1 --inventory "$inventory" -o run alike.lua >said 2>&1
is "the run succeeds" $? 0
is "all four cells are confirmed, and nobody is a victim" \
	"$(sqlite3 run/run.db "SELECT count(DISTINCT c.number), count(c.victims) FROM attempt a JOIN cell c ON a.cell = c.number WHERE a.outcome = 'confirmed'")" "4|0"
is "a hot file was read" "$(of hot-file "e.value->>'read_bytes' > 2097152")" 1
is "files were made and removed" "$(of 'metadata-storm(processes=2)' "e.value->>'files' > 50")" 1
is "every disk was read" "$(of 'scrub(pause=10 ms)' "e.value->>'read_bytes' > 65536")" 1
"$culprit" table run --json >table.json 2>said
check "they are controls, in rows of their own, and whoever is named is named wrongly" python3 - <<'P'
import json
rows = {}
def walk(x):
    if isinstance(x, dict):
        if "control" in x and "fault" in x and x.get("metric") == "any" and x["detector"] == "always-same":
            rows[x["fault"]] = x
        for v in x.values():
            walk(v)
    elif isinstance(x, list):
        for v in x:
            walk(v)
walk(json.load(open("table.json")))
assert set(rows) == {"none", "hot-file", "metadata-storm(processes=2)", "scrub(pause=10 ms)"}, rows.keys()
for name, row in rows.items():
    assert row["control"] is True and row["n"] == 1 and row["fp"]["count"] == 1 and row["tp"] is None, (name, row)
P
"$culprit" table run >table.txt 2>said
check "... and named look-alikes" grep -qE 'hot-file \(look-alike\)' table.txt
check "... but the control is one" grep -qE 'none \(control\)' table.txt
check "nothing is left" clean
check "every node is as it was" diff <(echo "$before") <(fingerprints)
check "the lab goes down" "$culprit" lab down --dir "$lab"
done_testing
