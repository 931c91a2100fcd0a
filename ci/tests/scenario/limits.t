#!/bin/bash
# No Lua file can hang the program or take all memory: each ends with exit code 2 and a message that names the file and the
# line, also if the loop is inside a C function of Lua's library.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
corpus=$PWD/results/corpora/ci
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export CULPRIT_LUA_SECONDS=0.3
scenario() { echo "return { name = 'x', workloads = { '${1:-ddw}' }, faults = { 'none', '${2:-disk-hog}' }, detectors = { '${3:-always-same}' } }" >scenario.lua; }
inventory() {
	cat >inventory.lua <<-'L'
		return { file_system = { type = "glusterfs" }, nodes = {
		  { name = "s1", role = "server", address = "192.0.2.1", storage = "/b", service_port = 1 },
		  { name = "s2", role = "server", address = "192.0.2.2", storage = "/b", service_port = 1 },
		  { name = "c1", role = "client", address = "192.0.2.4", mount = "/m" } } }
	L
}

# The second line of a file, and what is said of it.
ways=(
	'while true do end|:2: the call used up its 0.3 s of processor time'
	'pcall(function() while true do end end)|:2: the call used up its 0.3 s of processor time'
	'local n = (("a"):rep(50)):find(("a*"):rep(40) .. "b")|:2: .find. does not return: stopped after 1.3 s'
	'local s = ("x"):rep(1e9)|:2: the call used up its 512 MiB of memory'
	'local s = ("x"):rep(1e10)|:2: resulting string too large'
	'local t = {} for i = 1, 1e12 do t[i] = i end|:2: the call used up its 512 MiB of memory'
)
# What is to reach the memory's limit has time to do so on a busy machine.
seconds() { [[ $1 == *memory ]] && echo 60 || echo 0.3; }
# ends FILE COMMAND...: for each way, FILE begins with it, and COMMAND ends with 2 and one line about it.
ends() {
	local file=$1 way said code
	shift
	for way in "${ways[@]}"; do
		printf -- '-- x\n%s\nreturn {}\n' "${way%%|*}" >"$file"
		said=$(CULPRIT_LUA_SECONDS=$(seconds "$way") timeout 300 "$@" 2>&1)
		code=$?
		[ $code -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -q "$file${way#*|}" <<<"$said" && continue
		echo "exit $code: $said"
		return 1
	done
}
plan=("$culprit" run --inventory inventory.lua --dry-run scenario.lua)
inventory
check "a scenario" ends scenario.lua "${plan[@]}"
scenario
check "an inventory" ends inventory.lua "${plan[@]}"
check "an inventory, to doctor" ends inventory.lua "$culprit" doctor --inventory inventory.lua
inventory
scenario ddw ./fault.lua
check "a fault" ends fault.lua "${plan[@]}"
scenario ./workload.lua
check "a workload" ends workload.lua "${plan[@]}"
check "a detector while it is loaded" ends detector.lua "$culprit" rescore "$corpus" --detector ./detector.lua

# culprit's own files, as list reads them.
mkdir home
for part in faults workloads diag harness scenarios results; do cp -r "$OLDPWD/$part" home/; done 2>/dev/null
cd home || exit 1
printf '#!/bin/sh\nCULPRIT_HOME=%s exec %s list "$1" >/dev/null\n' "$tmp/home" "$culprit" >list
chmod +x list
check "list faults" ends faults/zz.lua ./list faults
rm faults/zz.lua
check "list workloads" ends workloads/zz.lua ./list workloads
check "list detectors" ends diag/detectors/zz.lua ./list detectors
cd ..

# In a detector's call: the verdicts of the others are given, and the failed one says why.
for way in "${ways[@]}"; do
	printf 'return { name = "mine", summary = "s", diagnose = function(run)\n%s\nreturn {} end }\n' "${way%%|*}" >detector.lua
	CULPRIT_LUA_SECONDS=$(seconds "$way") "$culprit" diagnose "$corpus" --cell 5 --detector ./detector.lua --detector always-same >out 2>err
	code=$?
	check "in diagnose: ${way%%|*}" bash -c "[ $code -eq 2 ] && grep -q 'always-same: s' out && [ \$(wc -l <err) = 1 ] && grep -q 'detector.lua${way#*|}' err || { cat out err; false; }"
done

# Tables that share tables can expand to more values than memory holds.
{ echo 'local t = { 1, 2 }'; echo 'for _ = 1, 28 do t = { t, t } end'
	echo 'return { name = "mine", summary = "s", diagnose = function(run) return t end }'; } >detector.lua
check "an answer that is larger than memory" bash -c "timeout 300 '$culprit' diagnose '$corpus' --cell 5 --detector ./detector.lua 2>&1 | grep -q 'more than 4000000 values'"

# No name leads out of the run's folder, or onto a terminal.
named() { # NAME PATTERN
	printf 'return {\n  name = %s, workloads = { "ddw" }, faults = { "none" }, detectors = { "always-same" } }\n' "$1" >scenario.lua
	local said
	said=$("${plan[@]}" 2>&1)
	[ $? -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -q "scenario.lua:2: scenario name .*$2" <<<"$said" || { echo "$said"; return 1; }
}
check "a scenario's name cannot be a path" named '"../../etc"' "starts with '\.'"
check "nor has it a slash" named '"a/b"' "letters, digits"
check "it is not empty" named '""' "is empty"
check "it is one line" named '"a\nb"' 'letters, digits'
check "it has no escapes" named '"a\27[31mb"' 'letters, digits'
scenario ddw './not so.lua'
echo 'return { summary = "", resource = "r", inject = function() end, verify = function() end }' >'not so.lua'
check "a fault is named for its file" bash -c "timeout 300 ${plan[*]} 2>&1 | grep -q \"fault name 'not so' may hold\""
mkdir sub
echo 'return { name = "mine", summary = "s", diagnose = function() return {} end, events = true }' >sub/detector.lua
scenario ddw disk-hog ./detector.lua
mv scenario.lua sub
check "a detector's path is relative to the scenario" "$culprit" run --inventory inventory.lua --dry-run sub/scenario.lua
done_testing
