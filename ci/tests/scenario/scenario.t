#!/bin/bash
# A wrong scenario, inventory or command line is one message with file and line, exit code 2, and no
# node is contacted: the inventory names hosts that do not exist.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

cat >inventory.lua <<'L'
return {
  file_system = { type = "glusterfs" },
  nodes = {
    { name = "s1", role = "server", address = "192.0.2.1", host_key = "ssh-ed25519 AAAA", storage = "/b", service_port = 24007 },
    { name = "s2", role = "server", address = "192.0.2.2", host_key = "ssh-ed25519 AAAA", storage = "/b", service_port = 24007 },
    { name = "s3", role = "server", address = "192.0.2.3", host_key = "ssh-ed25519 AAAA", storage = "/b", service_port = 24007 },
    { name = "c1", role = "client", address = "192.0.2.4", host_key = "ssh-ed25519 AAAA", mount = "/m" },
  },
}
L
good='name = "x", workloads = { "ddw" }, faults = { "none", "disk-hog" }, detectors = { "always-healthy" }'

# refuses NAME PATTERN [OPTION ...]: with scenario.lua as it stands, exit 2, one line, that says PATTERN.
refuses() {
	local name=$1 pattern=$2 said code
	shift 2
	said=$(timeout 120 "$culprit" run --inventory inventory.lua --dry-run "$@" scenario.lua 2>&1)
	code=$?
	if [ $code -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -qE -- "$pattern" <<<"$said"; then
		ok "$name"
	else
		not_ok "$name" "exit $code: $said"
	fi
}
scenario() { printf '%s\n' "$@" >scenario.lua; }

scenario 'return {' '  nam = "x",' '}'
refuses "an unknown key, with the near match" "scenario.lua:2: scenario: unknown key 'nam'; did you mean 'name'\?"
scenario 'return {' '  name = "x",' '  workloads = { "ddx" }, faults = { "none" }, detectors = { "always-healthy" } }'
refuses "an unknown workload" "scenario.lua:3: there is no workload 'ddx'; did you mean 'dd[rw]'\?"
scenario 'return { name = "x", workloads = { "ddw" },' 'faults = { "disk-hgo" },' 'detectors = { "always-healthy" } }'
refuses "an unknown fault" "scenario.lua:2: there is no fault 'disk-hgo'; did you mean 'disk-hog'\?"
scenario 'return { name = "x", workloads = { "ddw" }, faults = { "none" },' 'detectors = { "peer-treshold" } }'
refuses "an unknown detector" "peer-threshold"
scenario "return { $good," 'phases = { fault = "20x" } }'
refuses "a bad unit" "scenario.lua:2: phases: 'fault': '20x' has the unknown unit 'x'; write it like 10s"
scenario "return { $good," 'phases = { fault = 20 } }'
refuses "a missing unit" "scenario.lua:2: phases: 'fault': '20' has no unit"
scenario "return { $good," 'phases = { fault = "0s" } }'
refuses "a phase out of range" "scenario.lua:2: phases: 'fault' must be between 1 s and"
scenario "return { $good," 'repeats = 1.5 }'
refuses "a fractional number of repeats" "scenario.lua:2: scenario: 'repeats' must be a whole number"
scenario 'return { name = "x", workloads = { "ddw" }, faults = { "disk-hog" }, detectors = { "always-healthy" },' 'controls = 3 }'
refuses "controls without a control" "scenario.lua:2: 'controls' says how often, but \"none\" is not among the 'faults'"
scenario "return { $good," 'repeats = "two" }'
refuses "a wrong type" "scenario.lua:2: scenario: 'repeats' must be a number, not a string"
scenario 'return {' '  name = "x"' '  workloads = {} }'
refuses "a syntax error" "scenario.lua:3: "
scenario 'local t = nil' 'return { name = t.x }'
refuses "a runtime error" "scenario.lua:2: attempt to index a nil value"
scenario 'return 5'
refuses "a file that returns no table" "scenario.lua: the file must return a table"
scenario 'os.exit(0)'
refuses "the os library is not available" "scenario.lua:1: attempt to index a nil value \(global 'os'\)"
scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' \
	'faults = { { "receive-pktloss", loss = "500%" } } }'
