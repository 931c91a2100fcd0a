#!/bin/bash
# Runs every test through prove. Tests of the kernel and of the lab need root; it asks for sudo and says why.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-out}

# The detectors on recorded runs, with the commands of ci/templates (ci/tests/judge/corpora.t compares the two).
detectors() {
	local bad=0
	culprit rescore results/corpora/ci --detector peer-robust --detector peer-threshold --detector crash-hang,timeout=5s --detector errno-propagation --detector errno-silent,listen=5s --baseline results/corpora/ci/baseline.json --tap
	bad=$?
	culprit rescore results/corpora/errors --detector peer-robust --detector peer-threshold --detector crash-hang,timeout=5s --detector errno-propagation --detector errno-silent,listen=5s --baseline results/corpora/errors/baseline.json --tap
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
	run=(sudo "--preserve-env=CI,CULPRIT_FAILURES")
fi
# Tests on labs wait more than they compute, so three run at a time, the longest first. Tests that measure the kernel run alone.
# This machine itself is a node of one, where the disks of labs would come and go.
machine=ci/tests/replay/replay_ssh.t
labs=(ci/tests/experiment/quick.t ci/tests/experiment/resume.t ci/tests/experiment/full.t ci/tests/primitives/faults_kill.t)
for t in ci/tests/*.t ci/tests/*/*.t; do
	[[ " ${labs[*]} $machine " == *" $t "* ]] || labs+=("$t")
done
bad=0
export CULPRIT_FAILURES=$PWD/$out/failures
rm -f "$CULPRIT_FAILURES"
# Programs that measure the kernel, and act on it, run alone; the others two at a time.
alone=() others=()
for t in "$out"/tests/*/*_test; do
	case $t in */capture/* | */primitives/* | */agent/*) alone+=("$t") ;; *) others+=("$t") ;; esac
done
"${run[@]}" prove --timer --failures --merge --exec ci/tests/run_test.sh "${alone[@]}" || bad=1
"${run[@]}" prove --timer --failures --merge --jobs 2 --exec ci/tests/run_test.sh "${others[@]}" || bad=1
# A test that hangs fails; told to end, it takes its lab down.
"${run[@]}" prove --timer --failures --merge --jobs 3 --exec 'timeout --foreground -k 60 2400 bash' "${labs[@]}" || bad=1
"${run[@]}" prove --timer --failures --merge --exec 'timeout --foreground -k 60 2400 bash' "$machine" || bad=1
[[ ! -s $CULPRIT_FAILURES ]] || { echo "what the failed tests said:"; cat "$CULPRIT_FAILURES"; }
exit $bad
