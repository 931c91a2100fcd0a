#!/bin/bash
# Runs every test through prove. Tests of the kernel and of the lab need root; it asks for sudo and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

# The detectors on recorded runs, with the commands of ci/templates (ci/tests/judge/corpora.t compares the two).
detectors() {
	local bad=0
	culprit rescore results/corpora/ci --detector peer-robust --detector peer-threshold --detector crash-hang,timeout=5s --detector errno-propagation --baseline results/corpora/ci/baseline.json --tap
	bad=$?
	culprit rescore results/corpora/errors --detector peer-robust --detector peer-threshold --detector crash-hang,timeout=5s --detector errno-propagation --baseline results/corpora/errors/baseline.json --tap
	bad=$((bad | $?))
	culprit rescore results/corpora/matrix --detector peer-robust --detector peer-threshold --baseline results/corpora/matrix/baseline.json --tap
	return $((bad | $?))
}
said=$(PATH="$PWD/$out:$PATH" detectors) || { grep -v '^ok' <<<"$said"; echo "make check: a detector has become worse on a recorded run" >&2; exit 1; }
echo "detectors on recorded runs: no regression ($(grep -c '^ok' <<<"$said") of $(grep -c '^\(not \)\?ok' <<<"$said") verdicts right, as in the baselines)"

run=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make check: tests of the lab, agent and tracers need root, and there is no sudo" >&2; exit 2; }
	echo "tests of the lab, agent and tracers need root: asking sudo"
	run=(sudo --preserve-env=CI)
fi
# Tests on labs wait more than they compute, so two run at a time, the longest first. Tests that measure the kernel run alone.
labs=(ci/tests/experiment/quick.t ci/tests/experiment/resume.t ci/tests/primitives/faults_kill.t)
for t in ci/tests/*.t ci/tests/*/*.t; do
	[[ " ${labs[*]} " == *" $t "* ]] || labs+=("$t")
done
bad=0
"${run[@]}" prove --timer --failures --merge "$out"/tests/*/*_test || bad=1
"${run[@]}" prove --timer --failures --merge --jobs 2 "${labs[@]}" || bad=1
exit $bad
