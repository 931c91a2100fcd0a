#!/bin/bash
# make deb: a package that Debian's tools take, whose program works where it is unpacked.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
for tool in dpkg-deb dpkg-shlibdeps; do command -v $tool >/dev/null || skip_all "there is no $tool (dpkg-dev)"; done
out=${OUT:-out}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset CULPRIT_HOME CULPRIT_AGENT_DIR

export DEBFULLNAME="A. Packager & Tester" DEBEMAIL=packager@debian.org
check "make deb" make -s OUT="$out" deb
version=$("$out/culprit" --version | cut -d' ' -f2)
package=$out/culprit_${version}_$(dpkg --print-architecture).deb
check "the package is there" [ -s "$package" ]
field() { dpkg-deb -f "$package" "$1"; }
check "it has the program's version" [ "$(field Version)" = "$version" ]
check "it depends on the libraries that the program uses" grep -q 'libc6 .*liblua5.4-0.*libsqlite3-0' <(field Depends)
check "... and recommends the lab's programs" grep -q 'glusterfs-server' <(field Recommends)
check "... of which none is from non-free" bash -c "! grep -q iozone <<<'$(field Depends) $(field Recommends)'"
dpkg-deb -x "$package" "$tmp/root"
check "all belongs to root" bash -c "! dpkg-deb -c '$package' | grep -v ' root/root '"
check "it holds nothing of the build" bash -c "! dpkg-deb -c '$package' | grep -E '\\.(o|d|a)\$|/tests/|\\.\\[ch\\]'"
check "its checksums hold" bash -c "dpkg-deb --ctrl-tarfile '$package' | tar -xO ./md5sums | (cd '$tmp/root' && md5sum --quiet -c)"
for file in usr/share/doc/culprit/copyright usr/share/doc/culprit/changelog.gz usr/share/man/man1/culprit.1.gz \
	usr/share/fish/vendor_completions.d/culprit.fish usr/share/bash-completion/completions/culprit usr/share/zsh/vendor-completions/_culprit usr/lib/culprit/agent/culprit-agent; do
	check "/$file" [ -s "$tmp/root/$file" ]
done
check "its changelog is one of Debian's" grep -qx "culprit ($version) unstable; urgency=medium" <(zcat "$tmp/root/usr/share/doc/culprit/changelog.gz")
check "the maintainer is the one who was named" [ "$(field Maintainer)" = "$DEBFULLNAME <$DEBEMAIL>" ]
culprit=$tmp/root/usr/bin/culprit
check "the program works: list" bash -c "diff <('$culprit' list) <('$out/culprit' list)"
check "... its agent, too" bash -c "cd '$tmp' && '$culprit' trace --tracer ptrace -c -- true | grep -q total"
# The agent's libraries are no Depends: it is started with those next to it.
bare() {
	# shellcheck disable=SC2016
	unshare -m bash -c 'for lib in $(ldconfig -p | sed -n "s/.* => //p" | grep -E "/lib(nftnl|mnl|bpf)\.so"); do
		mount --bind /dev/null "$(realpath "$lib")" || exit 9; done; exec "$@"' - "$@"
}
if [ "$(id -u)" = 0 ]; then
	check "... on a machine without the agent's libraries" bash -c "$(declare -f bare); cd '$tmp' && bare '$culprit' trace --tracer ptrace -c -- true | grep -q total"
	check "... where doctor finds the agent well" bash -c "$(declare -f bare); bare '$culprit' doctor | grep -q '^ *ok *agent'"
else
	ok "... on a machine without the agent's libraries # SKIP needs root: mounts"
fi
if command -v lintian >/dev/null; then
	check "lintian finds neither errors nor warnings" lintian --fail-on error,warning "$package"
	check "... and no override that overrides nothing" bash -c "! lintian --display-info '$package' 2>&1 | grep unused-override"
else
	ok "lintian finds neither errors nor warnings # SKIP no lintian"
fi
done_testing
