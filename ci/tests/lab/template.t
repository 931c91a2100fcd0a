#!/bin/bash
# The template of 'culprit new file-system' works as it stands; and MooseFS, which was written by the manual.
. "$(dirname "$0")/../lab/lab_lib.sh"

work=$(mktemp -d)
fs_up() { "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 3 --clients 2 --fs "$1"; }
here() { PATH=$PATH:/usr/lib/openssh:/usr/sbin command -v "$@" >/dev/null; }

# whole NAME: up, every function on every host, one file through it, down.
whole() {
	exits "$1: up" 0 '3 servers, 2 clients' fs_up "$1"
	exits "$1: status" 0 'lab.* is up' status
	said=$("$culprit" doctor --inventory "$dir/inventory.lua" 2>&1)
	is "$1: doctor finds nothing wrong" "$?" 0
	check "$1: every function was called" grep -q 'every server takes part' <<<"$said"
	sed 's/^/# /' <<<"$said"
	inside c1 sh -c 'echo hello >/mnt/fs/a'
	is "$1: another client reads what one wrote" "$(inside c2 cat /mnt/fs/a)" hello
	down >/dev/null
	check "$1: nothing is left" clean
}

cd "$work" || exit
check "new file-system" "$culprit" new file-system mine
if here sshfs && here mergerfs && here socat && here sftp-server; then
	whole ./mine.lua
else
	ok "the template # SKIP there is no sshfs, mergerfs or socat: ci/install.sh --all installs them"
fi
if here mfsmaster && here mfschunkserver && here mfsmount; then
	whole moosefs
else
	ok "MooseFS # SKIP its programs are not here: ci/install.sh --all installs them"
fi
cd / && rm -rf "$work"
done_testing
