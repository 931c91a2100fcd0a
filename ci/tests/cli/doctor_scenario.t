#!/bin/bash
# 'culprit doctor SCENARIO' loads all files of a scenario without a node, and names the first mistake of each with file and line.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
says() { grep -qF -- "$1" said || { cat said; false; }; }
says_in_a_table() { # which wraps it
	tr -s "\n " " " <said | grep -qF -- "$1" || { cat said; false; }
}
doctor() { # CODE ARGUMENTS...: it ends with CODE; what it says is in 'said'
	"$culprit" doctor "${@:2}" >said 2>&1
	local code=$?
	[ $code = "$1" ] || { echo "exit code $code"; cat said; false; }
}
fault() { echo "return { summary = 'x', resource = 'disk', inject = function(ctx) end, $2 verify = function() return true end }" >"$1.lua"; }
echo "return { summary = '', command = function() return { argv = { 'true' } } end }" >load.lua
fault mine ''
cp mine.lua other.lua
"$culprit" new detector judge >/dev/null
cat >x.lua <<'L'
return { name = "x", workloads = { "./load.lua" }, faults = { "none", "./mine.lua", "./other.lua" },
         detectors = { "./judge.lua", "peer-threshold" } }
L
cat >fs.lua <<'L'
return { summary = "mine" }
L
cat >hosts.lua <<'L'
return { file_system = { type = "./fs.lua" }, nodes = {
  { name = "s1", role = "server", address = "192.0.2.1", storage = "/b", service_port = 1 },
  { name = "c1", role = "client", address = "192.0.2.4", mount = "/m" } } }
L

"$culprit" doctor x.lua >said 2>&1
check "a scenario without a mistake is loaded, with its files" says_in_a_table "'x.lua' and its files can be loaded: 1 workloads, 3 faults, 2 detectors"
fault mine $'\nverfy_s = 3,'
echo "return { summary = ''" >load.lua
printf 'local x = 1\n)\n' >judge.lua
check "mistakes in files of the scenario end with 2" doctor 2 x.lua
check "the workload's is named with its line" says "load.lua:2:"
check "the fault's too" says "mine.lua:2: "
check "the detector's too" says "judge.lua:2:"
check "each once, and nothing of files without one" [ "$(wc -l <said)" = 3 ]
sed -i 's/name = "x"/nam = "x"/' x.lua
check "a mistake in the scenario itself hides none of its files'" doctor 2 x.lua
check "it is named, too" says "x.lua:1: "
check "once" [ "$(wc -l <said)" = 4 ]
check "a mistake in the file system's file is found with the inventory" doctor 2 --inventory hosts.lua x.lua
check "it is named" says "fs.lua"
echo 'return {' >x.lua
check "of a scenario that is no Lua, this is all" doctor 2 x.lua
check "said in one line" [ "$(wc -l <said)" = 1 ]
done_testing
