# shellcheck shell=bash
# What the tests in virtual machines share. Source it first: the test then begins anew, contained (see vms.py), so that all that it
# makes ends with it. It gives
#     up NODE ... [--kernel NAME] [--fresh]    boots machines, or ends the test with a failure
#     down [NODE ...]                          cuts their power
#     on NODE COMMAND ...                      runs a command there
#     bundle NODE                              copies the agent there: /root/agent (VM_AGENT: its folder, of another build)
#     each COMMAND ...                         runs a command on all of $nodes at once; each prints "NODE: " and what it says in one line
#     volume                                   a GlusterFS volume of s1 to s3 by glusterd, mounted on c1 as /mnt
#     bricks [NODE ...]                        the same of services that systemd-run makes, without glusterd; of these nodes only
#     left                                     what nodes hold of culprit's, a line each; the same before as after, if nothing is left
#     culprit ARGUMENT ...                     the orchestrator of this build
#     scenario NAME FAULTS SECONDS [ATTEMPTS]  writes $tmp/NAME.lua: FAULTS are items of a Lua list
#     begin NAME; ended CODE TEXT              runs it in the background into $tmp/NAME; holds if the run ends with CODE
#     sql NAME QUERY; victim_of FAULT; confirmed FAULT    of that run, the last two of the one that began last
#     note TEXT ...                            a line of the log
# DIR=$OUT/vm/run has the machines' files, $tmp is removed at the end. The test's TAP is kept in $OUT/vm/log, for page.py.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
if [ "${CULPRIT_VMS:-}" != contained ]; then
	[ "$(id -u)" -eq 0 ] || { echo "1..0 # SKIP virtual machines need root"; exit 0; }
	OUT=$(realpath "${OUT:-out}")
	export OUT
	mkdir -p "$OUT/vm/log"
	# The log is written outside: what is contained ends with the test.
	python3 ci/vm/vms.py contain bash "ci/vm/$(basename "$0")" 2>&1 | tee "$OUT/vm/log/$(basename "$0" .t).tap"
	exit "${PIPESTATUS[0]}"
fi
. ci/tests/tap.sh
DIR=${VM_DIR:-$OUT/vm/run}
tmp=$(mktemp -d)
trap 'echo "# seconds: $SECONDS"; rm -rf "$tmp"' EXIT
mkdir -p "$DIR"
exec 9>"$DIR/lock"
flock -n 9 || skip_all "another test uses the machines of $DIR"

note() { echo "# $*"; }
vms() { local command=$1; shift; python3 ci/vm/vms.py "$command" "$DIR" "$@" 9>&-; }
up() {
	local said
	if said=$(vms up "$@" 2>&1); then note "$said"; else
		not_ok "machines boot: $*" "$said"
		tail -n 20 "$DIR"/*.console | sed 's/^/# /'
		done_testing
	fi
}
down() { vms down "$@"; }
on() { local node=$1; shift; ssh -F "$DIR/ssh_config" "$node" "$@" 9>&-; }
each() {
	local n
	for n in $nodes; do { echo "$n: $(on "$n" "$@" 2>&1 | xargs)"; } & done | sort
}
volume() {
	nodes="s1 s2 s3" each systemctl start glusterd
	on s1 'set -e
		gluster peer probe s2
		gluster peer probe s3
		for i in $(seq 120); do [ $(gluster peer status | grep -c "(Connected)") = 2 ] && break; sleep 1; done
		gluster --mode=script volume create vol s1:/srv/data/brick s2:/srv/data/brick s3:/srv/data/brick
		gluster --mode=script volume set vol features.shard on
		gluster --mode=script volume set vol features.shard-block-size 4MB
		gluster volume start vol' && on c1 'mount -t glusterfs s1:/vol /mnt && mountpoint /mnt'
}
# Rules, queues that are no default, journals, agents, hogs, stopped processes, storage that cannot be written.
left() {
	each 'exec 2>/dev/null
		nft list tables | grep culprit; tc qdisc | grep -Ev "^qdisc (noqueue|fq_codel|pfifo_fast|mq) "; ls -A /var/lib/culprit/undo
		ps -eo stat,comm --no-headers | grep -E "^T| (culprit-.*|sgm?_dd|dd)$"
		# By effect: after an error of ext4 /proc/mounts says "rw".
		[ ! -d /srv/data ] || { touch /srv/data/.left && rm /srv/data/.left; } || echo /srv/data cannot be written; echo end'
}
# Bricks of services that systemd-run makes, without glusterd, and their mount on c1; of the nodes named only.
bricks() {
	local n failed=0
	[ $# -gt 0 ] || set -- s1 s2 s3 c1
	for n; do
		case $n in
		s*) on "$n" 'mkdir -p /srv/data/brick; cat >/root/brick.vol
			systemctl -q reset-failed brick 2>/dev/null; systemd-run -q --unit=brick -p Restart=always glusterfsd -N -f /root/brick.vol -l /var/log/brick.log
			for i in $(seq 60); do ss -Hltn "sport = 24007" | grep -q . && exit; sleep 1; done; exit 1' <ci/vm/brick.vol ;;
		c*) on "$n" 'cat >/root/client.vol; glusterfs -f /root/client.vol -l /var/log/client.log /mnt
			for i in $(seq 60); do cat /mnt/.meta/graphs/active/s?/private | grep -c "connected = 1" | grep -qx 3 && exit; sleep 1; done; exit 1' \
			<ci/vm/client.vol ;;
		esac || failed=1
	done
	return $failed
}
bundle() { tar -C "${VM_AGENT:-$OUT/agent}" -cf - . | on "$1" 'rm -rf /root/agent; mkdir /root/agent; tar -C /root/agent -xf -'; }
culprit() { "$OUT/culprit" "$@" 9>&-; }
scenario() {
	cat >"$tmp/$1.lua" <<-L
	return {
		name = "$1", workloads = { { "ddw", per_server = "256KiB", records = 64 } },
		faults = { $2 }, detectors = { "always-healthy" },
		phases = { before = "3s", fault = "$3s", after = "1s" }, attempts = ${4:-2},
		-- The machines are emulated on a busy one, whose load is no news.
		gates = { clock = "200ms", drift = "200ms", load = "95%", process = "100%", steal = "100%", pressure = "100%", onset = "60s", wait = "120s" },
	}
	L
}
begin() {
	current=$1
	# Not through the function culprit: $! would be its subshell, not the program.
	"$OUT/culprit" run --inventory "$DIR/inventory.lua" --seed 7 -o "$tmp/$1" "$tmp/$1.lua" >"$tmp/$1.said" 2>&1 9>&- &
	run=$!
}
ended() {
	wait $run
	is "$2" $? "$1"
	sed 's/^/# /' "$tmp/$current.said"
}
sql() { sqlite3 "$tmp/$1/run.db" "$2" 2>/dev/null; }
victim_of() { sql "$current" "SELECT victims->>0 FROM cell WHERE fault LIKE '%$1%'"; }
confirmed() { is "$1: its cell is confirmed" "$(sql "$current" "SELECT max(outcome = 'confirmed') FROM cell JOIN attempt ON cell = cell.number WHERE fault LIKE '%$1%'")" 1; }
export CULPRIT_KEEP=${CULPRIT_KEEP:-$OUT/vm/failures/$(basename "$0" .t)}
rm -rf "$CULPRIT_KEEP"
nodes="s1 s2 s3 c1 o1"
note "build: $(culprit --version), tested on $(date -u +%F), on Linux $(uname -r)"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi; }
