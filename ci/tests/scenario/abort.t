#!/bin/bash
# A scenario's safety condition: when it holds, fails or takes too long, the fault is undone within 2 s and the cell is aborted; the run continues
# or stops. An aborted cell is not run again unasked.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
command -v sqlite3 >/dev/null || skip_all "there is no sqlite3"
tmp=$(mktemp -d)
trap 'down >/dev/null 2>&1; rm -rf "$tmp"' EXIT

cat >"$tmp/fill.lua" <<'L'
return { summary = "a file that grows on the victim's storage", resource = "disk",
  inject = function(ctx)
    local file = ctx.victim.storage .. "/growing"
    ctx.victim:command { argv = { "touch", file }, inverse = { "rm", "-f", file }, check = { "test", "-e", file } }
    ctx.state.writer = ctx.victim:process { argv = { "sh", "-c", 'while :; do head -c 1000000 /dev/zero; sleep .1; done >"$1"', "sh", file } }
  end,
  verify = function(ctx) return ctx.state.writer:status().wchar > 0 end }
L
# One whose undo waits for no disk.
cat >"$tmp/mark.lua" <<'L'
local function file(ctx) return ctx.victim.folder .. "/growing" end
return { summary = "a file on the victim", resource = "disk",
  inject = function(ctx)
    ctx.victim:command { argv = { "touch", file(ctx) }, inverse = { "rm", "-f", file(ctx) }, check = { "test", "-e", file(ctx) } }
  end,
  verify = function(ctx) return ctx.victim:run { argv = { "test", "-e", file(ctx) } }.exit == 0 end }
L
# The condition is 'body'; the fault would act for a minute.
scenario() { # NAME BODY MORE
	cat >"$tmp/$1.lua" <<-L
		local first
		return { name = "$1", workloads = { { "ddw", per_server = "256KiB", records = 4 } }, faults = { "none", "./mark.lua" },
		  detectors = { "always-healthy" }, attempts = 3, phases = { before = "2s", fault = "60s", after = "0s" }, $3
		  abort_if = function(now, ctx)
		    $2
		  end }
	L
}
run() { timeout 300 "$culprit" run --quiet --seed 1 --inventory "$dir/inventory.lua" -o "$tmp/$1" "$tmp/$1.lua" "${@:2}"; }
mark() {
	local code
	run "$1" --only fault=mark >"$tmp/said" 2>&1
	code=$?
	echo "# $1: undone $(undo_ms "$1") ms after the condition was known to hold"
	return $code
}
sql() { sqlite3 "$tmp/$1/run.db" "$2"; }
outcomes() { sql "$1" "SELECT group_concat(outcome, ' ') FROM (SELECT outcome FROM attempt ORDER BY id)"; }
# Of the fault's cell, milliseconds from the condition known to hold until the undo was verified.
undo_ms() { sql "$1" "SELECT (json_extract(detail, '\$.aborted.undone_ns') - json_extract(detail, '\$.aborted.held_ns')) / 1000000 FROM attempt
	WHERE outcome = 'aborted'"; }
# Aborted once, and then not tried again; undone within 2 s, before its phase of a minute had ended. Attempts before may be invalid.
quickly() { # NAME
	local ms
	ms=$(undo_ms "$1")
	[[ $(outcomes "$1") =~ ^(invalid )*aborted$ ]] && [ "$ms" -ge 0 ] && [ "$ms" -lt 2000 ] &&
		[ "$(sql "$1" "SELECT (ended_ns - start_ns) / 1000000000 < 60 FROM attempt WHERE outcome = 'aborted'")" = 1 ] ||
		{ sql "$1" "SELECT outcome, reason, (ended_ns - start_ns) / 1000000000, json_extract(detail, '\$.aborted') FROM attempt"; return 1; }
}
reason() { sql "$1" "SELECT reason FROM attempt WHERE outcome = 'aborted' LIMIT 1"; }
grown() { local s; for s in s1 s2 s3; do inside $s find / -xdev -name growing 2>/dev/null; done; }

check "a lab" up
# Its own glusterfs.lua, whose file system says how it is.
sed 's|health = function(host)|health = function(host) do return { "sh", "-c", "echo volume lab: 1 brick of 3 is slow; exit 7" } end|' harness/fs/glusterfs.lua >"$tmp/ours.lua"
sed -i 's|type *= *"glusterfs"|type = "'"$tmp"'/ours.lua"|' "$dir/inventory.lua"

# What it may look at.
scenario looks 'return ("%s; %s; %d; %s; %s %d %s"):format(now.elapsed_s >= 1 and now.elapsed_s < 10, now.bytes_per_s > 0, now.free_bytes,
  now.probe_s > 0 and now.probe_s < 5, now.health.node ~= ctx.victim.name, now.health.exit, now.health.text)'
