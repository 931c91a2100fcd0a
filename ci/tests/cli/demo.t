#!/bin/bash
# ci/demo.sh with stubs for the program, make and the installer: what it says, in which order, and that its last lines can be
# pasted by the user whose run it is.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" = 0 ] || skip_all "needs root: gives a run to another user"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cp -r --parents ci/demo.sh "$tmp"
mkdir "$tmp/my out" "$tmp/bin"
cat >"$tmp/my out/culprit" <<'END'
#!/bin/bash
echo "$*" >>"${0%/*}/../calls"
case "$1 $3" in
run\ *) mkdir -m 700 "$5" && echo scores >"$5/run.db" && echo "a table too many"; exit "${RUN_CODE:-0}" ;;
"table --words") echo "cell 1: s4 was under disk-hog" ;;
table*) exec cat "$2/run.db" ;;
report*) : >"$2/report.html" && echo "$2/report.html" ;;
diagnose*) exec cat "$2/run.db" ;;
list*) echo faults ;;
new*) echo "$1 $2" ;;
esac
END
cat >"$tmp/bin/make" <<'END'
#!/bin/bash
[ "$1" != -n ] || { printf "printf '  %%-6s %%s\\\\n' CC a.c\ngcc\nprintf '  %%-6s %%s\\\\n' LINK b\n"; exit; }
echo "$*" >>"${0%/*}/../makes"
printf '  CC     a.c\n  LINK   b\n'
END
printf '#!/bin/bash\necho "$*" >>"${0%%/*}/../installs"\n' >"$tmp/ci/install.sh"
chmod +x "$tmp/my out/culprit" "$tmp/bin/make" "$tmp/ci/install.sh"
demo() { PATH=$tmp/bin:$PATH OUT='my out' SUDO_UID=65534 SUDO_GID=65534 bash "$tmp/ci/demo.sh" >"$tmp/said" 2>"$tmp/err"; }

check "the demo ends well" demo
chmod 755 "$tmp/runs"
check "it says nothing on standard error" [ ! -s "$tmp/err" ]
check "five headings, in order" [ "$(grep -o '^[1-5]/5  [a-z]* [a-z]*\|^[1-5]/5  [a-z]*' "$tmp/said" | cut -d' ' -f1 | xargs)" = "1/5 2/5 3/5 4/5 5/5" ]
check "each with its time" [ "$(grep -c '^     done in [0-9]*:[0-9][0-9]$' "$tmp/said")" = 5 ]
check "it installs what the demo needs, and no more" [ "$(cat "$tmp/installs")" = --demo ]
check "it builds the programs alone" bash -c "[ \$(wc -l <'$tmp/makes') = 1 ] && grep -q 'programs$' '$tmp/makes'"
check "files are counted, not listed" bash -c "grep -qx '     2 files built' '$tmp/said' && ! grep -q 'a\\.c' '$tmp/said'"
check "cells in words come before the table, once" bash -c "
	[ \$(grep -n 'cell 1: s4' '$tmp/said' | cut -d: -f1) -lt \$(grep -nx scores '$tmp/said' | cut -d: -f1) ] && ! grep -q 'too many' '$tmp/said'"
check "the report's path is a file" bash -c "[ -f \"\$(sed -n '/^the report/{n;s/^  //p}' '$tmp/said')\" ]"
check "the lab goes down" grep -q '^lab down --dir /run/culprit/demo$' "$tmp/calls"

check "... before the verdicts are shown" [ "$(cut -d' ' -f1,2 "$tmp/calls" | sed -n '/^lab down/=;/^table /{=;q}' | wc -l)" = 2 ]
lines=$(sed -n '/^to try next:/,$s/^    //p' "$tmp/said")
check "three commands to try next" [ "$(wc -l <<<"$lines")" = 3 ]
pasted() { # PATTERN EXPECTED: as the user, from anywhere
	local line
	line=$(grep " $1" <<<"$lines")
	[ "$(cd / && setpriv --reuid 65534 --regid 65534 --clear-groups bash -c "$line" 2>&1 | grep -v 'calls: ')" = "$2" ]
}
chmod 666 "$tmp/calls"
check "each can be pasted, by the user who asked sudo for it" pasted "diagnose " scores
check "... the second" pasted "list" faults
check "... the third" pasted "new scenario mine" "new scenario"
check "no line names a program that is not in the PATH" lacks "(^|[ '])culprit [a-z]" "$tmp/said"

export RUN_CODE=3
demo
check "a run that is not whole is shown, and ends with its code" [ $? = 3 ]
check "... with its table" grep -qx scores "$tmp/said"

# Packages.
printf '#!/bin/sh\necho "install ok installed"\n' >"$tmp/bin/dpkg-query"
cp ci/install.sh "$tmp/ci/install.sh"
cp ci/packages.txt ci/packages-all.txt "$tmp/ci"
printf '#!/bin/sh\ncase "$*" in *" iozone3") ;; *) echo "install ok installed" ;; esac\n' >"$tmp/bin/dpkg-query"
printf '#!/bin/sh\necho "$*" >>%q\n[ "$1" != indextargets ] || echo main\n' "$tmp/apt" >"$tmp/bin/apt-get"
chmod +x "$tmp"/bin/*
installs() { env -u CULPRIT_NON_FREE PATH=$tmp/bin:$PATH "$tmp/ci/install.sh" "$@" </dev/null 2>&1; }
check "the demo does not need iozone3" [ -z "$(installs --demo)" ]
check "without a terminal no package source is added, and it is said" grep -q 'iozone3 is left out.*--non-free adds' <(installs)
check "without a terminal, apt-get is asked and installs nothing" lacks install "$tmp/apt"
check "an unknown option: 2" bash -c "'$tmp/ci/install.sh' --nonfree >/dev/null 2>&1; [ \$? = 2 ]"
check "tests' packages are not the demo's" bash -c "grep -c '^[a-z0-9.+-]*  # check: ' '$tmp/ci/packages.txt' | grep -qx '1[0-9]'"
done_testing
