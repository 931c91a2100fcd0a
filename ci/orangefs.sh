#!/bin/bash
# Builds OrangeFS from a source archive and installs what the lab needs of it (server, FUSE client, check, copy) in
# /opt/orangefs, once per machine: a stamp holds the checksums of the archive and of this recipe. Usage:
#
#   ci/orangefs.sh [ARCHIVE]
#
# The archive: the argument, $ORANGEFS_ARCHIVE, or the newest ../shared/third_party/orangefs-*.tar.xz next to the
# checkout. Without one nothing is done, the reason is printed, and tests that need OrangeFS are skipped. Silent when
# the installed one fits. Needs root, and the packages of packages-all.txt.
set -euo pipefail
prefix=/opt/orangefs
die() { echo "ci/orangefs.sh: $*" >&2; exit 2; }

here=$(cd "$(dirname "$0")/.." && pwd)
[[ $# -le 1 ]] || die "usage: ci/orangefs.sh [ARCHIVE]"
archive=${1:-${ORANGEFS_ARCHIVE:-}}
if [[ -z $archive ]]; then
	for a in "$here"/../shared/third_party/orangefs-*.tar.xz; do
		[[ -f $a && (-z $archive || $a -nt $archive) ]] && archive=$a
	done
	if [[ -z $archive ]]; then
		echo "OrangeFS: skipped: there is no ../shared/third_party/orangefs-*.tar.xz beside the checkout, and ORANGEFS_ARCHIVE is not set"
		exit 0
	fi
fi
[[ -r $archive ]] || die "cannot read the archive '$archive'"

stamp="archive $(sha256sum <"$archive" | cut -c1-64)
recipe $(sha256sum <"$here/ci/orangefs.sh" | cut -c1-64)"
[[ -f $prefix/stamp && $(<"$prefix/stamp") == "$stamp" ]] && exit 0

if [[ $EUID -ne 0 ]]; then
	command -v sudo >/dev/null || die "installing OrangeFS in $prefix needs root, and there is no sudo"
	echo "installing OrangeFS in $prefix needs root: asking sudo"
	exec sudo "$here/ci/orangefs.sh" "$archive"
fi

# One build at a time; the second one then finds the first one's stamp.
exec 9>/run/lock/culprit-orangefs
flock 9
[[ -f $prefix/stamp && $(<"$prefix/stamp") == "$stamp" ]] && exit 0

for p in aclocal autoconf bison flex gcc make pkg-config xz; do
	command -v "$p" >/dev/null || die "there is no '$p'; run ci/install.sh --all first"
done
echo "building OrangeFS from ${archive##*/}: about a minute"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
log=$build/log
quietly() { "$@" >"$log" 2>&1 9>&- || { tail -n 30 "$log" >&2; die "'$1' failed"; }; }

mkdir "$build/src"
quietly tar --no-same-owner -xf "$(realpath "$archive")" -C "$build/src"
cd "$build/src"
[[ -x prepare ]] || cd ./*/ || die "'$archive' is no source archive of OrangeFS: it has no 'prepare'"
quietly ./prepare
# -fcommon: the sources define variables in headers. The user-space interception library is not needed.
quietly ./configure --prefix="$prefix" --enable-fuse --with-db-backend=lmdb --enable-external-lmdb --disable-usrint \
	CFLAGS="-O2 -fcommon -w"
programs=(src/server/pvfs2-server src/apps/fuse/pvfs2fuse src/apps/admin/pvfs2-check-server src/apps/admin/pvfs2-cp)
quietly make -j"$(nproc)" "${programs[@]}"

# The stamp comes last, so a build that was interrupted is repeated.
rm -f "$prefix/stamp"
install -d "$prefix/sbin" "$prefix/bin"
install "${programs[0]}" "$prefix/sbin/"
install "${programs[@]:1}" "$prefix/bin/"
echo "$stamp" >"$prefix/stamp"