mark looks
is "a run whose cell was aborted ends with 3" $? 3
check "throughput, free space, the probe's time and the file system's health are seen" \
	grep -qE '^abort_if: true; true; [0-9]{6,}; true; true 7 volume lab: 1 brick of 3 is slow' <<<"$(reason looks)"
check "the fault is undone within two seconds" quickly looks
check "run.log has the reason" grep -q 'attempt 1 aborted: abort_if: true; true' "$tmp/looks/run.log"
check "nothing is left of it" [ -z "$(grown)" ]

# The run continues: the control is measured.
scenario on 'first = first or now.free_bytes
  if now.free_bytes < first - 3000000 then return ("%d bytes less"):format(first - now.free_bytes) end'
sed -i 's/workloads = .*"ddw".*}, faults/workloads = { "ddr" }, faults/; s/before = "2s", fault = "60s"/before = "1s", fault = "10s"/; s/mark.lua/fill.lua/' "$tmp/on.lua"
sed -i 's/after = "0s"/after = "1s"/' "$tmp/on.lua"
run on >"$tmp/said" 2>&1
is "a condition that holds after a while ends the run with 3 as well" $? 3
check "its reason" grep -qE '^abort_if: [0-9]+ bytes less$' <<<"$(reason on)"
is "the control is measured, the aborted cell is not tried again" "$(outcomes on | tr ' ' '\n' | sort | xargs)" "aborted confirmed"
check "the run says which and what to do" grep -q '1 cells have no confirmed attempt, 1 of them aborted; .*resume --retry-aborted' "$tmp/said"
check "the table counts it" bash -c "'$culprit' table '$tmp/on' 2>&1 | tr -s ' \n' ' ' | grep -q '0 attempts invalid, 0 in error, 1 aborted'"
check "so does status, which has the reason" bash -c "'$culprit' status '$tmp/on' | grep -qE '1 aborted|attempt 1 aborted: abort_if'"
is "and status --json" "$("$culprit" status --json "$tmp/on" | tr -d ' \n\t' | grep -oE '"aborted":1')" '"aborted":1'
timeout 100 "$culprit" resume "$tmp/on" >"$tmp/said" 2>&1
is "to resume runs it no more" "$? $(sql on "SELECT count(*) FROM attempt")" "3 2"
check "... and says so" grep -q '1 cells were aborted, and stay so: --retry-aborted' "$tmp/said"
timeout 100 "$culprit" resume --quiet --retry-aborted "$tmp/on" >"$tmp/said" 2>&1
is "unless it is asked to" "$? $(sql on "SELECT count(*) FROM attempt WHERE outcome = 'aborted'")" "3 2"

# Or it stops.
scenario off 'return true' 'on_abort = "stop",'
run off --only fault=mark --repeats 2 >"$tmp/said" 2>&1
is "on_abort = stop: the run ends" "$? $(outcomes off)" "3 aborted"
check "... and says why" grep -q "was aborted (on_abort = \"stop\"): abort_if: it returned true.*culprit resume" "$tmp/said"

# A condition that cannot be asked counts as one that holds.
scenario wrong 'return ctx.nothing.at_all'
mark wrong
check "an error in it aborts" quickly wrong
check "... with its file and line" grep -qE '^abort_if: .*wrong.lua:5: .*nil value' <<<"$(reason wrong)"
scenario typo 'return now.free_byte'
mark typo
check "so does a field that there is not" grep -q "typo.lua:5: there is no 'free_byte'" <<<"$(reason typo)"
scenario loop 'while true do end'
mark loop
check "one that does not end aborts" quickly loop
check "... after a second of processor time" grep -qE 'loop.lua:5: the call used up its 1.0 s' <<<"$(reason loop)"
scenario slow 'ctx.victim:run { argv = { "sleep", "50" }, timeout_s = 60 }'
mark slow
check "one that waits for a node aborts" quickly slow
check "... after five seconds" grep -qE 'slow.lua:5: s[1-3]: run: .*(5|4.9)[0-9.]* s' <<<"$(reason slow)"
check "nothing of the fault is left" [ -z "$(grown)" ]

# Bad input.
scenario bad ''
sed -i 's/abort_if = .*/on_abort = "stop" }/; /on_abort/q' "$tmp/bad.lua"
exits "on_abort without a condition" 2 'bad.lua:[0-9]*: .*on_abort needs abort_if' run bad
scenario bad '' 'on_abort = "halt",'
exits "another word" 2 'bad.lua:[0-9]*: .*"continue" or "stop", not "halt"' run bad
check "the lab is as it was" down
check "nothing is left" clean
done_testing
