#!/bin/bash
# make check-vm: tests on virtual machines with Debian's own kernels and systemd; builds their image the first time (five minutes of processor time).
# VM_TESTS="tracers" runs only that; VM_KERNELS="bookworm" only that kernel. Emulated, so slow: about a minute for a boot.
# /dev/kvm is not used: on some hosts it is there and guests hang. Run it on an otherwise idle machine.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
export OUT=${OUT:-out}

skip() { echo "ci/vm/check.sh: skipped: $*"; exit 0; }
[[ $EUID -eq 0 ]] || skip "virtual machines need root, for their network and disks"
for program in qemu-system-x86_64 qemu-img mmdebstrap mke2fs unshare prove sqlite3; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || skip "there is no $program (ci/install.sh --all)"
done
[[ -c /dev/net/tun ]] || skip "there is no /dev/net/tun"
[[ $(uname -m) == x86_64 ]] || skip "the machines are x86_64's"
[[ -x $OUT/culprit && -x $OUT/agent/culprit-agent ]] || { echo "ci/vm/check.sh: there is no $OUT/culprit; make programs" >&2; exit 2; }

ci/vm/image.sh || exit
tests=()
for name in ${VM_TESTS:-tracers faults own ends}; do
	[[ -f ci/vm/$name.t ]] || { echo "ci/vm/check.sh: there is no ci/vm/$name.t (VM_TESTS)" >&2; exit 2; }
	tests+=("ci/vm/$name.t")
done
prove --timer "${tests[@]}"
code=$?
logs=("${tests[@]/#ci\/vm/$OUT/vm/log}")
ci/vm/page.py "${logs[@]/%.t/.tap}" >"$OUT/vm/page.md" && echo "ci/vm/check.sh: the page of it is $OUT/vm/page.md; commit it as results/vm-DATE.md"
exit $code
