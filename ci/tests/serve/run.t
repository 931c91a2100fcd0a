#!/bin/bash
# culprit serve on a recorded run gives the same answers as culprit query, including requests and failures; by attempt, node and time. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
for program in curl python3; do
	command -v $program >/dev/null || skip_all "no $program"
done
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache XDG_CONFIG_HOME=$dir/config
tar -xzf ci/tests/data/lab-flow.tar.gz -C "$dir"
run=$dir/tiny

serve() {
	: >"$dir/url"
	"$culprit" serve "$run" >"$dir/url" 2>"$dir/err" &
	pid=$!
	until_true 60 test -s "$dir/url" || { cat "$dir/err"; return 1; }
	base=$(sed 's/?.*//' "$dir/url")
	token=$(sed -n 's/.*token=\([0-9a-f]*\).*/\1/p' "$dir/url")
}
ask() { curl -sS --noproxy '*' --max-time 60 "${@:2}" "${base}$1&token=$token" >"$dir/answer"; } # PATH?ARGUMENTS [CURL'S]
says() { # EXPECTED ARGUMENTS SQL: rows, in short JSON
	local got
	ask "query?chart=table$2" --data-binary "$3"
	got=$(python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["rows"], separators=(",", ":")))' "$dir/answer") || { cat "$dir/answer"; return 1; }
	[ "$got" = "$1" ] || { echo "$got"; return 1; }
}
same() { # ARGUMENTS SQL [SQL OF CULPRIT QUERY]: one row of numbers
	says "[[$("$culprit" query --csv "$run" "${3:-$2}" | tail -1)]]" "$1" "$2"
}

serve
check "it serves a run" [ -n "$token" ]
check "requests" same "" "select count(*), sum(total_ns) from requests"
check "failures" same "" "select count(*), sum(inode) from failures"
check "and there are some of both" says "[[1,1]]" "" "select (select count(*) from requests) > 0, (select count(*) from failures) > 0"
check "of an attempt" same "&attempt=2" "select count(*), min(attempt) from requests"
check "... another has none" says "[[0]]" "&attempt=1" "select count(*) from requests"
check "of a stretch of time" same "&from=1000000000&to=3000000000" "select count(*), sum(disk_ns) from requests" \
	"select count(*), sum(disk_ns) from requests where t >= 1 and t < 3"
check "of a node" same "&node=s3" "select count(*), sum(disk_ns) from requests" "select count(*), sum(disk_ns) from requests where server = 's3' or client = 's3'"
check "the run's own tables" same "" "select count(*), sum(id) from attempts"
check "... without the secret that blinds detectors" says "[[0]]" "" "select count(*) from facts where key = 'blind_key'"
check "the view of the slowest requests" ask "panel?view=requests&attempt=2"
slowest() {
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
i = v["columns"].index("total s")
assert len(v["rows"]) == 30 and not v["problems"], v
assert abs(v["rows"][0][i] - float(sys.argv[2])) < 1e-9 and all(a[i] >= b[i] for a, b in zip(v["rows"], v["rows"][1:])), v' "$dir/answer" \
		"$("$culprit" query --csv "$run" "select max(total_ns) / 1e9 from requests" | tail -1)"
}
check "... is in order" slowest
timeline() { # CODE PATTERN ARGUMENTS
	local code
	code=$(curl -sS --noproxy '*' --max-time 120 -o "$dir/timeline" -w '%{http_code}' "${base}timeline?$3") &&
		[ "$code" = "$1" ] && grep -qi -- "$2" "$dir/timeline" || { echo "$code"; head -c 600 "$dir/timeline"; return 1; }
}
"$culprit" timeline "$run" --cell 2 -o "$dir/own" 2>/dev/null
same_page() { # like culprit timeline's, except for the creation time
	timeline 200 '<title>tiny, cell 2' "attempt=2&token=$token" && [ "$(wc -c <"$dir/timeline")" -gt 100000 ] &&
		diff <(wc -c <"$dir/own") <(wc -c <"$dir/timeline")
}
check "the timeline of an attempt's requests, as culprit timeline draws it" same_page
check "... without a choice, too" timeline 200 '<title>tiny, cell 2' "token=$token"
check "... not without the token" bash -c '[ "$(curl -sS --noproxy "*" -o /dev/null -w "%{http_code}" "$1")" = 403 ]' - "${base}timeline?attempt=2"
check "... of an unknown attempt" timeline 404 'has no such attempt' "attempt=77&token=$token"
check "the page links there" bash -c 'curl -sS --noproxy "*" "$1" | grep -q "id=.\?timeline"' - "$base?token=$token"
kill "$pid" && wait "$pid" 2>/dev/null

# Runs without flows.
rm "$run"/cells/0002.1/*.fs.trace
serve
ask "panel?view=requests&attempt=2"
check "without flows the view is empty, and says why" python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
assert v["rows"] == [] and len(v["problems"]) == 1 and v["problems"][0].startswith("requests: no attempt was recorded with flows: "), v' "$dir/answer"
ask "panel?view=calls&attempt=2"
check "... other views know nothing of it" python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
assert not any("requests" in p for p in v["problems"]), v' "$dir/answer"
done_testing
