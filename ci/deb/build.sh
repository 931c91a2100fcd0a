#!/bin/bash
# Makes OUT/culprit_VERSION_ARCH.deb of what is built, with Debian's own tools (dpkg-dev) and no others: 'make deb'.
#
# Libraries that the programs use become Depends, by dpkg-shlibdeps. The agent travels to hosts with its libraries next to it;
# these copies are no dependency. The maintainer is $DEBFULLNAME <$DEBEMAIL>, as of Debian's other tools, else git's user.
# Programs of the lab, of workloads and of faults are Recommends and Suggests. What lintian says of the agent's copies is
# overridden in ci/deb/overrides, with the reasons.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-out}
die() { echo "ci/deb/build.sh: $*" >&2; exit 2; }
for tool in dpkg-deb dpkg-shlibdeps dpkg; do command -v $tool >/dev/null || die "there is no $tool; apt-get install dpkg-dev"; done
[[ ${VERSION:-} ]] || die "VERSION is not set; use 'make deb'"
arch=$(dpkg --print-architecture)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$tmp/root

make -s OUT="$out" DESTDIR="$root" PREFIX=/usr install
strip --strip-unneeded "$root/usr/bin/culprit" "$root/usr/lib/culprit/agent/culprit-agent"
gzip -9n "$root/usr/share/man/man1/culprit.1"
# Debian's place for zsh.
mkdir -p "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_culprit" "$root/usr/share/zsh/vendor-completions"
rmdir "$root/usr/share/zsh/site-functions"
doc=$root/usr/share/doc/culprit
mkdir -p "$doc"
cp README.md "$doc"
gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
cp ci/deb/copyright "$doc/copyright"
name=${DEBFULLNAME:-$(git config user.name || id -un)}
maintainer="$name <${DEBEMAIL:-$(git config user.email || echo "$(id -un)@$(hostname -f)")}>"
built=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
gzip -9n >"$doc/changelog.gz" <<END
culprit ($VERSION) unstable; urgency=medium

  * What changed is in CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -R -u -d "@$built")
END
install -D -m 644 ci/deb/overrides "$root/usr/share/lintian/overrides/culprit"
chmod -R u+rwX,go+rX,go-w "$root"

mkdir -p "$tmp/debian" "$root/DEBIAN"
printf 'Source: culprit\nPackage: culprit\nArchitecture: any\n' >"$tmp/debian/control"
depends=$(cd "$tmp" && dpkg-shlibdeps -O -e"$root/usr/bin/culprit" 2>"$tmp/said" | sed -n 's/^shlibs:Depends=//p') || die "$(cat "$tmp/said")"
sed -e "s/@VERSION@/$VERSION/; s/@ARCH@/$arch/; s/@DEPENDS@/$depends/; s/@MAINTAINER@/$(sed 's/[&/\\]/\\&/g' <<<"$maintainer")/; s/@SIZE@/$(du -ks --exclude=DEBIAN "$root" | cut -f1)/" \
	ci/deb/control >"$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
package=$out/culprit_${VERSION}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
echo "$package"
