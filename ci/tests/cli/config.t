#!/bin/bash
# The configuration file: defaults of options, by command.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
corpus=$PWD/results/corpora/ci
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
unset CULPRIT_CONFIG XDG_CONFIG_HOME
export HOME=$tmp/home
mkdir -p home/.config/culprit xdg/culprit
own=home/.config/culprit/config.lua

"$culprit" table "$corpus" >plain
"$culprit" table "$corpus" --format csv >csv
"$culprit" table "$corpus" --details >details
check "the text, the CSV and the detailed table differ" [ "$(cmp -s plain csv; echo $?) $(cmp -s plain details; echo $?)" = "1 1" ]
like() { diff "$1" <("${@:2}"); }
echo 'return { table = { format = "csv" } }' >"$own"
check "an option's default comes from it" like csv "$culprit" table "$corpus"
check "the command line comes after it" like plain "$culprit" table "$corpus" --format text
check "other commands are as they were" like <("$culprit" list) env CULPRIT_CONFIG= "$culprit" list
check "an empty \$CULPRIT_CONFIG: none" like plain env CULPRIT_CONFIG= "$culprit" table "$corpus"
echo 'return { table = { details = true } }' >xdg/culprit/config.lua
check "\$XDG_CONFIG_HOME is looked at in its place" like details env XDG_CONFIG_HOME="$tmp/xdg" "$culprit" table "$corpus"
echo 'return { table = { details = false } }' >other.lua
check "\$CULPRIT_CONFIG before both; false leaves an option off" like plain env XDG_CONFIG_HOME="$tmp/xdg" CULPRIT_CONFIG=other.lua "$culprit" table "$corpus"
echo 'return { table = { cells = "5-9" }, ["lab up"] = { servers = 6 } }' >"$own"
check "options with a form of their own" bash -c "'$culprit' table '$corpus' | grep -q 'scored here: cells 5 to 9 alone'"
echo 'return { query = { cell = 5 } }' >"$own"
check "numbers" [ "$("$culprit" query --samples "$corpus" --metric dread | cut -d, -f1 | sort -u | xargs)" = "5 cell" ]

refuses() { # PATTERN TEXT [COMMAND...]: exit code 2 and one line
	local said code want=$1
	echo "$2" >"$own"
	shift 2
	[ $# -gt 0 ] || set -- table "$corpus"
	said=$("$culprit" "$@" 2>&1 >out)
	code=$?
	[ $code -eq 2 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && [ ! -s out ] && grep -q "config.lua$want" <<<"$said" || { echo "$code: $said"; return 1; }
}
check "an unknown option is refused with the nearest" refuses ":1: 'culprit table' has no option 'fromat'; did you mean 'format'" 'return { table = { fromat = "csv" } }'
check "an unknown command" refuses ":1: there is no command 'tabel'" 'return { tabel = {} }'
check "a command that is another's option now" refuses ":1: there is no command 'samples' with options; it is 'culprit query --samples RUN' now" 'return { samples = {} }'
check "a wrong value" refuses ":1: 'format' takes text|markdown|csv|json|svg, not 'cvs'" 'return { table = { format = "cvs" } }'
check "a value for a flag" refuses ":1: 'details' takes true or false" 'return { table = { details = "yes" } }'
check "a flag for a value" refuses ":1: 'format' takes a text or a number" 'return { table = { format = true } }'
check "a table for a value" refuses ":1: 'format' takes a text or a number" 'return { table = { format = {} } }'
check "an option that may be repeated" refuses ":1: 'detector' may be repeated" 'return { rescore = { detector = "peer-robust" } }' rescore "$corpus"
echo 'return {' >"$own"
check "help is given whatever it says" like <(env CULPRIT_CONFIG= "$culprit" help table) "$culprit" help table
check "... and completion" like <(env CULPRIT_CONFIG= "$culprit" complete -- ta) "$culprit" complete -- ta
check "options that contradict each other" bash -c "echo 'return { table = { tap = true, format = \"csv\" } }' >'$own'; '$culprit' table '$corpus' 2>&1 | grep -q -- '--tap prints tests'"
check "a command that is no table" refuses ":1: 'table' must be a table of options, not a number" 'return { table = 3 }'
check "what is no Lua" refuses ":[12]: " 'return {'
check "what hangs" env CULPRIT_LUA_SECONDS=0.3 bash -c "echo 'while true do end' >'$own'; timeout 100 '$culprit' table '$corpus' 2>&1 | grep -q 'config.lua:1: the call used up its'"
check "help is given even so" bash -c "'$culprit' table --help | grep -q -- --merge"
check "a file that is named and not there" bash -c "CULPRIT_CONFIG=nowhere.lua '$culprit' table '$corpus' 2>&1 | grep -q \"cannot open 'nowhere.lua'\""
check "a folder" bash -c "CULPRIT_CONFIG=home '$culprit' table '$corpus' 2>&1 | grep -q \"cannot read 'home': it is a folder\""
done_testing
