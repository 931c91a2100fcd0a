#!/bin/bash
# ci/demo.sh with a stub for the program: its last line can be pasted, and its run belongs to the user.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" = 0 ] || skip_all "needs root: gives a run to another user"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cp -r --parents ci/demo.sh "$tmp"
mkdir "$tmp/my out"
cat >"$tmp/my out/culprit" <<'END'
#!/bin/bash
[ "$1" != run ] || { mkdir -m 700 "$5" && echo scores >"$5/run.db"; }
[ "$1" != table ] || exec cat "$2/run.db"
END
chmod +x "$tmp/my out/culprit"
check "the demo ends well" bash -c "OUT='my out' SUDO_UID=65534 SUDO_GID=65534 bash '$tmp/ci/demo.sh' >'$tmp/said'"
chmod 755 "$tmp/runs"
pasted() { # as the user, from anywhere
	line=$(grep ' table ' "$tmp/said")
	[ "$(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$line")" = scores ]
}
check "the line that it prints can be pasted, by the user who asked sudo for it" pasted
check "no line names a program that is not in the PATH" bash -c "! grep -E \"(^|[ '])culprit [a-z]\" '$tmp/said'"
done_testing
