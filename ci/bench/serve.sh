#!/bin/bash
# How long culprit serve takes to answer its page, for 10 million calls of 33 threads on 40 files (SERVE_RECORDS=1000000): what the page
# asks first (without and with a zone index), each panel, a page of events in the middle, and the same panel again. Goal: about a
# second until the first panel can be drawn.
set -eu
for program in curl python3; do
	command -v $program >/dev/null || { echo "no $program"; exit 0; }
done
out=${OUT:-out} dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill $pid; rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
XDG_CACHE_HOME=$dir/other "$out/bench/query_rate" "$dir/log" "${SERVE_RECORDS:-10000000}" >/dev/null
"$out/culprit" serve --timeout 10min "$dir/log" >"$dir/url" &
pid=$!
for ((i = 0; i < 600; i++)); do [ ! -s "$dir/url" ] || break; sleep 0.1; done
url=$(cat "$dir/url")

ask() { # NAME PATH ARGUMENTS: its seconds; the answer in $dir/answer
	local s
	s=$(curl -sS --noproxy '*' --max-time 1200 -o "$dir/answer" -w '%{time_total}' "${url/\/\?//$2?}&$3")
	python3 - "$dir/answer" "$1" "$s" <<'PY'
import json, os, sys
answer = json.load(open(sys.argv[1]))
said = answer.get("error") or (f"{len(answer['rows'])} rows" if "rows" in answer else f"{answer['extent']['records']} records")
print(f"{sys.argv[2]:44} {float(sys.argv[3]):8.3f} s {os.path.getsize(sys.argv[1]) / 1024:8.0f} KiB  {said}")
PY
}
ask "first of all, which makes the index" state views=1
middle=$(python3 -c 'import json, sys; x = json.load(open(sys.argv[1]))["extent"]; print((x["from"] + x["to"]) // 2, x["to"] + 1)' "$dir/answer")
for view in calls latency bytes errors threads slowest files offsets; do ask "panel $view" panel view=$view; done
ask "panel calls, again" panel view=calls
ask "panel calls of the second half" panel "view=calls&from=${middle% *}&to=${middle#* }"
ask "200 events in the middle" events "limit=200&from=${middle% *}&to=${middle#* }"
kill $pid
pid=
XDG_CACHE_HOME=$dir/cache "$out/culprit" serve "$dir/log" >"$dir/url2" &
pid=$!
for ((i = 0; i < 600; i++)); do [ ! -s "$dir/url2" ] || break; sleep 0.1; done
url=$(cat "$dir/url2")
ask "another day: first of all, with the index" state views=1
ask "... and the first panel" panel view=calls
