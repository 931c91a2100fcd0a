#!/bin/bash
# culprit query on the command line: recorded logs and a run, forms of output, bad input. No root.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=${OUT:-out}/culprit
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
for log in lab-kill.s2.fs lab-none.c1.app lab-none.s1.fs; do zcat ci/tests/data/$log.log.gz >"$dir/$log"; done
log=$dir/lab-none.s1.fs

ends() { # CODE PATTERN COMMAND...: ends so, and says a line like that
	local code=$1 pattern=$2
	shift 2
	"$@" >"$dir/said" 2>&1
	local got=$?
	[ $got = "$code" ] && grep -Eq -- "$pattern" "$dir/said" || { echo "exit code $got"; cat "$dir/said"; return 1; }
}
prints() { # EXPECTED COMMAND...
	local expected=$1
	shift
	"$@" >"$dir/said" 2>&1
	[ "$(cat "$dir/said")" = "$expected" ] || { cat "$dir/said"; return 1; }
}

# Record by record as 'culprit log --json'.
agree() {
	"$culprit" log --json "$1" >"$dir/log.json" && "$culprit" query --json "$1" "select * from events" >"$dir/events.json" &&
		"$culprit" query --json "$1" "select * from descriptors" >"$dir/descriptors.json" &&
		"$culprit" query --json "$1" "select * from processes" >"$dir/processes.json" && python3 - "$dir" <<'PY'
import json, sys
lines = lambda name: [json.loads(line) for line in open(f"{sys.argv[1]}/{name}.json")]
log = lines("log")
def same(records, rows, pairs):
    assert len(records) == len(rows) > 0, (len(records), len(rows))
    for r, q in zip(records, rows):
        for column, of in pairs.items():
            want = of(r)
            assert q[column] == (None if want == "" else want), (column, q, r)
common = {"number": lambda r: r["number"], "time_ns": lambda r: r["start_ns"], "pid": lambda r: r["pid"]}
tag = lambda r, key: r.get("tag", {}).get(key)
moves = {"read", "write", "copy"}
calls = [r for r in log if r["type"] == "call"]
events = lines("events")
same(calls, events, common | {
    "seq": lambda r: r["seq"], "tid": lambda r: r["tid"], "thread": lambda r: r.get("name"), "call": lambda r: r["call"],
    "async": lambda r: int(r.get("async", False)), "result": lambda r: r["result"], "errno": lambda r: r.get("errno"),
    "service_ns": lambda r: r["service_ns"], "fd": lambda r: r.get("fd"), "kind": lambda r: r.get("kind"),
    "inode": lambda r: tag(r, "inode"), "offset": lambda r: r.get("offset"), "local": lambda r: r.get("local"),
    "peer": lambda r: r.get("remote"), "position": lambda r: r.get("position")})
for r, q in zip(calls, events):
    if "path" in r and "paths" not in r: assert q["path"] == (None if r["kind"] == "socket" else r["path"]), (q, r)
    if "paths" in r and r["paths"][0] and r["paths"][0][0] == "/": assert q["path"] == r["paths"][0], (q, r)
    if "asked" in r: assert q["asked"] == r["asked"]
    assert (q["bytes"] is not None) == (q["class"] in moves)
    if q["bytes"]: assert q["bytes"] == r["result"]
fds = [r for r in log if r["type"] == "fd"]
same(fds, lines("descriptors"), common | {
    "fd": lambda r: r["fd"], "open": lambda r: int(r["open"]), "kind": lambda r: r.get("kind"), "path": lambda r: r.get("path"),
    "inode": lambda r: tag(r, "inode"), "local": lambda r: r.get("local"), "peer": lambda r: r.get("remote")})
same([r for r in log if r["type"] == "process"], lines("processes"), common | {
    "tid": lambda r: r["tid"], "what": lambda r: r["what"], "name": lambda r: r["name"]})
PY
}
for name in lab-kill.s2.fs lab-none.c1.app lab-none.s1.fs; do check "$name: the same as culprit log --json" agree "$dir/$name"; done