refuses "a strength out of range" "scenario.lua:2: fault 'receive-pktloss': 'loss' must be between 0.01% and 100%"
# slow_link NAME PATTERN FAULT
slow_link() {
	scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' "faults = { { $3 } } }"
	refuses "$1" "scenario.lua:2: fault $2"
}
slow_link "a jitter above the latency" "'net-delay': 'jitter' must be at most 'latency'" '"net-delay", latency = "5ms", jitter = "20ms"'
slow_link "a latency that ends connections" "'net-delay': 'latency' must be between 1 ms and 2 s" '"net-delay", latency = "1min"'
slow_link "a rate that is too low" "'net-rate': 'rate' must be between 64 kB/s and" '"net-rate", rate = "9600bit/s"'
slow_link "a direction that is none" "'net-rate': 'direction' must be one of both.in.out, not 'up'" '"net-rate", direction = "up"'
scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' \
	'faults = { { "receive-pktloss", los = "5%" } } }'
refuses "an unknown parameter" "scenario.lua:2: .*unknown key 'los'; did you mean 'loss'\?"
scenario "return { $good," 'training = { workloads = { "ddx" } } }'
refuses "training on an unknown workload" "scenario.lua:2: there is no workload 'ddx'"
scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' \
	'faults = { { "disk-hog", workloads = { "ddr" } } } }'
refuses "a fault under a workload that is not run" "scenario.lua:2: fault 'disk-hog': 'ddr' is not among"
scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' \
	'faults = { { "disk-hog", victims = 3 } } }'
refuses "as many victims as servers" "fault 'disk-hog' has 3 victims of 3 servers"
scenario 'return { name = "x", workloads = { "ddw" }, faults = { "disk-hog", "disk-hog" }, detectors = { "always-healthy" } }'
refuses "a fault listed twice" "stands twice"
scenario "return { $good," 'tracer = "magic" }'
refuses "an unknown tracer" "scenario.lua:2: there is no tracer 'magic'"
scenario "return { $good," 'tracer = { "ebpf", mode = "flows" } }'
refuses "an unknown mode" "scenario.lua:2: tracer 'ebpf' has no mode 'flows': ebpf has sums, events and flow"
scenario "return { $good," 'tracer = { "ptrace", mode = "flow" } }'
refuses "a mode that the tracer does not have" "scenario.lua:2: tracer 'ptrace' has no mode 'flow'"
scenario "return { $good," 'tracer = { "ebpf", mode = "events", heads = true } }'
refuses "heads of what has none" "scenario.lua:2: tracer 'ebpf': heads need mode = \"flow\""
# The flight recorder. recorder NAME PATTERN TABLE: a scenario with it is refused.
recorder() {
	scenario "return { $good," "recorder = $3 }"
	refuses "a flight recorder: $1" "$2"
}
recorder "that is a name" "scenario.lua:2: a recorder is a table" '"ebpf"'
recorder "of a tracer that keeps no ring" "scenario.lua:2: recorder: .*\"ebpf\": no other" '{ "ptrace", write = { at_end = true } }'
recorder "without a tracer" "scenario.lua:2: recorder: .*\"ebpf\"" '{ write = { at_end = true } }'
recorder "with an unknown key" "scenario.lua:2: recorder: unknown key 'rign'; did you mean 'ring'" '{ "ebpf", rign = "30s" }'
recorder "of sums" "scenario.lua:2: recorder: its mode is .* not 'sums'" '{ "ebpf", mode = "sums" }'
recorder "of heads without flows" "scenario.lua:2: recorder: heads need mode" '{ "ebpf", mode = "events", heads = true, write = { at_end = true } }'
recorder "with a ring that is too short" "scenario.lua:2: recorder: 'ring' must be between 2 s and" '{ "ebpf", ring = "1s", write = { at_end = true } }'
recorder "that nothing has written" "scenario.lua:2: recorder: nothing has it written" '{ "ebpf", write = {} }'
recorder "with an unknown moment" "scenario.lua:2: recorder: write: unknown key 'at_onset'; did you mean 'at_offset'" '{ "ebpf", write = { at_onset = true } }'
recorder "that is written after the cell's end" "scenario.lua:2: recorder: 'after_onset' is 40 s, but a cell ends 40 s after" '{ "ebpf", write = { after_onset = "40s" } }'
recorder "with a trigger that is not there" "scenario.lua:2: recorder: trigger: .*no.lua" '{ "ebpf", trigger = "no.lua" }'
printf 'return {\n  when = 5,\n}\n' >when.lua
recorder "with a wrong trigger, reported with its own file" "when.lua:2: trigger: 'when' must be a function" '{ "ebpf", trigger = "when.lua" }'
scenario "return { $good, tracer = { \"ebpf\", mode = \"flow\" }," 'recorder = { "ebpf", write = { at_end = true } } }'
refuses "a flight recorder of what is recorded already" "scenario.lua:2: recorder: tracer 'ebpf\(mode=flow\)' records all of it already"
scenario 'return { name = "x", measure = "runtime", workloads = { "ddw" }, tracers = { "none" },' 'recorder = { "ebpf", write = { at_end = true } } }'
refuses "a flight recorder where run times are measured" "scenario.lua:2: a scenario that measures run times has no 'recorder'"

scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" }, faults = { "./mine.lua" } }'
refuses "a missing fault file" "cannot read the fault './mine.lua'"
printf 'return {\n  summary = "s", resource = "r",\n  inject = 5,\n}\n' >mine.lua
refuses "an invalid fault, reported with its own file" "mine.lua:3: fault: 'inject' must be a function"
printf 'return { summary = "s", resource = "r", inject = function() end, verify = function() end,\nparams = { p = { default = "5", unit = "parsec", help = "" } } }\n' >mine.lua
refuses "a parameter with an unknown unit" "mine.lua:2: parameter 'p': unknown unit 'parsec'"

scenario "return { $good }"
refuses "--only with an unknown key" "--only: 'colour' is not one of" --only colour=red
refuses "--only that fits no cell" "--only: no cell has workload=ddr" --only workload=ddr
refuses "a seed that is not a number" "--seed takes a whole number" --seed abc
refuses "a protected node that there is not" "--never: there is no node 's9' in the inventory 'inventory.lua'" --never s9
refuses "a plan that hits a protected node" "scenario.lua: cell [0-9]+ \(ddw x disk-hog\) would hit 's2', which --never excludes: .*--seed" \
	--repeats 30 --never c1 --never s2
check "a plan that does not" "$culprit" run --inventory inventory.lua --dry-run --seed 1 --never c1 scenario.lua
scenario 'return { name = "x", workloads = { "ddw" }, detectors = { "always-healthy" },' \
	'faults = { "cpu-hog", "none",' '{ "disk-hog", victims = 2 } } }'
refuses "more victims than are allowed" \
	"scenario.lua:3: fault 'disk-hog' has 2 victims at once, more than --max-victims 1: lower its 'victims', or .*--only" --max-victims 1
check "unless their cells are left out" "$culprit" run --inventory inventory.lua --dry-run --max-victims 1 --only fault=cpu-hog scenario.lua
check "or as many are allowed" "$culprit" run --inventory inventory.lua --dry-run --max-victims 2 scenario.lua
doctor() { "$culprit" doctor --max-victims 1 scenario.lua >answer 2>&1; [ $? = 2 ] && grep -q "scenario.lua:3: fault 'disk-hog' has 2 victims" answer; }
check "doctor rejects them, too" doctor
scenario "return { $good }"
cp inventory.lua good.lua
sed -i 's/role = "client"/role = "cleint"/' inventory.lua
refuses "a wrong inventory" "inventory.lua:7: node 'c1': unknown role 'cleint'; did you mean 'client'\?"
sed 's/name = "s2"/name = "s1"/' good.lua >inventory.lua
refuses "two nodes of one name" "inventory.lua:4: two nodes are named 's1'"
grep -v 'name = "c1"' good.lua >inventory.lua
refuses "an inventory without a client" "needs at least one server and one client"
rm inventory.lua
refuses "a missing inventory" "inventory.lua"
cp good.lua inventory.lua

