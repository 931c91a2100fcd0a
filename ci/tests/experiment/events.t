#!/bin/bash
# Semantic diagnosis end to end on its own lab: a server that hangs is indicted from the logs, the control is not,
# training on a session learns the normal errnos, and a recorded run gets the same verdicts again.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
sql() { sqlite3 run/run.db "$1"; }

check "the lab comes up" up
# A file in three is the hung server's: within 5 s both clients together try 20. On a busy machine few sessions end in time.
cat >scenario.lua <<'L'
return { name = "semantic", workloads = { "create" }, faults = { "none", "hang" },
	detectors = { { "crash-hang", timeout = "5s" }, "errno-propagation" },
	phases = { before = "1s", fault = "10s", after = "2s" }, training = { workloads = { "session" } }, attempts = 10, seed = 3 }
L
if "$culprit" run --inventory "$dir/inventory.lua" -o run scenario.lua >table 2>log; then ok "the run ends well"; else not_ok "the run ends well" "$(cat log table)"; fi
sed 's/^/# /' log table
said() { # DETECTOR FAULT: did it indict exactly the victims (of the control: none)?
	sql "SELECT group_concat(verdict->>'indicted' = coalesce(victims, '[]')) FROM verdict JOIN attempt ON attempt.id = attempt
		JOIN cell ON cell.number = cell WHERE detector = '$1' AND metric = 'any' AND fault = '$2'"
}
is "crash-hang names the server that hangs" "$(said crash-hang hang)" 1
is "crash-hang indicts no server of the control" "$(said crash-hang none)" 1
is "errno-propagation indicts no server of the control" "$(said errno-propagation none)" 1
check "it names the connection that waited for an answer" [ "$(sql "SELECT count(*) FROM verdict JOIN attempt ON attempt.id = attempt JOIN cell
	ON cell.number = cell WHERE detector = 'crash-hang' AND fault = 'hang' AND verdict LIKE '%\"state\":\"waiting\"%'")" = 1 ]
is "the session shows the errnos of normal operation" \
	"$(sql "SELECT count(*) FROM model, json_each(model, '$.normal') WHERE detector = 'errno-propagation' AND key IN ('ENOENT', 'ENODATA')")" 2
check "the session is whole on every client" [ "$(sql "SELECT min(value->>'sessions') > 0 FROM attempt JOIN cell ON
	cell.number = cell, json_each(detail, '$.results') WHERE training")" = 1 ]
check "the control creates files, and none fails" [ "$(sql "SELECT min(value->>'files') > 5 AND max(value->>'failed') = 0
	FROM attempt JOIN cell ON cell.number = cell, json_each(detail, '$.results') WHERE fault = 'none' AND NOT training")" = 1 ]
check "no event contains a path or a run" [ "$(sql "SELECT count(*) FROM event WHERE detail LIKE '%/%'")" = 0 ]
check "the lab goes down" down
# Every verdict: as it was stored during the run, and as the records of the run give it now.
judged_again() {
	"$culprit" diagnose run --json >again && python3 -c '
import json, sqlite3
def short(cell, detector, v): return (cell, detector, v["metric"], v["abstain"], v["indicted"], v.get("time_s"))
again = [short(v["cell"], v["detector"], v["verdict"]) for v in json.load(open("again"))]
named = {detector for _, detector, *_ in again}
stored = [short(c, d, json.loads(v)) for c, d, v in sqlite3.connect("run/run.db").execute(
    "SELECT cell, detector, verdict FROM verdict JOIN attempt ON attempt.id = attempt") if d in named]
key = lambda verdict: verdict[:3]
assert len(again) == 4 and sorted(stored, key=key) == sorted(again, key=key), (stored, again)'
}
check "judged again without the lab, both detectors say the same of both cells" judged_again
done_testing
