#!/bin/bash
# On the recorded corpora every built-in detector has the scores of its baseline; a detector that has become worse is reported.
# The commands are those of the templates for users' CI. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# ends CODE COMMAND: it ends with that exit code.
ends() {
	local want=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err"
	local got=$?
	[ $got -eq "$want" ] || { echo "ended with $got:"; tail -n 5 "$tmp/out" "$tmp/err"; return 1; }
}

all=(--detector peer-threshold --detector peer-robust --detector 'crash-hang,timeout=5s' --detector errno-propagation
	--detector 'errno-silent,listen=5s')
known=$("$culprit" list detectors --json | perl -MJSON::PP -0777 -ne 'print map { "$_->{name}\n" }
	grep { $_->{name} !~ /^(always-|seeded-)/ } @{ decode_json($_)->{detectors} // decode_json($_) }')
check "there are built-in detectors to guard" [ "$(wc -l <<<"$known")" -ge 3 ]
commands() { grep -o 'culprit rescore .*' "$1" | sed 's/[[:space:]]*$//' | sort; }
commands ci/templates/github-actions.yml >"$tmp/commands"
check "the templates guard every corpus" [ "$(wc -l <"$tmp/commands")" = "$(ls -d results/corpora/*/ | wc -l)" ]
for corpus in results/corpora/*/; do
	corpus=${corpus%/} name=$(basename "$corpus")
	check "$name: is at most 10 MB, and holds no host" bash -c "[ \$(stat -c %s $corpus/run.db.gz) -lt 10000000 ] &&
		zcat $corpus/run.db.gz >$tmp/db && [ \"\$(sqlite3 $tmp/db \"SELECT count(*) FROM fact WHERE key IN ('hosts', 'inventory_text')\")\" = 0 ]"
	for detector in $known; do
		check "$name: the baseline holds $detector" grep -q "\"$detector\"" "$corpus/baseline.json"
	done
	read -ra guard < <(grep -F "culprit rescore $corpus " "$tmp/commands")
	check "$name: no regression" ends 0 "$culprit" "${guard[@]:1}"
	check "$name: its plan is kept" grep -q "^1\.\.$(grep -c '^\(not \)\?ok' "$tmp/out")$" "$tmp/out"
	check "$name: a wrong verdict in one cell is no failure" bash -c "! grep '^not ok' '$tmp/out' | grep -v '# TODO'"
	"$culprit" rescore "$corpus" "${all[@]}" --write-baseline "$tmp/new.json" >/dev/null
	check "$name: the verdicts are exactly those of the baseline" diff "$corpus/baseline.json" "$tmp/new.json"
done
check "without a baseline, wrong verdicts are failures" ends 1 "$culprit" rescore results/corpora/ci "${all[@]}" --tap

# The last example in the detectors' README has the scores given there.
perl -0ne 'print((/```lua\n(.*?)```/sg)[-1])' diag/detectors/README.md >"$tmp/busiest-disk.lua"
sed -n 's/^    \(\(busiest-disk\|peer-robust\) *[01]\..*\)/\1/p' diag/detectors/README.md >"$tmp/said"
check "the detector in the README is twenty lines" [ "$(wc -l <"$tmp/busiest-disk.lua")" -le 21 ]
"$culprit" rescore results/corpora/matrix --detector "$tmp/busiest-disk.lua" --detector peer-robust >"$tmp/table"
check "... and has the scores of the README" bash -c "[ \$(wc -l <'$tmp/said') = 2 ] && grep -qxF \"\$(head -1 '$tmp/said')\" '$tmp/table' && grep -qxF \"\$(tail -1 '$tmp/said')\" '$tmp/table'"

# One detector in several settings.
"$culprit" rescore results/corpora/matrix --detector peer-threshold --detector peer-threshold,margin=1 >"$tmp/table"
check "several settings of one detector have a row each" [ "$(grep -cxE 'peer-threshold( +[01]\.[0-9].*)?|peer-threshold\(margin=1\)' "$tmp/table")" = 4 ]
check "a lower margin finds more" bash -c "[ \$(sed -n 's/^peer-threshold  *\([0-9.]*\) .*/\1/p' '$tmp/table' | tr -d .) -lt \
	\$(sed -n '/^peer-threshold(margin=1)\$/{n;s/^ *\([0-9.]*\) .*/\1/p;q}' '$tmp/table' | tr -d .) ]"
check "the same setting twice is refused" ends 2 "$culprit" rescore results/corpora/matrix --detector peer-threshold,margin=1 --detector peer-threshold,margin=1

# A detector that has become worse: peer-threshold that sees no deviation, and one that sees too many.
sed 's|most > threshold then|most > threshold / 4 then|' diag/detectors/peer-threshold.lua >"$tmp/mutant.lua"
check "a detector that accuses too easily is a regression" ends 1 "$culprit" rescore results/corpora/ci --detector "$tmp/mutant.lua" \
	--baseline results/corpora/ci/baseline.json
check "... and the report names the group of cells, with counts" grep -q '^regression: peer-threshold: wrong server, .* of .*, before .* of .* (p = ' "$tmp/out"
sed 's/indicted\[#indicted + 1\] = server/indicted = {}/' diag/detectors/crash-hang.lua >"$tmp/mutant.lua"
check "a detector that no longer finds anything is a regression" ends 1 "$culprit" rescore results/corpora/errors --detector "$tmp/mutant.lua,timeout=5s" \
	--baseline results/corpora/errors/baseline.json --junit "$tmp/tests.xml"
check "... also in the JUnit file" grep -q '<failure message="0 of 45, before 1[0-9] of 45' "$tmp/tests.xml"
check "one cell less is not a regression" bash -c "sed -z 's/\"right\": 5/\"right\": 6/' results/corpora/ci/baseline.json >$tmp/b.json &&
	'$culprit' rescore results/corpora/ci --detector peer-threshold --baseline $tmp/b.json >/dev/null"

printf '{\n "culprit_baseline": 1,\n "detectors": {"peer-threshold": {"none": {"n": 3, "wrong": 4}}}}\n' >"$tmp/b.json"
check "a baseline with impossible counts is an input error" ends 2 "$culprit" rescore results/corpora/ci --detector peer-threshold --baseline "$tmp/b.json"
echo '{' >"$tmp/b.json"
check "a baseline that is not JSON is an input error" ends 2 "$culprit" rescore results/corpora/ci --baseline "$tmp/b.json"
check "... with its line" grep -q "b.json:[0-9]" "$tmp/err"
check "a baseline of other detectors is an error" bash -c "echo '{\"culprit_baseline\": 1, \"detectors\": {}}' >$tmp/b.json; ! '$culprit' rescore results/corpora/ci --baseline $tmp/b.json >/dev/null 2>&1"
check "a corpus is read-only" ends 2 "$culprit" rescore results/corpora/ci --save
check "... and the message says so" grep -q 'is a corpus' "$tmp/err"

# A corpus is made from a run, and gives the same verdicts.
run=results/runs/errors-20261121
check "a run is packed" "$culprit" ship "$run" --pack "$tmp/packed"
"$culprit" diagnose "$run" --json >"$tmp/1"
"$culprit" diagnose "$tmp/packed" --json >"$tmp/2"
check "the packed run has the same verdicts, with equal evidence" cmp "$tmp/1" "$tmp/2"
check "... and there were verdicts to compare" [ "$(wc -c <"$tmp/1")" -gt 10000 ]
shown() { "$culprit" "$@" | sed '/^run /,$d'; } # without the folder's name
same_whole() {
	"$culprit" ship "$run" --pack "$tmp/whole" --whole && cmp <(shown table "$run") <(shown table "$tmp/whole") &&
		"$culprit" report "$tmp/whole" -o "$tmp/whole.html"
}
check "its table has the scores of its scenario's detectors" cmp <(shown table "$tmp/packed") <(shown rescore "$run")
check "a run packed with --whole shows its own verdicts" same_whole
head -c 300000 "$tmp/packed/run.db.gz" >"$tmp/cut.gz" && mkdir "$tmp/cut" && mv "$tmp/cut.gz" "$tmp/cut/run.db.gz"
check "a truncated corpus is refused" ends 2 "$culprit" rescore "$tmp/cut"

# The templates.
for template in ci/templates/*.yml; do
	check "$(basename "$template"): guards by these commands" diff <(commands "$template") "$tmp/commands"
	line=$(grep -o 'culprit run .*' "$template")
	check "$(basename "$template"): its lab command has only known options" bash -c "
		for option in \$(grep -o -- '--\\?[a-z-]*' <<<'${line#culprit run}' | grep '^-' | grep -v '^-ci\$'); do
			'$culprit' run --help | grep -q -- \"\$option\" || { echo \"no \$option\"; exit 1; }; done"
	check "$(basename "$template"): its scenario and baseline exist" bash -c "[ -f scenarios/ci.lua ] && grep -q 'scenarios/ci.lua.*results/corpora/ci/baseline.json' $template"
done
done_testing
