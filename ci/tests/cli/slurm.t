#!/bin/bash
# ci/templates/slurm with Debian's Slurm: munged, slurmctld and six slurmd in namespaces and their own folder. Nodes that
# Slurm allocates become the inventory of a shard; the site prepares them and gets them back, also from a job that was
# cancelled, ran out of time or failed; the last job merges. Slurm is real, and so is all that culprit does without a node:
# its plan, table, report and corpus. In place of running cells, shards of a recorded run are put where they are expected.
# shellcheck disable=SC2034,SC2016
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/cli/split.sh
for program in munged slurmctld slurmd sbatch sqlite3 ip; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || skip_all "no $program"
done
[ "$(id -u)" = 0 ] || skip_all "needs root, for namespaces"
if [ "${1:-}" != inside ]; then
	unshare -n true 2>/dev/null || skip_all "no namespaces may be made here"
	unshare -n -u -p -m -f --mount-proc --kill-child=KILL bash "$0" inside </dev/null
	exit
fi
export PATH=$PATH:/usr/sbin:/sbin
root=$PWD
culprit=$root/${OUT:-out}/culprit
tmp=$(mktemp -d)
chmod 755 "$tmp" # munged asks for it
trap 'kill -KILL $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$tmp"' EXIT

# A host of its own. getaddrinfo wants an address next to loopback's.
hostname slurmtest
ip link set lo up
ip link add v0 type veth peer name v1 && ip address add 10.65.0.1/24 dev v0 && ip link set v0 up && ip link set v1 up || skip_all "no veth"
printf '127.0.0.1 localhost\n10.65.0.1 slurmtest\n' >"$tmp/hosts"
mount --bind "$tmp/hosts" /etc/hosts
d=$tmp/slurm
mkdir -p "$d"/{state,spool/n{1..6}} "$tmp/work"
head -c 1024 /dev/urandom >"$d/key" && chmod 400 "$d/key"
cat >"$d/slurm.conf" <<C
ClusterName=culprit
SlurmctldHost=slurmtest(10.65.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$d/munge.sock
CredType=cred/munge
StateSaveLocation=$d/state
SlurmdSpoolDir=$d/spool/%n
SlurmctldPidFile=$d/slurmctld.pid
SlurmdPidFile=$d/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SelectType=select/linear
SchedulerType=sched/builtin
KillWait=120
SlurmctldTimeout=600
SlurmdTimeout=600
MessageTimeout=100
NodeName=n[1-6] NodeHostname=slurmtest NodeAddr=10.65.0.1 Port=[17001-17006] CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
C
export SLURM_CONF=$d/slurm.conf
munged --foreground --key-file "$d/key" --socket "$d/munge.sock" --pid-file "$d/munge.pid" --log-file "$d/munge.log" --seed-file "$d/seed" >"$d/munge.out" 2>&1 &
until_true 60 [ -S "$d/munge.sock" ] || skip_all "munged does not start here: $(tail -n 1 "$d/munge.out")"
slurmctld -D >"$d/ctld.out" 2>&1 &
for i in 1 2 3 4 5 6; do slurmd -D -N n$i >"$d/n$i.out" 2>&1 & done
idle() { timeout 20 sinfo -h -t idle -o %D | grep -qx 6; }
until_true 100 idle || { tail -n 5 "$d"/*.out | sed 's/^/# /'; skip_all "Slurm does not start here"; }

# The recorded run, cut into the shards that the jobs are to have.
cd "$tmp/work" || exit 1
cat >four.lua <<'L'
return { file_system = { type = "glusterfs" }, nodes = { { name = "s1", role = "server" }, { name = "s2", role = "server" },
  { name = "s3", role = "server" }, { name = "s4", role = "server" }, { name = "c1", role = "client" } } }
L
mkdir rec && gunzip -c "$root/results/corpora/matrix/run.db.gz" >rec/run.db
"$culprit" rescore rec --detector peer-robust --save >/dev/null
split rec 3 four.lua p || { not_ok "a recorded run is cut"; done_testing; }

cp -r "$root/ci/templates/slurm" site
cat >>site/settings.sh <<S
CULPRIT=$tmp/work/stand-in SCENARIO=p.lua SEED=20261122 SHARDS=3 RUNS=$tmp/work/runs
SHARD_OPTIONS=(--time=10) MERGE_OPTIONS=(--time=10)
SERVER_KEYS='storage = "/data/brick"' CLIENT_KEYS='mount = "/mnt/test"'
S
cat >site/site.sh <<'S'
#!/bin/bash
echo "$1 ${RUN##*/} $SERVER_NODES / $CLIENT_NODES" >>log
[[ $1 == release && ! -s $2 ]] && exit 1
[[ $1 != prepare || ! -e fail-prepare ]] || exit 1
S
cat >stand-in <<S
#!/bin/bash
# Where culprit needs nodes: says what it was asked for, has the inventory and the plan checked, and leaves a recorded shard.
real=$culprit
S
cat >>stand-in <<'S'
case $1 in
undo) echo "undo ${RUN##*/}" >>log; exec grep -q 'name = "s4"' "$3" ;;
run | resume)
	echo "$*" >>log
	n=${RUN##*-}
	if [[ $1 == run ]]; then
		"$real" run p.lua --shard "$4" --seed "$6" --inventory "$8" --dry-run >plan.$n || exit 2
		cp -r p-$n "$RUN" || exit 2
	fi
	[[ -e hang-$n ]] || exit 0
	trap 'echo "TERM ${RUN##*/}" >>log; exit 3' TERM
	echo "hangs ${RUN##*/}" >>log
	while :; do sleep 0.1; done ;;
*) exec "$real" "$@" ;;
esac
S
chmod +x stand-in site/*.sh

logged() { grep -q -- "$1" log; }
ended() { [ -z "$(timeout 20 squeue -h)" ]; }
refuses() { local said; said=$(bash site/submit.sh "${@:2}" 2>&1); [ $? -eq 2 ] && grep -q -- "$1" <<<"$said" && ended || { echo "$said"; return 1; }; }
submit() { bash site/submit.sh "$@" >submitted 2>&1 && job=$(sed -n 's/.*: job \([0-9]*\);.*/\1/p' submitted) && [ "$job" ] || { cat submitted; return 1; }; }
log_is() { diff - log; }

