#!/bin/bash
# Faults that wait for a trigger, that grow, and that hit two servers at once. Has its own lab.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
trap '"$culprit" lab down --dir "$lab" >/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
sql() { sqlite3 run/run.db "$1"; }

cat >ramp.lua <<'L'
return {
	summary = "loss that grows by 10 % a second, once the workload has written a record", resource = "network",
	trigger = function(ctx)
		local written = ctx.workload[1]:status().wchar
		return written > 16 * 2^20 and { written = written } or nil, "too little written yet"
	end,
	inject = function(ctx)
		ctx.state.loss = 10
		ctx.state.rule = ctx.victim:drop_packets { percent = 10 }
	end,
	step = function(ctx, elapsed)
		if elapsed == 0 then return end
		ctx.state.rule:undo()
		ctx.state.loss = ctx.state.loss + 10
		ctx.state.rule = ctx.victim:drop_packets { percent = ctx.state.loss }
	end,
	verify = function(ctx)
		local c = ctx.state.rule:counters()
		if c.dropped == 0 then return nil, "nothing dropped" end
		return { loss = ctx.state.loss, seen = c.seen, dropped = c.dropped }
	end,
}
L
cat >s.lua <<'L'
return { name = "s", workloads = { { "ddw", records = 2 } }, detectors = { "always-same" },
	faults = { { "./ramp.lua", victims = 2, after = "0s" } }, phases = { before = "60s", fault = "3s", after = "0s" } }
L
"$culprit" lab up --dir "$lab" --subnet 10.70.0.0/24 >/dev/null || not_ok "the lab comes up"
"$culprit" run --quiet --inventory "$lab/inventory.lua" --seed 1 -o run s.lua >said 2>&1
code=$?
sed 's/^/# /' said
check "it ends with 0" [ $code -eq 0 ]
check "it waited for the workload" [ "$(sql "SELECT detail->'trigger'->>'written' > 16777216 FROM attempt")" = 1 ]
check "and no longer: its own time before the fault, not the phases'" [ "$(sql "SELECT onset_ns - start_ns < 60e9 FROM attempt")" = 1 ]
check "two servers were hit" [ "$(sql "SELECT count(*) FROM attempt, json_each(detail->'verified_still_on')")" = 2 ]
check "both to the end of the ramp" [ "$(sql "SELECT min(value->>'loss'), max(value->>'loss') FROM attempt, json_each(detail->'verified_still_on')")" = "30|30" ]
check "naming one of two victims is no hit" grep -qE '^  always-same +1\.00 [^ ]+ +0\.00 ' said

# A fault that is slow to act has little of its phase in what detectors see: the attempt does not count.
cat >slow.lua <<'L'
return {
	summary = "acts at once, and is seen to act after ten looks", resource = "network",
	inject = function(ctx) ctx.victim:drop_packets { percent = 10 } end,
	verify = function(ctx)
		ctx.state.looks = (ctx.state.looks or 0) + 1
		return ctx.state.looks > 10 and { looks = ctx.state.looks } or nil, "not yet"
	end,
}
L
cat >late.lua <<'L'
return { name = "late", workloads = { { "ddw", records = 2 } }, detectors = { "always-same" }, faults = { "./slow.lua" },
	phases = { before = "0s", fault = "2s", after = "0s" }, gates = { onset = "1s" }, attempts = 1 }
L
"$culprit" run --quiet --inventory "$lab/inventory.lua" --seed 1 -o late late.lua >said 2>&1
check "a fault that was slow to act does not count, and the reason is given" [ "$(sqlite3 late/run.db "SELECT outcome, count(*) FROM attempt
	WHERE reason LIKE '%verified to act % after it was asked for; 1 s are allowed (gates: ''onset'')%'")" = "invalid|1" ]
check "nothing is left" [ -z "$(for s in s1 s2 s3 s4; do "$culprit" lab exec --dir "$lab" $s -- nft list tables; done)" ]
done_testing
