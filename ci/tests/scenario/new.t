#!/bin/bash
# Templates load unchanged. (Tests on the lab show that they work.)
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
readme=$PWD/README.md
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
cat >inventory.lua <<'L'
return { file_system = { type = "glusterfs" }, nodes = {
  { name = "s1", role = "server", address = "192.0.2.1", storage = "/b", service_port = 1 },
  { name = "s2", role = "server", address = "192.0.2.2", storage = "/b", service_port = 1 },
  { name = "c1", role = "client", address = "192.0.2.4", mount = "/m" } } }
L
plan() { "$culprit" run --inventory inventory.lua --dry-run scenario.lua; }

for kind in fault workload detector; do check "new $kind" "$culprit" new $kind my-$kind; done
echo 'return { name = "own", workloads = { "./my-workload.lua" }, faults = { "none", { "./my-fault.lua", block = "4MiB" } },
	detectors = { "./my-detector.lua" } }' >scenario.lua
check "together they make a valid scenario" plan
check "the plan names the fault by its file, and the parameter" bash -c \
	"'$culprit' run --inventory inventory.lua --dry-run scenario.lua | grep -q 'my-fault(block=4 MiB)'"
said=$("$culprit" new fault my-fault 2>&1)
check "an existing file is not overwritten" [ "$? $said" = "2 culprit new: 'my-fault.lua' is there already" ]
said=$("$culprit" new fault ../x 2>&1)
check "a name with a slash is refused" [ $? -eq 2 ]

# The README's scenario and fault are what the program takes.
awk '/^```lua$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print > ("readme" n ".lua") }' "$readme"
cp readme1.lua scenario.lua
check "README's scenario" plan
cp readme2.lua runaway-log.lua
echo 'return { name = "own", workloads = { "ddw" }, faults = { "none", "./runaway-log.lua" }, detectors = { "always-same" } }' >scenario.lua
check "README's fault" plan
cp inventory.lua old.lua
cp readme3.lua inventory.lua
echo 'return { name = "own", workloads = { "ddw" }, faults = { "none" }, detectors = { "always-same" } }' >scenario.lua
check "README's inventory" plan
done_testing
