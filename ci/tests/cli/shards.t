#!/bin/bash
# The shards of a run: their plans together are the run's plan, cell by cell; merged they are scored, shown, packed and judged
# anew as the run is; and what are no shards of one run is refused. No lab: runs end at hosts that do not answer, and a
# recorded run is cut into shards.
# shellcheck disable=SC2034 # culprit is used by split
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/cli/split.sh
command -v sqlite3 >/dev/null || skip_all "no sqlite3"
root=$PWD
culprit=$root/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

inventory() { # SERVERS
	echo 'return { file_system = { type = "glusterfs" }, nodes = {'
	for i in $(seq "$1"); do
		echo "{ name = \"s$i\", role = \"server\", address = \"127.0.0.$i\", ssh_port = 1, host_key = \"ssh-ed25519 AAAA\", storage = \"/b\", service_port = 24007 },"
	done
	echo '{ name = "c1", role = "client", address = "127.0.1.1", ssh_port = 1, host_key = "ssh-ed25519 AAAA", mount = "/m" } } }'
}
inventory 4 >inventory.lua
inventory 5 >five.lua
cat >scenario.lua <<'L'
return { name = "x", workloads = { "ddw", "ddr" }, repeats = 5, training = { workloads = { "ddw" } },
  faults = { "none", "disk-hog", { "send-pktloss", loss = "1%" } }, detectors = { "peer-threshold" } }
