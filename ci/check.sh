#!/bin/bash
# Runs every test through prove. Tests of the kernel and the lab need root: asks for sudo and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

# The detectors on recorded runs, by the commands of ci/templates (ci/tests/judge/corpora.t holds the two together).
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
echo "detectors: $(grep -c '^ok' <<<"$said") of $(grep -c '^\(not \)\?ok' <<<"$said") tests on recorded runs well, the others known; no regression"

run=()
if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || { echo "make check: tests of the lab, agent and tracer need root, and there is no sudo" >&2; exit 2; }
	echo "tests of the lab, agent and tracer need root: asking sudo"
	run=(sudo --preserve-env=CI)
fi
# Tests on labs wait more than they work, so they go two at a time, the longest first; what measures the kernel goes alone.
labs=(ci/tests/experiment/quick.t ci/tests/experiment/resume.t ci/tests/primitives/faults_kill.t)
for t in ci/tests/*.t ci/tests/*/*.t; do
	[[ " ${labs[*]} " == *" $t "* ]] || labs+=("$t")
done
bad=0
"${run[@]}" prove --timer --failures --merge "$out"/tests/*/*_test || bad=1
"${run[@]}" prove --timer --failures --merge --jobs 2 "${labs[@]}" || bad=1
exit $bad
