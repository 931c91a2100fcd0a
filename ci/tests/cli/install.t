#!/bin/bash
# An installed tree works wherever it is moved to; a program without its files says so.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
out=${OUT:-out}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset CULPRIT_HOME CULPRIT_AGENT_DIR

check "make install PREFIX=elsewhere" make -s OUT="$out" PREFIX="$tmp/first" install
mv "$tmp/first" "$tmp/moved"
culprit=$tmp/moved/bin/culprit
same() { diff <("$out/culprit" "$@") <(cd "$tmp" && "$culprit" "$@"); }
for kind in faults workloads detectors metrics; do
	check "it lists the same $kind" same list $kind
done
check "there are some" bash -c "'$culprit' list faults | grep -q disk-hog"
cat >"$tmp/inventory.lua" <<'END'
return {
  file_system = { type = "glusterfs", layout = "distribute" },
  nodes = {
    { name = "s1", role = "server", address = "192.0.2.1", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
    { name = "s2", role = "server", address = "192.0.2.2", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
    { name = "s3", role = "server", address = "192.0.2.3", storage = "/srv/brick", service_port = 24007, spare = "/dev/sdz" },
    { name = "c1", role = "client", address = "192.0.2.4", mount = "/mnt/fs" },
  },
}
END
check "it plans its own scenario" bash -c "cd '$tmp' && '$culprit' run --dry-run --seed 1 --inventory inventory.lua moved/share/culprit/scenarios/quick.lua"
check "it writes a template" bash -c "cd '$tmp' && '$culprit' new fault mine && [ -s mine.lua ]"
check "it finds its agent" bash -c "'$culprit' trace --tracer ptrace -c -- true | grep -q total"
check "it has its JSON Schemas" bash -c "cd '$tmp' && '$culprit' help --schemas | grep -q '^undo *$tmp/moved/share/culprit/results/schemas/undo.json'"
check "the manual page is there" grep -q 'SS culprit run' "$tmp/moved/share/man/man1/culprit.1"
check "so is completion" grep -q _culprit "$tmp/moved/share/bash-completion/completions/culprit"

check "make uninstall" make -s OUT="$out" PREFIX="$tmp/moved" uninstall
cp "$out/culprit" "$tmp/program"
check "... leaves nothing" [ -z "$(ls -A "$tmp/moved")" ]
mkdir -p "$tmp/used/bin" && touch "$tmp/used/bin/other"
make -s OUT="$out" PREFIX="$tmp/used" install
make -s OUT="$out" PREFIX="$tmp/used" uninstall
check "... but what is not culprit's" [ "$(cd "$tmp/used" && find . -type f)" = ./bin/other ]

mkdir -p "$tmp/stage/usr/local/bin"
make -s OUT="$out" DESTDIR="$tmp/stage" install
make -s OUT="$out" DESTDIR="$tmp/stage" uninstall
check "... and the system's own folders, if they are empty" [ -d "$tmp/stage/usr/local/bin" ]
check "... of which no file is left" [ -z "$(find "$tmp/stage" -type f)" ]

mkdir "$tmp/bare"
culprit=$tmp/program
cp "$culprit" "$tmp/bare/culprit"
lacks() { # COMMAND...: code 3, and one line that names what is missing
	local said code
	said=$(cd "$tmp/bare" && "$@" 2>&1)
	code=$?
	echo "$code: $said"
	[ $code = 3 ] && [[ $said == *"cannot find culprit's files"* ]]
}
check "list without its files: 3" lacks ./culprit list
check "list of a kind, too" lacks ./culprit list detectors
check "new, too" lacks ./culprit new fault mine
check "trace, too" lacks ./culprit trace -- true
check "doctor, too" bash -c "cd '$tmp/bare' && ./culprit doctor >/dev/null; [ \$? = 3 ]"
check "a CULPRIT_HOME without them: 3" bash -c "CULPRIT_HOME='$tmp/bare' '$culprit' list; [ \$? = 3 ]"
done_testing