L
refuses() { # CODE PATTERN COMMAND...: that exit code and one line
	local want=$1 pattern=$2 said code
	shift 2
	said=$(timeout 120 "$culprit" "$@" 2>&1 >/dev/null)
	code=$?
	[ $code -eq "$want" ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -q -- "$pattern" <<<"$said" || { echo "$code: $said"; return 1; }
}
run=(run scenario.lua --inventory inventory.lua --quiet --seed 7)
unseeded=(run scenario.lua --inventory inventory.lua --quiet)

# The plan.
check "what is no shard is refused" refuses 2 "--shard takes i/n, as 2/3.*not '4/3'" "${run[@]}" --shard 4/3
check "shards without a common seed, too" refuses 2 "--shard 1/3: all shards must be drawn from one seed" "${unseeded[@]}" --shard 1/3 --dry-run
check "and more shards than cells" refuses 2 "--shard 1/31: the plan has 30 scored cells to deal out" "${run[@]}" --shard 1/31 --dry-run
cells() { "$culprit" "${run[@]}" --dry-run --json "$@" | perl -MJSON::PP -0777 -ne 'for (@{decode_json($_)->{cells}}) {
	print join(" ", @$_{qw(cell training fault workload repeat tracer)}, @{$_->{victims}}), "\n" }'; }
cells >whole.plan
for i in 1 2 3 4; do cells --shard $i/4; done >parts.plan
check "the shards' cells are the plan's: number, fault, workload, victim" diff <(sort -u parts.plan) <(sort -u whole.plan)
check "... scored ones once" diff <(grep -c '^[0-9]* 0' parts.plan) <(grep -c '^[0-9]* 0' whole.plan)
check "... training in each" [ "$(grep -c '^[0-9]* 1' parts.plan)" = $((4 * $(grep -c '^[0-9]* 1' whole.plan))) ]
check "--only comes before the deal" diff <(cells --only fault=disk-hog | sort) <(for i in 1 2; do cells --only fault=disk-hog --shard $i/2; done | sort -u)

# Runs as they begin.
for i in 1 2 3; do "$culprit" "${run[@]}" --shard $i/3 -o "r$i" 2>/dev/null; done
"$culprit" "${run[@]}" -o whole 2>/dev/null
plan_of() { gunzip -c "$1/run.db.gz" >"$1.db" && sqlite3 "$1.db" "SELECT * FROM cell WHERE NOT training ORDER BY number"; }
"$culprit" ship r3 r1 r2 --pack merged && "$culprit" ship whole --pack packed
check "merged runs have the whole run's plan, cell by cell" cmp <(plan_of merged) <(plan_of packed)
check "... and each one's training" [ "$(sqlite3 merged.db 'SELECT sum(training) FROM cell')" = $((3 * $(sqlite3 packed.db 'SELECT sum(training) FROM cell'))) ]
check "... behind the plan's numbers, none twice" [ "$(sqlite3 merged.db 'SELECT group_concat(number) FROM cell WHERE training')" = 1,32,33 ]
check "no host and no inventory is in it" [ "$(sqlite3 merged.db "SELECT count(*) FROM fact WHERE key IN ('inventory_text', 'inventory_path', 'scenario_path', 'hosts')")" = 0 ]
check "a shard says what it is" bash -c "'$culprit' table r2 | grep -q '^shard 2/3: 10 of the plan.s 30 scored cells'"
resumed() { timeout 120 "$culprit" resume r2 2>&1 | grep -q "run r2 resumed: 0 of 11 cells are done"; }
check "resume goes on with the shard, not with the plan" resumed
check "... and adds no cell" [ "$(sqlite3 r2/run.db 'SELECT count(*) FROM cell')" = 11 ]

# What does not belong together.
begin() { timeout 120 "$culprit" run "$@" --quiet 2>/dev/null; }
begin scenario.lua --inventory inventory.lua --seed 8 --shard 2/3 -o seed
begin scenario.lua --inventory five.lua --seed 7 --shard 2/3 -o servers
begin scenario.lua --inventory inventory.lua --seed 7 --shard 2/4 -o of
begin scenario.lua --inventory inventory.lua --seed 7 --shard 2/3 --repeats 4 -o repeats
begin scenario.lua --inventory inventory.lua --seed 7 --shard 2/3 -o again
sed 's/"x"/"y"/' scenario.lua >other.lua
begin other.lua --inventory inventory.lua --seed 7 --shard 2/3 -o name
sed 's/1%/2%/' scenario.lua >other.lua
begin other.lua --inventory inventory.lua --seed 7 --shard 2/3 -o text
cp -r again version && sqlite3 version/run.db "UPDATE fact SET value = '9.9.9' WHERE key = 'culprit_version'"
cp -r again agent && sqlite3 agent/run.db "UPDATE fact SET value = json_set(value, '$.agent', 'sha256:0') WHERE key = 'inputs'"
cp -r again plan && sqlite3 plan/run.db "UPDATE fact SET value = json_set(value, '$.plan', '0') WHERE key = 'shard'"
cp -r again less && sqlite3 less/run.db "DELETE FROM cell WHERE number = (SELECT max(number) FROM cell)"
merge() { refuses 2 "$1" table --merge r1 "$2" r3; }
no="no shards of one run:"
check "another seed is refused" merge "'seed' and 'r1' are $no the seed is '8' and '7'" seed
check "another scenario" merge "$no the scenario is 'y' and 'x'" name
check "a changed scenario" merge "$no the scenario's text differs" text
check "another version" merge "$no culprit's version is '9.9.9' and" version
check "another agent" merge "$no agent has changed" agent
check "other options" merge "$no repeats is 4, was 5" repeats
check "another number of servers" merge "$no victims are drawn among all servers, and there are 5 and 4" servers
check "another number of shards" merge "$no one is a part of 4, the other of 3" of
check "another plan" merge "$no the whole plan's cells differ" plan
check "a shard that lacks a cell" merge "the shards have 29 scored cells, and the plan has 30" less
check "the same shard twice" refuses 2 "'r2' and 'again' are both shard 2/3" table --merge r1 r2 again
check "the same folder twice" refuses 2 "'r1' is given twice" ship r1 r1 --pack no
check "a run that is no shard" refuses 2 "'whole' is no shard of a run" table --merge r1 whole
check "... wherever it stands" refuses 2 "'whole' is no shard of a run" table --merge whole r1
check "what is merged already" refuses 2 "'merged' holds several shards already" rescore merged r1
check "the report of several needs a place" refuses 2 "give the report of several shards a place" report r1 r2
check "--save of several" refuses 2 "--save is for one run" rescore r1 r2 --save
check "a damaged fact" bash -c "cp -r again damaged && sqlite3 damaged/run.db \"UPDATE fact SET value = '{}' WHERE key = 'shard'\" &&
	'$culprit' table --merge r1 damaged 2>&1 | grep -q \"'damaged' is damaged: its fact 'shard' is incomplete\""
missing() { "$culprit" table --merge r1 r3 2>said >out; local code=$?
	grep -q '^culprit table: shard 2/3 missing: 10 of the plan.s 30 scored cells are not here$' said && grep -q '^missing: shard 2/3: 10 of' out &&
		[ $code = 0 ] || { cat said out; return 1; }; }
check "missing shards are named" missing
check "... also where there is no table" bash -c "'$culprit' ship r2 --pack one 2>said && [ ! -s said ] && '$culprit' ship r2 r3 --pack some 2>&1 | grep -q 'shard 1/3 missing'"
check "... and in a corpus of some" bash -c "'$culprit' table some 2>&1 | grep -q '^missing: shard 1/3: 10 of'"

# A recorded run, cut: table, scores anew, corpus, TAP, report.
mkdir rec && gunzip -c "$root/results/corpora/matrix/run.db.gz" >rec/run.db
chosen=(--detector peer-robust --detector peer-threshold)
"$culprit" rescore rec "${chosen[@]}" --save >/dev/null
check "a recorded run is cut into shards" split rec 3 inventory.lua p
check "... whose seed draws its plan" diff <(sqlite3 rec/run.db "SELECT number, training, fault, workload, repeat, coalesce((SELECT group_concat(value, ' ') FROM json_each(victims)), '') FROM cell" |
	tr '|' ' ' | sed 's/ $//') <("$culprit" run p.lua --inventory inventory.lua --seed 20261122 --dry-run --json |
	perl -MJSON::PP -0777 -ne 'for (@{decode_json($_)->{cells}}) { print join(" ", $_->{cell}, $_->{training} ? 1 : 0, @$_{qw(fault workload repeat)}, @{$_->{victims}}), "\n" }')
same() { diff <("$culprit" "$1" rec "${@:2}" | sed '/^run /,$d') <("$culprit" $merged p-1 p-2 p-3 "${@:2}" 2>&1 | sed '/^run /,$d'); }
merged='table --merge'
check "its table is the run's" same table --details
check "... by cells" same table --cells 20-40
check "... by test" diff <("$culprit" table rec --tap) <("$culprit" table --merge p-1 p-2 p-3 --tap)
check "... in words" diff <("$culprit" table rec --words) <("$culprit" table --merge p-1 p-2 p-3 --words)
merged=rescore
check "judged anew it is, too" same rescore "${chosen[@]}"
"$culprit" ship p-3 p-2 p-1 --pack pack
for i in 1 2 3; do "$culprit" ship p-$i --pack "pack-$i"; done
check "a corpus of it is judged alike" diff <("$culprit" rescore rec "${chosen[@]}" --tap) <("$culprit" rescore pack "${chosen[@]}" --tap)
check "corpora of shards are shards" diff <("$culprit" rescore rec "${chosen[@]}" --tap) <("$culprit" rescore pack-2 pack-1 pack-3 "${chosen[@]}" --tap)
check "a corpus among runs: all are judged anew" diff <("$culprit" rescore rec --tap) <("$culprit" table --merge p-1 pack-2 p-3 --tap)
check "the report has every attempt" [ "$("$culprit" report p-1 p-2 p-3 -o - | grep -o 'id="attempt-[0-9]*"' | sort -u | wc -l)" = 54 ]
secrets=$(for i in 1 2 3; do sqlite3 p-$i/run.db "SELECT value FROM fact WHERE key = 'blind_key'"; done)
check "... and no secret of theirs" bash -c "[ ${#secrets} -gt 60 ] && ! '$culprit' report p-1 p-2 p-3 -o - | grep -qF '$secrets'"
check "... and says what is missing" bash -c "'$culprit' report p-1 p-3 -o - 2>/dev/null | grep -q '\"shards\"'"

# Each shard is judged under its own key, with its own training.
rm -rf p-?
for i in 1 2 3; do printf '%032d' $i >p-$i.key; done
split rec 3 inventory.lua p
sqlite3 p-2/run.db "UPDATE attempt SET outcome = 'invalid' WHERE cell = 2"
cat >taught.lua <<'L'
return { name = "taught", summary = "indicts a server for each missing training run",
  train = function(runs) return { n = #runs } end,
  diagnose = function(run, model) return { { metric = "any", indicted = { model.n < 4 and run.servers[1] or nil } } } end }
L
for i in 1 2 3; do "$culprit" rescore p-$i "${chosen[@]}" --detector ./taught.lua --save >/dev/null; done
rows() { "$culprit" rescore "$@" "${chosen[@]}" --detector ./taught.lua --tap | sed '/^1\.\./d; s/^\(not \)\?ok [0-9]* - //' | paste - - | sort; }
check "the verdicts are those of the shards, each judged alone" diff <(rows p-1 p-2 p-3) <(for i in 1 2 3; do rows p-$i; done | sort)
check "... and each of its own training" [ "$(rows p-1 p-2 p-3 | grep -c '^taught.*said s')" = "$(rows p-2 | grep -c '^taught.*said s')" ]
check "... of which one differs" [ "$(rows p-2 | grep -c '^taught.*said s')" -gt 5 ]
done_testing
