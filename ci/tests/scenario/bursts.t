#!/bin/bash
# The fault of faults/README.md that acts again and again works as it is printed there; and an act whose max_s runs out makes its attempt
# invalid, as is said there.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
tmp=$(mktemp -d)
trap 'down >/dev/null 2>&1; rm -rf "$tmp"' EXIT
sed -n '/^-- bursts.lua$/,/^```$/p' faults/README.md | sed '$d' >"$tmp/bursts.lua"
cat >"$tmp/limited.lua" <<'L'
return { summary = "x", resource = "service", verify_timeout = "1s",
	inject = function(ctx) ctx.victim:hold { pid = ctx.victim.pids[1], max_s = 1 } end,
	verify = function(ctx)
		for _, p in ipairs(ctx.victim:processes()) do
			if p.pid == ctx.victim.pids[1] then return p.state:match("[Tt]") and true or nil, "it runs" end
		end
	end }
L
run() { # FAULT
	echo "return { name = '$1', workloads = { { 'ddw', records = 1 } }, faults = { './$1.lua' }, detectors = { 'always-healthy' },
		phases = { before = '1s', fault = '4s', after = '1s' }, attempts = ${2:-3} }" >"$tmp/run-$1.lua"
	timeout 300 "$culprit" run --quiet --seed 1 --inventory "$dir/inventory.lua" -o "$tmp/$1" "$tmp/run-$1.lua" >"$tmp/said" 2>&1
}
of() { sqlite3 "$tmp/$1/run.db" "SELECT $2 FROM attempt ORDER BY number DESC LIMIT 1"; }
running() { # no server of the lab is stopped
	! inside s1 ps -e -o stat=,comm= | grep '^T.*glusterfsd' && ! inside s2 ps -e -o stat=,comm= | grep '^T.*glusterfsd' &&
		! inside s3 ps -e -o stat=,comm= | grep '^T.*glusterfsd'
}

check "the page has the fault" grep -q 'timeout 0.3.*sleep 0.7' "$tmp/bursts.lua"
check "a lab" up
run bursts
code=$?
check "a run with it is complete" bash -c "[ $code = 0 ] || { cat '$tmp/said' '$tmp/bursts/run.log'; false; }"
is "it acted when it began and before it was undone" "$(of bursts outcome)" confirmed
check "nothing of it is left" bash -c "! pgrep -f 'sleep 0[.]7; done bursts'"
run limited 1
is "an act whose max_s has run out leaves no confirmed attempt" $? 3
is "it is invalid" "$(of limited outcome)" invalid
check "and max_s is named, with what to use" grep -q "'max_s' ran out before the fault's end; .* phases.fault" "$tmp/limited/run.log"
check "no server is left stopped" running
check "the lab goes down" down
done_testing
