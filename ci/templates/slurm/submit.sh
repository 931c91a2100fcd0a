#!/bin/bash
# submit.sh [SHARDS]: submits the shards ("2,5-7"; all of them unless told) as array jobs, and a job that merges when they have
# ended. A shard that has a run already continues with it: submit again what was cancelled or has failed.
set -euo pipefail
CULPRIT_SLURM=$(cd "$(dirname "$0")" && pwd)
export CULPRIT_SLURM
# shellcheck source=settings.sh
. "$CULPRIT_SLURM/settings.sh"
which=${1:-1-$SHARDS}

die() { echo "submit.sh: $*" >&2; exit 2; }
[[ $which =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] || die "give shards as 2,5-7, not '$which'"
for number in ${which//[,-]/ }; do
	[[ $number -ge 1 && $number -le $SHARDS ]] || die "there are shards 1 to $SHARDS, not $number"
done
[[ $CONTROLLER == [01] && $SERVERS -ge 2 && $CLIENTS -ge 1 ]] || die "settings.sh: CONTROLLER is 0 or 1, and there are two servers and a client at least"
[[ -f $SCENARIO ]] || die "settings.sh: there is no scenario '$SCENARIO'"
mkdir -p "$RUNS"

shards=$(sbatch --parsable --job-name=culprit --nodes=$((CONTROLLER + CLIENTS + SERVERS)) --array="$which" \
	--output="$RUNS/shard-%a.log" --open-mode=append --export=ALL "${SHARD_OPTIONS[@]}" "$CULPRIT_SLURM/shard.sbatch")
shards=${shards%%;*}
merge=$(sbatch --parsable --job-name=culprit-merge --nodes=1 --dependency="afterany:$shards" \
	--output="$RUNS/merge.log" --open-mode=append --export=ALL "${MERGE_OPTIONS[@]}" "$CULPRIT_SLURM/merge.sbatch")
echo "shards $which: job $shards; merged in $RUNS/merged by job ${merge%%;*}"
echo "to end it: scancel --batch --signal=USR1 $shards (each shard undoes its fault and gives its nodes back)"
