#!/bin/bash
# The Lua API's manual (harness/lua/culprit.meta.lua) lists exactly the keys that files may have. The
# program's keys are read from its own error message about an unknown key.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
meta=$PWD/harness/lua/culprit.meta.lua
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
zcat ci/tests/data/lab-none.s1.fs.log.gz >"$tmp/log"
cd "$tmp" || exit 1
cat >inventory.lua <<'L'
return { file_system = { type = "glusterfs" }, nodes = {
  { name = "s1", role = "server", address = "192.0.2.1", storage = "/b", service_port = 1 },
  { name = "c1", role = "client", address = "192.0.2.4", mount = "/m" } } }
L

documented() { # CLASS: its fields in the manual
	awk -v c="$1" '$1 == "---@class" { on = $2 == "culprit." c } on && $1 == "---@field" { sub(/\?$/, "", $2); print $2 }' "$meta" | sort
}
taken() { # the list in the complaint
	"$culprit" run --inventory inventory.lua --dry-run scenario.lua 2>&1 |
		sed -n "s/.*unknown key 'zzzzqqqq_'; there are //p" | tr -d ' ' | tr ',' '\n' | sort
}
same() { # CLASS
	local said
	if said=$(diff <(documented "$1") <(taken)) && [ -n "$(taken)" ]; then ok "$1"; else not_ok "$1" "$said"; fi
}

# A file system, and how its servers start on an empty storage.
echo 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" }, faults = { "none" } }' >scenario.lua
sed "s|\"glusterfs\"|\"$PWD/fs.lua\"|" inventory.lua >fs-inventory.lua
cp inventory.lua plain-inventory.lua
mv fs-inventory.lua inventory.lua
echo 'return { zzzzqqqq_ = 1 }' >fs.lua
same FileSystem
echo 'local none = function() return {} end
return { summary = "", server_pids = none, client_pids = none, lost_errnos = {}, empty_storage = { zzzzqqqq_ = 1 } }' >fs.lua
same EmptyStorage
mv plain-inventory.lua inventory.lua

rest='name = "x", workloads = { "ddw" }, detectors = { "always-healthy" }'
echo "return { $rest, faults = { 'none' }, zzzzqqqq_ = 1 }" >scenario.lua
same Scenario
echo "return { $rest, faults = { 'none' }, phases = { zzzzqqqq_ = 1 } }" >scenario.lua
same Phases
echo "return { $rest, faults = { 'none' }, training = { zzzzqqqq_ = 1 } }" >scenario.lua
same Training
echo "return { $rest, faults = { 'none' }, gates = { zzzzqqqq_ = 1 } }" >scenario.lua
same Gates
echo "return { $rest, faults = { 'none' }, recorder = { 'ebpf', zzzzqqqq_ = 1 } }" >scenario.lua
same Recorder
echo "return { $rest, faults = { 'none' }, recorder = { 'ebpf', write = { zzzzqqqq_ = 1 } } }" >scenario.lua
same RecorderWrite
echo "return { $rest, faults = { './f.lua' } }" >scenario.lua
echo 'return { zzzzqqqq_ = 1 }' >f.lua
same Fault
echo 'return { summary = "", resource = "", inject = function() end, verify = function() end, params = { p = { zzzzqqqq_ = 1 } } }' >f.lua
same Param
echo 'return { name = "x", workloads = { "./w.lua" }, detectors = { "always-healthy" }, faults = { "none" } }' >scenario.lua
echo 'return { zzzzqqqq_ = 1 }' >w.lua
same Workload

echo 'return { zzzzqqqq_ = 1 }' >trigger.lua
taken() { # the same, of a trigger
	"$culprit" trace --inventory inventory.lua --ring 2s --trigger trigger.lua -o out 2>&1 |
		sed -n "s/.*unknown key 'zzzzqqqq_'; there are //p" | tr -d ' ' | tr ',' '\n' | sort
}
same Trigger
taken() { # the same, of a finding
	"$culprit" findings --finding ./trigger.lua log 2>&1 |
		sed -n "s/.*unknown key 'zzzzqqqq_'; there are //p" | tr -d ' ' | tr ',' '\n' | sort
}
same Finding

# The prelude has exactly the functions and fields that the manual names, and nothing else can be required.
echo 'local names = {} for name in pairs(require "culprit") do names[#names + 1] = name end
table.sort(names) error("prelude: " .. table.concat(names, " "), 0)' >scenario.lua
prelude=$("$culprit" run --inventory inventory.lua --dry-run scenario.lua 2>&1 | sed -n 's/.*prelude: //p')
manual=$({ sed -n 's/^function Prelude\.\([a-z_]*\)(.*/\1/p' "$meta"; documented Prelude; } | sort | xargs)
check "the prelude: $prelude" [ -n "$prelude" ] && check "is in the manual" [ "$prelude" = "$manual" ]
echo 'return require "os"' >scenario.lua
check "no other module" bash -c "'$culprit' run --inventory inventory.lua --dry-run scenario.lua 2>&1 | grep -q \"scenario.lua:1: no module 'os'\""
done_testing