check "shards that are no numbers are refused" refuses "give shards as 2,5-7" 'x;y'
check "shards that are not there, too" refuses "there are shards 1 to 3, not 4" 2-4
check "a node's name that is no name" bash -c "bash site/inventory.sh a b 'c\", x' d e f 2>&1 | grep -q 'is no name of a node'"
check "too few nodes" bash -c "bash site/inventory.sh n1 n2 2>&1 | grep -q 'has 2 nodes, and settings.sh asks for 6'"

# All shards, then the merge.
check "shards are submitted" submit
check "... and end" until_true 400 ended
grep -v '^undo\|^release\|^prepare' log >asked
check "each was run, as a shard of one plan" diff asked <(for i in 1 2 3; do
	echo "run p.lua --shard $i/3 --seed 20261122 --inventory $tmp/work/runs/shard-$i.inventory.lua -o $tmp/work/runs/shard-$i --quiet"; done)
check "the plan is the shard's" bash -c "cmp plan.2 <('$culprit' run p.lua --seed 20261122 --inventory four.lua --shard 2/3 --dry-run)"
check "nodes were prepared before, cleaned and given back after" diff <(grep -v '^run' log) <(for i in 1 2 3; do
	printf '%s\n' "prepare shard-$i n3 n4 n5 n6 / n2" "undo shard-$i" "release shard-$i n3 n4 n5 n6 / n2"; done)
