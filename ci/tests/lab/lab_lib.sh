# What the lab's tests share: a lab of the test's own, and what may be left of it.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/../subnet.sh"
# is NAME GOT WANTED: holds if the two strings are the same.
is() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi
}

# exits NAME CODE PATTERN COMMAND...: holds if the command ends with CODE and prints a line that matches.
exits() {
	local name=$1 code=$2 pattern=$3 said got
	shift 3
	said=$("$@" 2>&1)
	got=$?
	if [ "$got" = "$code" ] && grep -q -- "$pattern" <<<"$said"; then
		ok "$name"
	else
		not_ok "$name" "exit code $got, expected $code and '$pattern': $said"
	fi
}

culprit=$(realpath "${CULPRIT:-${OUT:-out}/culprit}")

[ "$(id -u)" = 0 ] || skip_all "a lab needs root"
for device in /dev/fuse /dev/loop-control; do
	[ -c $device ] || skip_all "there is no $device"
done
for program in glusterfsd glusterfs sshd mkfs.ext4 ip tc; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || skip_all "there is no $program"
done

dir=/run/culprit-test-$$
take_subnet || exit 1
# The lab's link on this machine, after which its control groups are named: lab_host_link in harness/lab/layout.c; lab_etc.t compares the two.
link_of() { # FOLDER
	local hash=$((0xcbf29ce484222325)) i code
	for ((i = 0; i < ${#1}; i++)); do
		printf -v code %d "'${1:i:1}"
		hash=$(((hash ^ code) * 0x100000001b3))
	done
	printf 'lab%010x\n' $((hash & 0xffffffffff))
}
link=$(link_of "$dir")
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1' EXIT

up() { "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 3 --clients 2 "$@"; }
down() { "$culprit" lab down --dir "$dir"; }
status() { "$culprit" lab status --dir "$dir"; }
inside() {
	local node=$1
	shift
	"$culprit" lab exec --dir "$dir" "$node" -- "$@"
}

# What this machine still holds of the lab; nothing, if all is well.
remains() {
	local p
	for p in $(grep -lzFx "CULPRIT_LAB=$dir" /proc/[0-9]*/environ 2>/dev/null); do
		[ ! -e "${p%/environ}" ] || echo "process $(tr '\0' ' ' <"${p%/environ}/cmdline")"
	done 2>/dev/null
	grep -F "$dir" /proc/self/mountinfo
	grep -lF "$dir/" /sys/block/loop*/loop/backing_file 2>/dev/null
	ip -o address | grep -F " $net."
	ip -o route | grep -F "$subnet"
	ip -o link | grep -F "$link"
	find /sys/fs/cgroup -type d -name "culprit-$link*" -prune 2>/dev/null
	[ ! -e "$dir" ] || ls -d "$dir"
}
# After an 'up' that failed: its logs, and nothing else.
only_logs() {
	local more
	more=$(remains | grep -vxF "$dir"; find "$dir" -mindepth 1 -maxdepth 1 ! -name lock ! -name log ! -name build.log)
	[ -z "$more" ] && [ -e "$dir/build.log" ] || { echo "${more:-no build.log}"; return 1; }
}
clean() { [ -z "$(remains)" ] || { remains; return 1; }; }
