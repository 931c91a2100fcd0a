#!/bin/bash
# culprit trace --cgroup: only processes inside the cgroup and its sub-cgroups are seen.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" -eq 0 ] || skip_all "the in-kernel tracer needs root"
culprit=$PWD/${OUT:-out}/culprit
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$root" ] || skip_all "no cgroup v2 is mounted"
group=$root/culprit-test-$$
mkdir "$group" "$group/below" 2>/dev/null || skip_all "cgroups cannot be made in $root"
tmp=$(mktemp -d)
trap 'rmdir "$group/below" "$group"; rm -rf "$tmp"' EXIT
"$culprit" trace --tracer ebpf -o "$tmp/try" -- true 2>"$tmp/why" || skip_all "$(tail -n 1 "$tmp/why")"

# The program enters the given cgroup, looks at a file there, and leaves it to look at another. The log may contain the first
# file once, and not the second.
calls() { # CGROUP: the files that the program looks at there, according to a tracer of $group
	cat >"$tmp/program" <<P
echo \$\$ >$root/cgroup.procs
cat $tmp/before
echo \$\$ >$1/cgroup.procs
cat $tmp/within
echo \$\$ >$root/cgroup.procs
cat $tmp/after
P
	rm -f "$tmp/log"
	"$culprit" trace --tracer ebpf --cgroup "$group" -o "$tmp/log" -- sh "$tmp/program" >/dev/null
	"$culprit" log --json "$tmp/log" | grep '"call":"openat"' | grep -o "$tmp/\(before\|within\|after\)" | sort | uniq -c | awk '{ print $2 }' |
		sed 's|.*/||' | tr '\n' ' '
}
touch "$tmp/before" "$tmp/within" "$tmp/after"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi; }
is "only calls inside the cgroup are recorded" "$(calls "$group")" "within "
is "... also in a cgroup below it" "$(calls "$group/below")" "within "
is "... and no calls outside the cgroup" "$(calls "$root")" ""
done_testing
