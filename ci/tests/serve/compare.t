#!/bin/bash
# culprit log --compare and culprit serve on the command line: two logs, two cells, bad input. No root, no browser.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=$PWD/${OUT:-out}
culprit=$out/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
for log in lab-kill.s2.fs lab-none.s1.fs; do zcat ci/tests/data/$log.log.gz >"$dir/$log"; done
a=$dir/lab-none.s1.fs b=$dir/lab-kill.s2.fs

ends() { # CODE PATTERN COMMAND...: exits with CODE and prints a matching line
	local code=$1 pattern=$2
	shift 2
	"$@" >"$dir/said" 2>&1
	local got=$?
	[ $got = "$code" ] && grep -Eq -- "$pattern" "$dir/said" || { echo "exit code $got"; cat "$dir/said"; return 1; }
}
one() { "$culprit" query --csv "$1" "$2" 2>/dev/null | tail -1; }

# The same figures as culprit query gives.
calls=$(one "$a" "select count(*) from events") others=$(one "$b" "select count(*) from events")
check "all calls of both" ends 0 "^  calls +$calls +$others +x0\.[0-9]+$" "$culprit" log "$a" --compare "$b"
reads=$(one "$a" "select count(*) from events where call = 'readv'") more=$(one "$b" "select count(*) from events where call = 'readv'")
check "calls of a type" ends 0 "^  readv +$reads +$more +x0\.[0-9]+ " "$culprit" log "$a" --compare "$b"
check "errors" ends 0 "^  futex EAGAIN +$(one "$a" "select count(*) from events where call = 'futex' and errno = 'EAGAIN'") " "$culprit" log "$a" --compare "$b"
check "a row missing in B" ends 0 '/c1\.10 .* - +gone' "$culprit" log "$a" --compare "$b"
check "... and in A" ends 0 '/c1\.10 .* - .* new' "$culprit" log "$b" --compare "$a"
check "a log compared with itself: no ratio but 1.00" prints_without ' x(0|[2-9]|1[0-9]|1\.(0[1-9]|[1-9]))| (new|gone)$' 0 "$culprit" log "$a" --compare "$a"
check "--limit" ends 0 '\.\.\. [0-9]+ more \(--limit\)' "$culprit" log --limit 2 "$a" --compare "$b"
check "--per-second" ends 0 '^  calls/s ' "$culprit" log --per-second "$a" --compare "$b"
json() {
	"$culprit" log --json "$a" --compare "$b" | python3 -c 'import json, sys
d = json.load(sys.stdin)
assert [d["a"]["name"], d["b"]["name"]] == ["lab-none.s1.fs", "lab-kill.s2.fs"]
calls = next(t for t in d["tables"] if t["title"] == "Calls by type")
names = [m["name"] for m in calls["measures"]]
row = next(r for r in calls["rows"] if r[0] == "readv")
assert row[1][names.index("calls")] == int(sys.argv[1]) and row[2][names.index("calls")] == int(sys.argv[2]), row
assert all(max((s or [0])[0] for s in r[1:]) >= max((s or [0])[0] for s in q[1:]) for r, q in zip(calls["rows"], calls["rows"][1:]))' "$reads" "$more"
}
check "--json holds all of it, the largest first" json
check "no such log" ends 2 'cannot open the log' "$culprit" log "$a" --compare "$dir/none"
check "no log" ends 2 'is not a trace log' "$culprit" log "$a" --compare "$0"
check "one session" ends 2 '--compare needs a value' "$culprit" log "$a" --compare
check "--limit alone" ends 2 '--limit needs --compare' "$culprit" log --limit 2 "$a"
check "what is for one log" ends 2 '--errors means nothing with --compare' "$culprit" log --errors "$a" --compare "$b"
check "standard input" ends 2 'standard input can be read only once' "$culprit" log - --compare "$a"
head -c 30000 "$a" >"$dir/cut"
check "a truncated log is reported, the rest compared" ends 2 'is cut short at byte 30000' "$culprit" log "$dir/cut" --compare "$a"