plan() { "$culprit" run --inventory inventory.lua --dry-run --json "$@" scenario.lua; }
scenario "return { $good, repeats = 3 }"
check "one seed gives one plan" cmp <(plan --seed 7) <(plan --seed 7)
if cmp -s <(plan --seed 7) <(plan --seed 8); then not_ok "another seed, another plan"; else ok "another seed, another plan"; fi
scenario "return { $good, repeats = 3," 'tracer = { "ebpf", mode = "flow", heads = true } }'
check "a log of flows may be asked for" plan --seed 7
printf 'return { when = function(now) end }\n' >when.lua
scenario "return { $good, repeats = 3," 'recorder = { "ebpf", heads = true, ring = "20s", write = { after_onset = "5s", at_offset = true, at_end = true },' \
	'trigger = "when.lua" } }'
check "a flight recorder may be asked for" plan --seed 7
scenario "return { $good, repeats = 3 }"
before=$(plan --seed 7 | grep -A6 '"cell": 4,' | sort)
after=$(plan --seed 7 --only cell=4 | grep -A6 '"cell": 4,' | sort)
check "--only changes no cell" [ "$before" = "$after" ]
scenario 'return { name = "x", workloads = { "ddw", "ddr" }, detectors = { "always-healthy" }, repeats = 20,' \
	'faults = { "none", { "disk-hog", workloads = { "ddr" }, victims = 2 } } }'
check "a fault runs under its own workloads only, on as many victims" \
	[ "$("$culprit" run --inventory inventory.lua --dry-run scenario.lua | grep disk-hog | grep -c 'ddr .* s.+s.')" = 20 ]
check "a dry run creates no files" [ ! -e runs ]

# What the file system's own file says of faults is known before any host is asked.
file_system() { # FIELDS
	echo "local no = function() return {} end return { summary = '', server_pids = no, client_pids = no, lost_errnos = {}, $1 }" >fs.lua
	sed "s|\"glusterfs\"|\"$PWD/fs.lua\"|" good.lua >inventory.lua
}
same() { if [ "$(skipped)" = "$2" ]; then ok "$1"; else not_ok "$1" "$(skipped)"; fi; } # NAME, what is skipped
skipped() { "$culprit" run --inventory inventory.lua --dry-run scenario.lua | grep '^skipped' | tr '\n' ';'; }
scenario 'return { name = "x", workloads = { "ddw" }, faults = { "kill", "err-space", "err-remount", "./mine.lua" },' \
	'detectors = { "always-healthy" } }'
echo 'return { summary = "s", resource = "r", inject = function() end, verify = function() end }' >mine.lua
file_system 'cannot = { kill = "it never ends", ["mine.lua"] = "not mine" }'
same "faults that it cannot bear" "skipped: fault kill: fs: it never ends;skipped: fault mine: fs: not mine;"
check "in JSON, too" eval 'plan | tr -d " \n" | grep -q "\"skipped\":\[{\"fault\":\"kill\",\"reason\":\"fs:itneverends\"}"'
file_system 'empty_storage = "no journal"'
same "a storage that cannot be empty" "skipped: fault err-space: fs: a server cannot start on an empty storage: no journal;"
file_system 'storage = "device"'
check "a storage that is a device" eval '[ "$(skipped | grep -o "fault err-[a-z]*: fs: its servers keep their data on raw devices" | wc -l)" = 2 ]'
file_system 'cannot = { kil = "x" }'
refuses "a fault that does not exist" "fs.lua:1: .*did you mean 'kill'\?"
cp good.lua inventory.lua
echo 'return { summary = "s", resource = "r", storage = "fodler", inject = function() end, verify = function() end }' >mine.lua
refuses "a fault that needs an unknown kind of storage" "mine.lua:1: fault 'mine': 'storage' must be \"folder\" or \"empty\""
done_testing
