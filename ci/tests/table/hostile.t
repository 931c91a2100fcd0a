#!/bin/bash
# Names and texts from a run or a detector cannot inject lines or control characters into text, TAP or JUnit. No root, no cluster.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
for program in sqlite3 python3; do command -v $program >/dev/null || skip_all "no $program"; done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r results/runs/errors-20261121 "$tmp/run"
# A newline with a TAP line, an escape sequence, a number sign, markup, and a character that XML does not have.
evil="x' || char(10) || 'ok 999 - injected' || char(27) || '[31m # SKIP <&\"' || char(65534) || '"
sqlite3 "$tmp/run/run.db" "
	UPDATE verdict SET verdict = json_set(verdict, '\$.resource', '$evil', '\$.reason', '$evil') WHERE detector = 'crash-hang';
	UPDATE verdict SET verdict = json_set(verdict, '\$.error', '$evil') WHERE detector = 'crash-hang' AND attempt = 3;
	UPDATE cell SET fault = 'f$evil' WHERE fault = 'hang';
	UPDATE cell SET workload = 'w$evil' WHERE workload = 'create'"

plain() { lacks $'[\x01-\x08\x0b-\x1f\x7f]|^ok 999' "$1"; }
for format in text markdown; do
	"$culprit" table "$tmp/run" --details --format $format >"$tmp/$format"
	check "$format: the table is printed" grep -qF 'ok 999 - injected\x1b[31m' "$tmp/$format"
	check "$format: it cannot begin a line or act on the terminal" plain "$tmp/$format"
done
"$culprit" table "$tmp/run" --against hotdep09-table1 >"$tmp/against"
check "the comparison with a published table acts on no terminal" plain "$tmp/against"
"$culprit" table "$tmp/run" --tap --junit "$tmp/junit.xml" >"$tmp/tap"
tests=$(sed -n '1s/^1\.\.//p' "$tmp/tap")
check "TAP has two lines for each test: its name, and what was said" [ "$(wc -l <"$tmp/tap")" = $((2 * tests + 1)) ]
check "TAP: no control characters" plain "$tmp/tap"
check "TAP: the words are there, escaped" grep -qF 'x\nok 999 - injected\x1b[31m \# SKIP' "$tmp/tap"
cat >"$tmp/print.t" <<-PERL
	open my \$f, "<", "$tmp/tap" or die; print <\$f>;
PERL
prove -v "$tmp/print.t" >"$tmp/prove" 2>&1
check "TAP: prove counts no test as skipped" lacks skipped "$tmp/prove"
check "TAP: the parser counts the same tests" grep -q "Failed [0-9]*/$tests subtests" "$tmp/prove"
check "JUnit is well-formed" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/junit.xml"
check "JUnit: as many tests" [ "$(python3 -c 'import sys, xml.dom.minidom as m; print(len(m.parse(sys.argv[1]).getElementsByTagName("testcase")))' "$tmp/junit.xml")" = "$tests" ]
check "JUnit: the words are there" python3 -c 'import sys, xml.dom.minidom as m
sys.exit(not any("x\\nok 999 - injected\\x1b[31m # SKIP <&\"\\xef\\xbf\\xbe" in t.getAttribute("message") for t in m.parse(sys.argv[1]).getElementsByTagName("failure")))' "$tmp/junit.xml"
cat >"$tmp/evil.lua" <<-'LUA'
	return { name = "evil", summary = "says what it should not", diagnose = function(run)
		return { { metric = "any", indicted = {}, abstain = true, reason = "x\nok 999\27[31m", evidence = { ["k\27\n"] = "v\127\27" } } }
	end }
LUA
"$culprit" diagnose results/runs/errors-20261121 --cell 3 --detector "$tmp/evil.lua" --evidence >"$tmp/verdicts" 2>&1
check "a verdict is printed" grep -qF 'abstains: x\nok 999\x1b[31m' "$tmp/verdicts"
check "with its evidence, and no control characters" plain "$tmp/verdicts"
done_testing
