#!/bin/bash
# Proves that the README's commands work on a bare Debian 12, each as the first one: a root file system with nothing but
# git and make, a clone of this commit, and one command. Every package that is not in packages.txt is missing there.
#
#   ci/bare.sh [COMMAND ...]    "make demo", "make" and "make unit" are the default
#
# All mounts and processes are in their own namespaces and end with them. The mirror is the one that apt uses here.
set -euo pipefail
cd "$(dirname "$0")/.."
die() { echo "ci/bare.sh: $*" >&2; exit 2; }
[[ $EUID -eq 0 ]] || die "needs root, for another root file system"
command -v mmdebstrap >/dev/null || die "there is no mmdebstrap (ci/install.sh --all)"
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
[[ -n $mirror ]] || die "this machine's apt has no source for Debian 12's main"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/culprit-bare-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
mmdebstrap --quiet --variant=minbase --include=git,make,ca-certificates bookworm "$work/root.tar" "deb ${mirror%/} bookworm main"
git clone -q --no-hardlinks . "$work/clone"

[[ $# -gt 0 ]] || set -- "make demo" "make" "make unit"
failed=0
for command; do
	root=$work/root
	rm -rf --one-file-system "$root"
	mkdir "$root"
	tar -C "$root" -xf "$work/root.tar" --exclude='./dev/*'
	cp -a "$work/clone" "$root/root/culprit"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	began=$SECONDS
	# shellcheck disable=SC2016
	if unshare --mount --pid --fork --kill-child=KILL bash -ec '
		mount --make-rprivate /
		mount --bind "$1" "$1" # what is inside makes its mounts private, for which / must be one
		mount -t proc proc "$1/proc"
		mount --rbind /sys "$1/sys"
		mount --rbind /dev "$1/dev"
		mount -t tmpfs tmpfs "$1/run"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8 \
			chroot "$1" sh -c "cd /root/culprit && $2"' bash "$root" "$command" </dev/null >"$work/log" 2>&1; then
		echo "ok: $command, as the first command: $((SECONDS - began)) s"
	else
		echo "FAILED: $command, as the first command: $((SECONDS - began)) s; it ended with:"
		tail -n 30 "$work/log"
		failed=1
	fi
done
exit $failed