# Asked for what it cannot have: a log without calls.
zcat ci/tests/data/lab-ddw.s1.samples.gz >"$dir/samples"
none="is no log of calls, but of readings.* trace with --mode events"
check "calls of a log of readings: what is missing, exit 2" ends 2 "^culprit query: .*/samples $none" "$culprit" query "$dir/samples" "select * from events"
check "findings of a log of readings: the same" ends 2 "^culprit findings: .*/samples $none" "$culprit" findings "$dir/samples"
check "... and not that nothing was found" lacks "nothing was found" "$dir/said"
check "its readings can be asked" ends 0 '^[1-9]' "$culprit" query --csv "$dir/samples" "select count(*) from readings"
check "with a log of calls beside it, calls can be asked" ends 0 '^[1-9]' "$culprit" query --csv "$dir/samples" "$log" "select count(*) from events"

# Forms of output: hostile names. The log is a shell's, told by hand.
check "text is a table" prints "$(printf 'a  b\n1  x\\x1b[31m\n2  ')" "$culprit" query "$log" \
	"select 1 a, 'x' || char(27) || '[31m' b union all select 2, null"
check "CSV is quoted" prints "$(printf 'a,"b,"\n1,"say ""hi"""\n"x\ny",""\n1.5,')" "$culprit" query --csv "$log" \
	"select 1 a, 'say \"hi\"' \"b,\" union all select 'x' || char(10) || 'y', '' union all select 1.5, null"
json_is_valid() {
	"$culprit" query --json "$log" "select cast(x'66ff' as text) a, x'00ff' b, 1 a, 9223372036854775807 n, 0.1 r, 9e999 i, null z" |
		python3 -c 'import json, sys
assert json.loads(sys.stdin.read()) == {"a": "f\xff", "b": "00ff", "a:1": 1, "n": 9223372036854775807, "r": 0.1, "i": None, "z": None}'
}
check "JSON is valid whatever a name holds" json_is_valid
check "--limit ends, and says so" ends 0 'more rows than --limit 2' "$culprit" query --limit 2 "$log" "select pid from events"
check "and prints no more" test "$("$culprit" query --csv --limit 2 "$log" "select pid from events" 2>/dev/null | wc -l)" = 3
check "--schema lists tables and columns" ends 0 '^  service_ns +integer +how long it took: ns' "$culprit" query --schema
columns_are_there() { # what --schema says of programs can be asked
	"$culprit" query --schema --csv | while IFS=, read -r table column _; do
		[ "$table" = requests ] || [ "$table" = failures ] && continue # of runs: ci/tests/judging/requests.t
		"$culprit" query "$log" "select \"$column\" from $table limit 1" >/dev/null || return 1
	done
}
check "each of them can be asked for" columns_are_there

# Bad input.
check "wrong SQL: SQLite's words and the place" ends 2 "wrong SQL at character 8, 'nowhere from events': no such column" \
	"$culprit" query "$log" "select nowhere from events"
check "a log is never written" ends 2 'only SELECT is allowed' "$culprit" query "$log" "delete from events"
check "no SQL" ends 2 'needs a run or logs' "$culprit" query "$log"
check "no log" ends 2 'cannot open the log' "$culprit" query "$dir/none" "select 1"
check "no trace log" ends 2 'is not a trace log' "$culprit" query "$0" "select 1"
check "standard input can be read once" ends 2 'needs files' "$culprit" query - "select 1"
check "a query that never ends" ends 3 'did not end within 0.2 s' "$culprit" query --timeout 200ms "$log" \
	"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
mkfifo "$dir/rows"
interrupted() { # in the middle of its rows
	"$culprit" query --csv "$log" "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n" >"$dir/rows" 2>"$dir/said" &
	local pid=$! line
	exec 8<"$dir/rows"
	read -r line <&8 && [ -n "$line" ] && kill -INT $pid
	cat <&8 >/dev/null
	exec 8<&-
	wait $pid
	[ $? = 3 ] && grep -q interrupted "$dir/said"
}
often() { for _ in {1..20}; do interrupted || return 1; done; } # its rows wait for a reader: some interrupts meet a write
set -m # so that a job of this shell takes SIGINT
check "an interrupt ends it" often
set +m
head -c 30000 "$log" >"$dir/cut"
cut() {
	ends 2 'is cut short at byte 30000, after [0-9]+ records' "$culprit" query --csv "$dir/cut" "select count(*) from events" || return 1
	local n=$(sed -n 2p "$dir/said")
	[ "$n" -gt 100 ] && [ "$n" = "$("$culprit" log --json "$dir/cut" 2>/dev/null | grep -c '"type":"call"')" ]
}
check "of a log cut short what is whole is asked" cut
damaged() {
	cp "$log" "$dir/damaged"
	printf 'x' | dd of="$dir/damaged" bs=1 seek=70000 conv=notrunc status=none
	ends 2 'is damaged at byte [0-9]+, after [0-9]+ records: the block' "$culprit" query "$dir/damaged" "$1"
}
check "a damaged block is told with its place" damaged "select count(*) from events"
newer() { cp "$log" "$dir/newer" && printf '\011' | dd of="$dir/newer" bs=1 seek=8 conv=notrunc status=none &&
	ends 2 'is a trace log of version 9; this program reads' "$culprit" query "$dir/newer" "select 1"; }
check "a log of a newer version" newer
for table in events totals requests; do
	check "a corpus has no logs: $table" ends 2 "^culprit query: $table: .* is a corpus: the logs are not in it" \
		"$culprit" query results/corpora/ci "select count(*) from $table"
done
scored() { # right and wrong servers of each detector on 'any', as the table has them
	"$culprit" query --csv results/corpora/ci "select detector, fault, workload, sum(right), count(*) from scores where metric = 'any' and
		fault <> 'none' group by 1, 2, 3 order by 1, 2, 3" | sed 1d >"$dir/asked" || return 1
	"$culprit" table results/corpora/ci --format csv | python3 -c '
import csv, sys
for r in sorted((r["detector"], r["fault"], r["workload"], int(r["tp_count"]), int(r["n"])) for r in csv.DictReader(sys.stdin)
                if r["metric"] == "any" and r["fault"] != "none" and r["n"]):
    print(*r, sep=",")' >"$dir/table"
	[ "$(wc -l <"$dir/asked")" -ge 10 ] && diff "$dir/table" "$dir/asked"
}
check "scores of a corpus are those of its table" scored
check "its verdicts are judged, as 'table' does" prints "$(printf 'n\n%s' "$("$culprit" query --csv results/corpora/ci \
	"select count(distinct detector) * count(distinct attempt) from scores" | tail -1)")" "$culprit" query --csv results/corpora/ci \
	"select count(*) n from verdicts where metric = 'any'"
check "and its plan can be asked" prints "$(printf 'n\n8')" "$culprit" query --csv results/corpora/ci \
	"select count(*) n from cells join attempts on cell = cells.number where fault = 'none' and not training"

# A run: two attempts of two cells, in the store's own tables.
run=$dir/run
mkdir -p "$run/cells/0001.1" "$run/cells/0002.1"
cp "$dir/lab-none.s1.fs" "$run/cells/0001.1/s1.fs.trace"
cp "$dir/lab-none.c1.app" "$run/cells/0001.1/c1.app.trace"
cp "$dir/lab-kill.s2.fs" "$run/cells/0002.1/s2.fs.trace"
echo hello >"$run/cells/0002.1/c1.app.out"
begin=$("$culprit" query --csv "$dir/lab-kill.s2.fs" "select min(time_ns) from events" | tail -1)
make_run() {
	python3 - "$run/run.db" "$begin" <<'PY'
import json, re, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
source = open("harness/store/store.c").read()
schema = "".join(re.findall(r'"(CREATE [^"]*|[^"]*)"', source[source.index("static const char schema[]"):source.index("static int damaged")]))
version = re.search(r'#define VERSION "(\d+)"', source).group(1)
db.executescript(schema[:schema.index("INSERT INTO fact")] + f"INSERT INTO fact VALUES ('store_version', '{version}');")
begin = int(sys.argv[2])
place = {"servers": [{"name": f"s{i}", "address": f"10.0.0.{i}", "port": 24007, "clock_offset_ns": 0} for i in (1, 2)],
         "clients": [{"name": "c1", "mount": "/mnt", "clock_offset_ns": 0}]}
for cell, fault, onset in ((1, "none", 0), (2, "kill", begin + 1000000)):
    db.execute("INSERT INTO cell (number, training, workload, fault) VALUES (?, 0, 'ddw', ?)", (cell, fault))
    db.execute("INSERT INTO attempt (id, cell, number, outcome, started_ns, start_ns, onset_ns, offset_ns, seconds, detail)"
               " VALUES (?, ?, 1, 'confirmed', ?, ?, ?, 0, 20, ?)",
               (cell + 10, cell, begin, begin, onset, json.dumps({"reduction": place})))
db.execute("INSERT INTO verdict VALUES (12, 'errno-propagation', '', '{\"indicted\": [\"s2\"]}')")
db.commit()
PY
}
check "a run is made" make_run
check "a run's logs, with their nodes and owners" prints "$(printf 'cell,attempt,node,owner,log\n%s\n%s\n%s' \
	1,11,c1,app,cells/0001.1/c1.app.trace 1,11,s1,server,cells/0001.1/s1.fs.trace 2,12,s2,server,cells/0002.1/s2.fs.trace)" \
	"$culprit" query --csv "$run" "select distinct cell, attempt, node, owner, log from totals order by 1, 3"
check "joined with its own tables" prints "$(printf 'fault,indicted\nkill,s2')" "$culprit" query --csv "$run" \
	"select fault, json_extract(verdict, '\$.indicted[0]') indicted from cells join attempts on cell = cells.number
		join verdicts on attempt = id where cells.number in (select cell from totals where node = 's2')"
phases() {
	"$culprit" query --csv "$run" "select phase, min(t) >= 0.001, max(t) < 0.001 from events where cell = 2 group by 1 order by 1" >"$dir/said" &&
		printf 'phase,min(t) >= 0.001,max(t) < 0.001\nbefore,0,1\nduring,1,0\n' | diff - "$dir/said"
}
check "what of its verdicts was right" prints "$(printf 'fault,right,wrong\nkill,0,1')" "$culprit" query --csv "$run" \
	"select fault, right, wrong from scores"
check "lists in JSON can be taken apart" prints "$(printf 'fault,server\nkill,s2')" "$culprit" query --csv "$run" \
	"select fault, i.value server from verdicts join attempts a on attempt = a.id join cells on cell = cells.number, json_each(verdict, '\$.indicted') i"
check "phases follow the fault" phases
page() { # what diag/query/README.md asks of a run is SQL that this program understands
	local n=0 sql
	while IFS= read -r -d '' sql; do
		[[ $sql == *"from requests"* ]] && continue # of runs with logs of flows: ci/tests/ship/ship.t
		n=$((n + 1))
		"$culprit" query "$run" "$sql" >"$dir/said" 2>&1 || { echo "$sql"; cat "$dir/said"; return 1; }
	done < <(perl -0777 -ne 'print "$1\0" while /^ {4}culprit query RUN "(select [^"]{20,})"/msg' diag/query/README.md)
	[ $n -ge 3 ]
}
check "the page's questions to a run can be asked" page
check "--cell asks one cell" prints "$(printf 'node\ns2')" "$culprit" query --csv --cell 2 "$run" "select distinct node from events"
check "a cell that is not there" ends 2 "cell 7 of .* has no attempt" "$culprit" query --cell 7 "$run" "select 1"
before=$(find "$run" -type f -exec sha256sum {} + | sort)
chmod -R a-w "$run"
check "a run that cannot be written is asked all the same" ends 0 '^ *3$' "$culprit" query "$run" "select count(distinct node) from totals"
chmod -R u+w "$run"
check "nothing in it has changed" test "$before" = "$(find "$run" -type f -exec sha256sum {} + | sort)"
rm "$run/cells/0001.1/s1.fs.trace" && head -c 20000 "$dir/lab-kill.s2.fs" >"$run/cells/0002.1/s2.fs.trace"
check "what cannot be read of a run is told, the rest asked" ends 2 "0002.1/s2.fs.trace' is cut short" "$culprit" query "$run" \
	"select count(*) from events"
done_testing