cat >want.lua <<'L'
return {
  file_system = { type = "glusterfs" },
  nodes = {
    { name = "s1", role = "server", ssh = "n3", storage = "/data/brick" },
    { name = "s2", role = "server", ssh = "n4", storage = "/data/brick" },
    { name = "s3", role = "server", ssh = "n5", storage = "/data/brick" },
    { name = "s4", role = "server", ssh = "n6", storage = "/data/brick" },
    { name = "c1", role = "client", ssh = "n2", mount = "/mnt/test" },
  },
}
L
check "the allocation became the inventory" diff want.lua runs/shard-2.inventory.lua
check "the last job merged" diff <("$culprit" table --merge runs/shard-{1,2,3}) runs/merged/table.txt
check "... into a report and a corpus, too" bash -c "[ -s runs/merged/report.html ] && '$culprit' rescore runs/merged --detector peer-robust >/dev/null"
check "... of all cells" diff <("$culprit" table rec --tap) <("$culprit" rescore runs/merged --detector peer-robust --tap | sed '/seeded/d')

# One that is asked to stop in time, and continues.
again() { rm -rf log runs hang-* fail-*; mkdir runs; }
again
touch hang-2
submit 2
check "a shard hangs" until_true 200 logged '^hangs'
timeout 60 scancel --batch --signal=USR1 "$job"
check "... is asked to stop" until_true 200 ended
check "... culprit is, once, and the nodes go back" diff <(tail -n +3 log) <(printf '%s\n' 'hangs shard-2' 'TERM shard-2' 'undo shard-2' 'release shard-2 n3 n4 n5 n6 / n2')
check "... with culprit's exit code" bash -c "tail -n 1 runs/shard-2.log | grep -q 'ended with 3' && scontrol show job $job | grep -q 'ExitCode=3:0'"
check "one shard is a table, too" grep -q '^shard 2/3: 21 of' runs/merged/table.txt
rm hang-2 log
submit 2
check "submitted again it goes on" until_true 200 ended
check "... with its run and its inventory" grep -qx "resume $tmp/work/runs/shard-2 --inventory $tmp/work/runs/shard-2.inventory.lua --quiet" log

# Cancelled: Slurm sends TERM to all processes.
again
touch hang-1
submit 1
check "a shard hangs again" until_true 200 logged '^hangs'
timeout 60 scancel "$job"
check "... is cancelled" until_true 200 ended
check "... the nodes go back even so" until_true 200 logged '^release shard-1 n3 n4 n5 n6 / n2'
check "... clean, after culprit has ended" diff <(grep -o '^[TuU][a-zA-Z]* shard-1' log) <(printf '%s\n' 'TERM shard-1' 'undo shard-1')

# Out of time.
again
touch hang-3
sed -i 's/^SHARD_OPTIONS=.*MERGE/SHARD_OPTIONS=(--time=1 --signal=B:USR1@55) MERGE/' site/settings.sh
submit 3
check "a shard that runs out of time ends" until_true 400 ended
check "... having been asked to" grep -q 'shard 3: asked to stop by USR1' runs/shard-3.log
check "... and its nodes go back" diff <(tail -n 2 log) <(printf '%s\n' 'undo shard-3' 'release shard-3 n3 n4 n5 n6 / n2')

# Not prepared.
again
touch fail-prepare
sed -i 's/^SHARD_OPTIONS=.*MERGE/SHARD_OPTIONS=(--time=10) MERGE/' site/settings.sh
submit 1
check "a shard that cannot be prepared ends" until_true 200 ended
check "... is not run, and its nodes go back" diff log <(printf '%s\n' 'prepare shard-1 n3 n4 n5 n6 / n2' 'undo shard-1' 'release shard-1 n3 n4 n5 n6 / n2')
check "... and says so" bash -c "grep -q \"site.sh prepare' failed\" runs/shard-1.log && grep -q 'ended with 3' runs/shard-1.log && grep -q 'no shard has a run' runs/merge.log"
done_testing
