#!/bin/bash
# Templates load unchanged. (Tests on the lab show that they work.)
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
readme=$PWD/README.md
own=$PWD/scenarios
corpus=$PWD/results/corpora/ci
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

# Templates take the name that was given.
"$culprit" new scenario night >said
check "new scenario says how to try it" grep -q 'culprit run night.lua --dry-run' said
check "... and it has a plan" bash -c "'$culprit' run --inventory inventory.lua --dry-run night.lua | grep -q '^scenario night, .* 12 cells'"
check "the detector has its name" bash -c "'$culprit' run --inventory inventory.lua --dry-run --json scenario.lua >plan && grep -q 'name *= \"my-detector\"' my-detector.lua"
"$culprit" new detector far-off >/dev/null
check "... whichever it is" grep -q '^	name *= "far-off",$' far-off.lua
no_other_name() { [ -s night.lua ] && [ -z "$(grep -n 'my-[a-z]*' night.lua | grep -v 'my-hosts\|my-fault')" ] && lacks my-detector far-off.lua; }
check "no template holds another's name" no_other_name

# The detector works where its first lines say.
for s in a b c d; do for t in $(seq 30); do echo "$t,$s,5"; done; done | sed 's/^\([0-9]*\),c,5/\1,c,25/' | { echo time,server,latency_ms; cat; } >series.csv
check "it finds the slow one in a CSV" bash -c "'$culprit' diagnose --csv series.csv --detector ./far-off.lua | grep -q 'far-off: c\b'"
sed -i 's/,25$/,5/' series.csv
check "... and nobody where none is slow" bash -c "'$culprit' diagnose --csv series.csv --detector ./far-off.lua | grep -q 'far-off: healthy'"
check "the template's detector names the hogged server of a recorded cell" bash -c "'$culprit' diagnose '$corpus' --cell 5 --detector ./far-off.lua | grep -qx '  far-off: s2'"
# The corpus and the template are fixed, so is the score: 12 of 20 faulty cells, 7 of them rightly; 1 of 8 controls accused.
check "the template's detector has its score on a recorded run" bash -c "'$culprit' rescore '$corpus' --detector ./far-off.lua |
	grep -qx 'far-off  *0\.60 \[[^]]*\]  *0\.35 \[[^]]*\]  *0\.50 \[[^]]*\]  *0\.12 \[[^]]*\]'"

# culprit's own scenarios, by name.
check "list scenarios has each, with its summary" [ "$("$culprit" list scenarios | sed -n 's/^  \([a-z][a-z0-9-]*\) .*/\1.lua/p' | sort | xargs)" = \
	"$(cd "$own" && printf '%s\n' *.lua | sort | xargs)" ]
check "... as JSON" bash -c "'$culprit' list scenarios --json | perl -MJSON::PP -0777 -ne '
	my (\$quick) = grep { \$_->{name} eq \"quick\" } @{ decode_json(\$_)->{scenarios} };
	exit !(@{ \$quick->{workloads} } == 2 && @{ \$quick->{faults} } == 3 && -e \$quick->{path})'"
check "run takes the name" bash -c "diff <('$culprit' run quick --seed 1 --inventory inventory.lua --dry-run) <('$culprit' run '$own/quick.lua' --seed 1 --inventory inventory.lua --dry-run)"
check "doctor takes it" bash -c "'$culprit' doctor quick --json | grep -q '\"checks\"'"
said=$("$culprit" run quik --dry-run 2>&1)
check "an unknown name is refused with the nearest" [ "$? $said" = "2 culprit run: there is no scenario 'quik'; did you mean 'quick'?" ]
cp "$own/ci.lua" quick
check "a file of that name is a file" bash -c "'$culprit' run quick --inventory inventory.lua --dry-run | grep -q '^scenario ci,'"
check "list detectors shows parameters, with defaults and limits" bash -c "'$culprit' list detectors | grep -q 'hold = 2: seconds in a row'"
check "... as JSON, as they are declared" bash -c "'$culprit' list detectors --json | perl -MJSON::PP -0777 -ne '
	my (\$d) = grep { \$_->{name} eq \"peer-threshold\" } @{ decode_json(\$_)->{detectors} };
	exit !(\$d->{params}{window} == 10 && \$d->{declared}{window}{default} == 10 && \$d->{declared}{window}{help} =~ /median/)'"

# A file system of one's own: the template loads, is listed, and an inventory elsewhere names it by its path.
said=$("$culprit" new file-system my-fs)
check "new file-system says how to try it" grep -q 'culprit lab up --fs ./my-fs.lua' <<<"$said"
check "it is listed with its programs, and where they are" bash -c "'$culprit' list file-systems ./my-fs.lua | grep -Eq 'sshfs: (/|not here; apt-get install sshfs)'"
check "as JSON, too" bash -c "'$culprit' list file-systems my-fs.lua --json | perl -MJSON::PP -0777 -ne '
	my (\$fs) = @{ decode_json(\$_)->{\"file-systems\"} };
	exit !(\$fs->{lab}{layouts}[0]{name} eq \"random\" && @{ \$fs->{lab}{programs} } == 4 && @{ \$fs->{functions} } == 5)'"
check "all of culprit's own are listed" bash -c "'$culprit' list file-systems | grep -q '^  glusterfs ' && '$culprit' list | grep -q '^  orangefs '"
mkdir elsewhere && sed 's|type = "glusterfs"|type = "../my-fs.lua"|' inventory.lua >elsewhere/own.lua
echo 'return { name = "own", workloads = { "ddw" }, faults = { "none" }, detectors = { "always-same" } }' >scenario.lua
check "an inventory names it by a path relative to itself" "$culprit" run --inventory elsewhere/own.lua --dry-run scenario.lua
sed -i 's|my-fs|your-fs|' elsewhere/own.lua
said=$("$culprit" run --inventory elsewhere/own.lua --dry-run scenario.lua 2>&1)
check "a path that leads nowhere is named with file and line" bash -c '[ $1 = 2 ] && grep -q "own.lua:1: cannot read the file system .../your-fs.lua.: No such file" <<<"$2"' - $? "$said"
echo 'return { summary = "x", server_pids = function() end, client_pids = function() end, lost_errnos = {}, prob = 1 }' >wrong.lua
said=$("$culprit" list file-systems ./wrong.lua 2>&1)
check "so is a key that there is not, with the nearest" grep -q "wrong.lua:1: .*'prob'; did you mean 'probe'" <<<"$said"
said=$("$culprit" list faults kill 2>&1)
check "other kinds are not listed by name" [ "$?" = 2 ]

# The README's inventory, scenario and fault, in this order, are what the program takes.
awk '/^```lua$/ { on = 1; n++; next } /^```$/ { on = 0 } on { print > ("readme" n ".lua") }' "$readme"
cp readme2.lua scenario.lua
cp readme3.lua runaway-log.lua
check "README's scenario, with its fault" plan
check "... which is in the plan" bash -c "'$culprit' run --inventory inventory.lua --dry-run scenario.lua | grep -q runaway-log"
cp readme1.lua inventory.lua
check "README's inventory" plan
done_testing
