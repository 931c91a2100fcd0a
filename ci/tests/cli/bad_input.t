#!/bin/bash
# Bad input: one line that says which file, which line where there is one, and what to do; exit code 2, and nothing is lost.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
corpora=$PWD/results/corpora
scenarios=$PWD/scenarios
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
corpus=$tmp/ci
cp -r "$corpora/ci" "$corpus"

unpacked=$tmp/unpacked
mkdir "$unpacked"
gunzip -c "$corpora/ci/run.db.gz" >"$unpacked/run.db"

# refuses PATTERN COMMAND...: exit code 2, and one line that matches. What would wait for ever ends after the limit.
refuses() {
	local want=$1 said code
	shift
	said=$(timeout 120 "$culprit" "$@" 2>&1 >out </dev/null)
	code=$?
	[ $code -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && grep -q -- "$want" <<<"$said" || { echo "exit $code: $said"; return 1; }
}
detector() { printf 'return { name = "mine", summary = "s", diagnose = function(run)\n%b\nend }\n' "$1" >mine.lua; }
judge=(diagnose "$corpus" --cell 5 --detector)

# Verdicts.
for time in -5 1e18 26; do
	detector "return { { metric = 'any', indicted = { run.servers[1] },\n  time_s = $time } }"
	check "a verdict at $time s of 25 is refused" refuses "mine.lua:3: .*'time_s'.*outside of the run.*0 to 25" "${judge[@]}" ./mine.lua
done
detector "return { { metric = 'any', indicted = { run.servers[1] }, time_s = 25 } }"
check "one at its end is not" "$culprit" "${judge[@]}" ./mine.lua

# Of a program, and where nobody is indicted.
for time in -5 1e18; do
	printf '#!/bin/sh\necho "{\\"metric\\":\\"any\\",\\"indicted\\":[],\\"time_s\\":%s}"\n' $time >timed.sh
	chmod +x timed.sh
	if [ "$(id -u)" -eq 0 ] || unshare -Ur true 2>/dev/null; then
		check "a program's verdict at $time s is refused" refuses "timed.sh: .*'time_s' is .*outside of the run" "${judge[@]}" ./timed.sh
	else
		ok "a program's verdict at $time s # SKIP no namespaces to confine programs with"
	fi
done

# Errors that are no text.
for value in '{}' '' true print 'nil, 0'; do
	detector "error($value)"
	check "error($value) says where" refuses 'mine.lua:2: error() was called with a .*: call it with a text' "${judge[@]}" ./mine.lua
done
printf 'local t = {}\nerror(t)\n' >scenario.lua
check "... in a scenario, too, and shows no address" refuses '^culprit run: scenario.lua:2: error() was called with a table: call it with a text$' run scenario.lua --dry-run
detector 'error("not today")'
check "a text is shown as it is" refuses 'mine.lua:2: not today; 1 verdict failed$' "${judge[@]}" ./mine.lua

# What is no text.
printf '\033LuaS\0\1' >compiled.lua
check "compiled Lua is refused by name" refuses 'compiled.lua: this is compiled Lua; use the source' run compiled.lua --dry-run
check "... as a detector" refuses 'compiled.lua: this is compiled Lua' "${judge[@]}" ./compiled.lua
printf 'return {\n\0}' >nul.lua
check "a NUL byte is refused with its line" refuses 'nul.lua:2: a NUL byte' run nul.lua --dry-run

# Folders and FIFOs in place of files.
mkdir folder folder.lua d
mkfifo fifo fifo.lua p
printf 'time,server,x\n1,a,1\n2,a,2\n' >series.csv
for what in folder fifo; do
	kind=$([ $what = fifo ] && echo 'a FIFO' || echo 'a folder')
	check "$kind as a scenario" refuses "cannot read '$what.lua': it is $kind, not a file" run $what.lua --dry-run
	check "$kind as an inventory" refuses "cannot read '$what': it is $kind" doctor --inventory $what
	check "$kind as a detector" refuses "$what.*is $kind" "${judge[@]}" ./$what
	check "$kind as a Lua detector" refuses "cannot read '$what.lua': it is $kind" "${judge[@]}" ./$what.lua
	check "$kind as a baseline" refuses "cannot read '$what': it is $kind" table "$corpus" --baseline $what
	check "$kind as labels" refuses "cannot read '$what': it is $kind" diagnose --csv series.csv --labels $what
	check "$kind as a file system" refuses "cannot read './$what': it is $kind" lab up --fs ./$what
done
# Nobody writes to the FIFO: what opens it as a file waits for ever.
while read -r words; do
	# shellcheck disable=SC2086
	check "a FIFO: culprit ${words//NAME/fifo}" refuses "cannot read 'fifo': it is a FIFO, not a file" ${words//NAME/fifo}
	# shellcheck disable=SC2086
	check "a folder: culprit ${words//NAME/folder.lua}" refuses folder.lua ${words//NAME/folder.lua}
done <<'L'
diagnose --csv NAME
diagnose --csv series.csv --train NAME
diagnose --csv series.csv --metrics NAME
watch --csv NAME
watch --once --csv NAME
log NAME
ship NAME --to -
log NAME --compare NAME
findings NAME
L
for what in fifo folder; do
	kind=$([ $what = fifo ] && echo 'a FIFO' || echo 'a folder')
	for option in --ca --cert --key; do
		check "$kind as $option" refuses "cannot read '$what': it is $kind" diagnose --prometheus https://127.0.0.1:1 --query x $option $what
	done
done
check "a FIFO in place of a capture's folder" refuses "--on-alarm takes the folder of .*'fifo' is a FIFO" watch --once --csv series.csv --on-alarm fifo
check "a FIFO in place of a corpus' folder" refuses "cannot write to 'fifo': it is a FIFO, not a folder" ship "$unpacked" --pack fifo
check "a FIFO: culprit serve" refuses "cannot read 'fifo': it is a FIFO" serve fifo
mkdir odd && mkfifo odd/run.db
check "a FIFO in place of run.db" refuses "cannot read 'odd/run.db': it is a FIFO" table odd
check "a socket" bash -c 'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")" && "$@" 2>&1 | grep -q "cannot read .socket.: it is a socket, not a file"' - "$culprit" log socket
zcat "$scenarios"/../ci/tests/data/lab-none.s1.fs.log.gz >log
hundred() { [ "$("$@" 2>/dev/null | wc -l)" -gt 100 ]; }
check "a log from standard input" hundred "$culprit" log - <log
check "... from /dev/stdin" hundred "$culprit" log /dev/stdin <log
check "... from a pipe there" bash -c 'cat log | "$1" log /dev/stdin 2>/dev/null | head -200 | wc -l | grep -qx 200' - "$culprit"
check "... from a shell's pipe" bash -c '"$1" log <(cat log) 2>/dev/null | head -200 | wc -l | grep -qx 200' - "$culprit"
check "series from a shell's pipe" bash -c '! "$1" diagnose --csv <(cat series.csv) 2>&1 | grep -E "FIFO|cannot (open|read)"' - "$culprit"
# Written to: what is no file stays what it is, and nobody is waited for.
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("S")'
for command in "ship log --to" "ship --dashboard" "table $corpus --junit" "diagnose --csv series.csv --report"; do
	while read -r what why; do
		# shellcheck disable=SC2086 # words
		timeout 60 "$culprit" $command $what >out 2>err </dev/null
		check "$command $what" bash -c "[ $? = 2 ] && tail -1 err | grep -q \"cannot write '$what': it is $why\" && [ -${what:0:1} $what ]"
	done <<-'L'
		p a FIFO without a reader
		S a socket, not a file
		d a folder, not a file
	L
done
check "a FIFO to query" refuses "cannot read 'fifo': it is a FIFO" query fifo 'select 1'
check "a shell's pipe is read" bash -c "'$culprit' run <(echo 'return 1') --dry-run 2>&1 | grep -q 'must return a table'"

# Programs that cannot be started: said before anything is judged.
confined() { [ "$(id -u)" -eq 0 ] || unshare -Ur true 2>/dev/null; }
program() { cat >"$1" && chmod +x "$1"; }
printf '#!/usr/bin/env python3\r\nprint()\r\n' | program windows.py
check "CR LF in a program" refuses "windows.py:1: .*CR LF.*sed -i \"s/.r\$//\" ./windows.py" "${judge[@]}" ./windows.py
if confined; then
	printf '#!/no/such/python\n' | program lost.py
	check "a missing interpreter is named, with file and line" refuses "lost.py:1: .*no interpreter '/no/such/python'" "${judge[@]}" ./lost.py
	printf 'print()\n' | program bare.py
	check "no interpreter at all" refuses "bare.py:1: the detector has no interpreter" "${judge[@]}" ./bare.py

	# One that hangs is waited for once, however many cells there are.
	printf '#!/bin/sh\necho asked >&2\nwhile :; do sleep 1; done\n' | program hangs.sh
	printf '#!/bin/sh\nwhile read -r l; do last=$l; done\ncase $last in *type\\":\\"model*) echo "{\\"model\\":{\\"a\\":1}}"; exit;; esac\nwhile :; do sleep 1; done\n' | sed 's/\\\\"/"/g' | program later.sh
	for name in hangs later; do
		check "a program that hangs ($name) is not asked again" \
			refuses "$name.sh: .*did not end within 1 s; it is skipped from now on (its limit is 'time_limit_s'); 28" \
			diagnose "$corpus" --detector ./$name.sh,time_limit_s=1
		check "... and every cell says so" [ "$(grep -c "$name: failed: .*did not end within 1 s" out)" = 28 ]
	done

	# The limit of memory is the same for Lua and for programs.
	printf '#!/usr/bin/perl\nmy $x = "x" x (%d << 20); print qq({"metric": "any", "indicted": []}\\n);\n' 700 | program large.pl
	check "a program has no more memory than Lua" refuses 'large.pl: the detector ended' "${judge[@]}" ./large.pl,time_limit_s=100
	sed -i 's/700/100/' large.pl
	check "... and as much" "$culprit" "${judge[@]}" ./large.pl,time_limit_s=100
	detector "local s = ('x'):rep(700 << 20)\nreturn {}"
	check "Lua has 512 MiB" refuses 'mine.lua:2: the call used up its 512 MiB of memory' "${judge[@]}" ./mine.lua
	detector "local s = ('x'):rep(100 << 20)\nreturn {}"
	check "... which is enough for 100" "$culprit" "${judge[@]}" ./mine.lua
else
	ok "programs are started # SKIP no namespaces to confine programs with"
fi

# Options that mean nothing where they stand.
check "--level without --by" refuses '--level needs --by strength' table "$corpus" --level 0.5
check "--cell without a run" refuses '--cell needs a run' diagnose --csv series.csv --cell 3
check "--tap and --json" refuses '--tap and --json' table "$corpus" --tap --json
check "... before anything is run" refuses '--tap and --json' run "$scenarios/quick.lua" --tap --json -o run
check "... so that no run is there" [ ! -e run ]
check "--tap and --format" refuses '--tap prints tests' rescore "$corpus" --tap --format csv
check "--by and --against" refuses 'two different tables' table "$corpus" --by strength --against hotdep09-table1
check "--format svg without --against" refuses '--format svg needs --against' table "$corpus" --format svg

check "log: --summary and --json" refuses '--summary and --json' log -c --json log
check "doctor: --learn-errnos and --json" refuses '--learn-errnos is a run of its own' doctor --learn-errnos --json
check "trace: --cgroup that is none" refuses "'folder' is not a cgroup (v2)\|cannot\|not allow" trace --cgroup folder -- true

# Failures to write: 2 where the path is wrong, 3 where the disk is full, in each command alike. full.t has a disk that is.
writes=("table $corpus --junit" "table $corpus --write-baseline" "report $corpus -o" "rescore $corpus --detector always-same --junit"
	"diagnose --csv series.csv --report" "ship log --to" "ship --dashboard")
for command in "${writes[@]}"; do
	# shellcheck disable=SC2086 # words
	check "$command no/such/folder/x: 2" refuses "cannot write 'no/such/folder/x'" $command no/such/folder/x
	# shellcheck disable=SC2086
	"$culprit" $command /dev/full >out 2>err
	check "... /dev/full: 3" bash -c "[ $? = 3 ] && grep -q \"cannot write '/dev/full': No space left\" err"
done

check "/dev/full is still a device" [ -c /dev/full ]
while read -r words; do
	# shellcheck disable=SC2086
	timeout 120 "$culprit" $words >/dev/full 2>err </dev/null
	check "standard output is full: culprit $words: 3" bash -c "[ $? = 3 ] && tail -1 err | grep -q '^culprit ${words%% *}: cannot write to standard output: No space left on device\$'"
done <<L
help
list
list faults --json
table $corpus
table $corpus --json
table $corpus --tap
table $corpus --junit -
table $corpus $unpacked
rescore $corpus --detector always-same
diagnose $corpus
diagnose $corpus --json
diagnose --csv series.csv
report $corpus -o -
query --samples $corpus
log log
log -c log
log --json log
query log select(1)
ship log --to -
log log --compare log
ship --dashboard -
status $corpus
L

# A run that ends says why once.
sed 's/name = "\([sc][0-9]\)"/&, address = "127.0.0.1", ssh_port = 1/g' >nowhere.lua <<'L'
return { file_system = { type = "glusterfs" }, nodes = { { name = "s1", role = "server" }, { name = "s2", role = "server" },
	{ name = "s3", role = "server" }, { name = "c1", role = "client" } } }
L
"$culprit" run "$scenarios/quick.lua" -i nowhere.lua -o ended >out 2>err </dev/null
check "hosts that cannot be reached: 3, said once" bash -c "[ $? = 3 ] && [ \$(grep -c '127.0.0.1' err) = 1 ] && grep -q \"'culprit resume ended' goes on\" err"
check "... and kept in the log" grep -q 'ended: [sc][0-9]: .*127.0.0.1' ended/run.log
check "... for 'culprit status', too" bash -c "'$culprit' status ended | grep -q 'ended: [sc][0-9]: '"

# Inventories.
inventory() { echo "return { file_system = { type = \"$1\" }, nodes = { { name = \"s1\", role = \"server\" }, { name = \"c1\", role = \"client\" } } }" >hosts.lua; }
inventory lustre
check "a file system that is not there: dry-run" refuses "hosts.lua:1: there is no file system 'lustre'" run "$scenarios/quick.lua" -i hosts.lua --dry-run
check "... doctor --ssh" refuses "hosts.lua:1: there is no file system 'lustre'" doctor -i hosts.lua --ssh
inventory glusterfs
check "nothing is printed of a volume that was not given" bash -c "! '$culprit' doctor -i hosts.lua --ssh 2>&1 | grep -F '(null)'"

# A scenario's training that was not confirmed is not asked for again.
if command -v sqlite3 >/dev/null; then
	mkdir untrained
	gunzip -c "$corpora/ci/run.db.gz" >untrained/run.db
	sqlite3 untrained/run.db "UPDATE attempt SET outcome = 'invalid' WHERE cell IN (SELECT number FROM cell WHERE training)"
	check "training cells without a confirmed attempt" refuses "none of the plan's 4 training cells has a confirmed attempt; 'culprit resume'" \
		diagnose untrained --detector peer-threshold
	sqlite3 untrained/run.db "DELETE FROM attempt WHERE cell IN (SELECT number FROM cell WHERE training); DELETE FROM cell WHERE training"
	check "no training cells" refuses "add 'training' to the scenario" diagnose untrained --detector peer-threshold

	# The attempt that --samples prints is the one in the folder's name: cells/0005.3.
	gunzip -c "$corpora/ci/run.db.gz" >untrained/run.db
	sqlite3 untrained/run.db "UPDATE attempt SET number = 3 WHERE cell = 5"
	check "samples prints the cell's attempt" [ "$("$culprit" query --samples untrained --cell 5 --metric dread | cut -d, -f1,2 | sort -u | xargs)" = "5,3 cell,attempt" ]
else
	ok "training cells without a confirmed attempt # SKIP no sqlite3"
fi

# Names with control characters, in errors.
evil=$'x\e]0;owned\a\nok 1'
for command in log table run findings serve query capture; do
	"$culprit" $command "$evil" >said 2>&1 </dev/null
	check "$command: a name in an error does nothing to the terminal" bash -c "[ $? = 2 ] && [ \$(wc -l <said) -le 2 ] && ! LC_ALL=C grep -q \$'[\x01-\x08\x0b-\x1f\x7f]' said"
done

# Corpora.
check "a corpus cannot be resumed, and is called one" refuses "'$corpus' is a corpus" resume "$corpus"
check "... and is left as it was" bash -c "diff -r '$corpora/ci' '$corpus'"
for command in slow timeline findings "rescore --remeasure"; do
	# shellcheck disable=SC2086 # words
	check "$command: no older culprit is blamed" refuses "is a corpus: the .* are not in it" $command "$corpus"
done
done_testing