# Cells of a run.
if [ "$(uname -m)" = x86_64 ] && "$out/tests/timeline/cell_test" make "$dir/run" >"$dir/said" 2>&1; then
	check "two cells of a run" ends 0 '^B: run, cell 2, ' "$culprit" log "$dir/run:1" --compare "$dir/run:2"
	check "a cell with a log" ends 0 '^A: lab-none' "$culprit" log "$a" --compare "$dir/run:1"
	check "a whole run; one of its logs is cut short" ends 2 "0003.1/s1.fs.trace' is cut short" "$culprit" log "$dir/run" --compare "$dir/run:1"
	check "... has no length to divide by" ends 2 'for logs and single cells' "$culprit" log --per-second "$dir/run" --compare "$dir/run:1"
	check "no such cell" ends 2 'cell 77 of .* has no attempt' "$culprit" log "$dir/run:1" --compare "$dir/run:77"
	check "no cell" ends 2 'cannot open the log|is not a cell' "$culprit" log "$dir/run:1" --compare "$dir/run:1x"
	check "hostile names are printed without escape sequences" prints_without $'\033' 0 "$culprit" log "$dir/run:1" --compare "$dir/run:2"
fi

# culprit serve without a browser
check "serve: no such log" ends 2 'cannot open the log' "$culprit" serve "$dir/none"
check "serve: a corpus" ends 2 'is a corpus: the logs are not in it' "$culprit" serve ci/tests/data/sampled
check "serve: --cell of a log" ends 2 'cell needs a run' "$culprit" serve --cell 1 "$a"
check "serve: no such folder of views" ends 2 'cannot read the views' "$culprit" serve --views "$dir/none" "$a"
check "serve: its own views are right" "$culprit" serve --check "$a"
mkdir "$dir/views"
printf 'title: Mine\nchart: line\nquery:\nselect t, bytes\nfrom evnts\n' >"$dir/views/mine.view"
check "serve: an invalid view is reported with file and line" ends 2 'views/mine.view:4: .*no such table: evnts' "$culprit" serve --check --views "$dir/views" "$a"
check "serve: to compare with nothing" ends 2 'cannot open the log' "$culprit" serve --compare "$dir/none" "$a"

url=
served() { # ARGUMENTS...: starts; $url and $pid
	: >"$dir/url"
	"$culprit" serve "$@" >"$dir/url" 2>"$dir/err" &
	pid=$!
	until_true 60 test -s "$dir/url" || { cat "$dir/err"; return 1; }
	url=$(cat "$dir/url")
}
served --views "$dir/views" "$a"
trap 'kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
check "serve: an address on loopback with a token" bash -c '[[ $1 =~ ^http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{32}$ ]]' - "$url"
check "... it listens there alone" python3 - "$url" <<'PY'
import re, sys
port = int(re.search(r":(\d+)/", sys.argv[1]).group(1))
found = [line.split()[1] for name in ("tcp", "tcp6") for line in open("/proc/net/" + name) if line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A"]
assert found == ["0100007F:%04X" % port], found
PY
check "... an invalid view is reported, and does not prevent serving" grep -q 'mine.view:4: ' "$dir/err"
port=${url#http://127.0.0.1:}
check "a port that is taken" ends 3 'cannot serve a page on 127.0.0.1' "$culprit" serve --port "${port%%/*}" "$a"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
check "... it ends with 0 when it is interrupted" test "$code" = 0

# A run that continues: its cells appear as they end, with their faults and verdicts.
if [ "$(uname -m)" = x86_64 ]; then
	coproc held { exec "$out/tests/timeline/cell_test" hold "$dir/held" 2>&1; }
	held_pid=$held_PID
	trap 'kill "$pid" "$held_pid" 2>/dev/null; rm -rf "$dir"' EXIT
	read -r line <&"${held[0]}"
	check "a run is in progress" test "$line" = ready
	served "$dir/held"
	state() { # PYTHON: true of the state s
		python3 - "$url" "$1" <<'PY'
import json, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
s = json.load(opener.open(sys.argv[1].replace("/?", "/state?"), timeout=60))
assert eval(sys.argv[2]), s
PY
	}
	check "serve: its only cell" state 's["goes_on"] and [a["cell"] for a in s["attempts"]] == [1] and s["attempt"] == s["attempts"][0]["attempt"]'
	echo more >&"${held[1]}"
	read -r line <&"${held[0]}"
	check "... another cell ends: it is the one that is shown" state 's["goes_on"] and len(s["attempts"]) == 2 and s["attempt"] == s["attempts"][1]["attempt"]'
	check "... with its fault" state '[m["text"] for m in s["attempts"][1]["marks"] if m["kind"] == "fault"] == ["disk-hog on s2 under load"]'
	eval "exec ${held[1]}>&-"
	wait "$held_pid" 2>/dev/null
	check "... the run ends" state 'not s["goes_on"]'
	kill -INT "$pid"
	wait "$pid" 2>/dev/null
fi
done_testing
