# shellcheck shell=bash
# What the tests in virtual machines share. Source it first: the test then begins anew, contained (see vms.py), so that all that it
# makes ends with it. It gives
#     up NODE ... [--kernel NAME] [--fresh]    boots machines, or ends the test with a failure
#     down [NODE ...]                          cuts their power
#     on NODE COMMAND ...                      runs a command there
#     bundle NODE                              copies the agent there: /root/agent (VM_AGENT: its folder, of another build)
#     culprit ARGUMENT ...                     the orchestrator of this build
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
bundle() { tar -C "${VM_AGENT:-$OUT/agent}" -cf - . | on "$1" 'rm -rf /root/agent; mkdir /root/agent; tar -C /root/agent -xf -'; }
culprit() { "$OUT/culprit" "$@" 9>&-; }
note "build: $(culprit --version), tested on $(date -u +%F), on Linux $(uname -r)"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi; }
