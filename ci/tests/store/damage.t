#!/bin/bash
# A damaged run is refused with exit code 2 and a sentence, by every command that reads it; an unreadable run
# is distinguished from a missing one; files made under sudo belong to the user who called it.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
culprit=$PWD/${OUT:-out}/culprit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
good=results/runs/errors-20261121

damaged() { # NAME FOLDER
	local code
	for command in table rescore report diagnose "query --samples" status "ship --pack $tmp/packed"; do
		code=0
		# shellcheck disable=SC2086
		said=$("$culprit" $command "$2" 2>&1 >/dev/null) || code=$?
		if [ $code = 2 ] && [[ $said == *damaged* ]]; then ok "$1: ${command%% *} refuses it"; else not_ok "$1: ${command%% *} refuses it" "$code $said"; fi
	done
	check "$1: no corpus is written" [ ! -e "$tmp/packed/run.db.gz" ]
}

copy() { # NAME: run.db of a whole run
	mkdir "$tmp/$1" && cp $good/run.db "$tmp/$1/"
}

copy short
truncate -s -3072 "$tmp/short/run.db"
damaged "3 KB short" "$tmp/short"

copy pages
for page in 40 120 200 300; do
	head -c 4096 /dev/urandom | dd of="$tmp/pages/run.db" bs=4096 seek=$page conv=notrunc status=none
done
damaged "random bytes in four pages" "$tmp/pages"

copy header
head -c 100 /dev/urandom | dd of="$tmp/header/run.db" conv=notrunc status=none
damaged "random header" "$tmp/header"

mkdir "$tmp/gz" "$tmp/bit" "$tmp/junk"
head -c 200000 results/corpora/ci/run.db.gz >"$tmp/gz/run.db.gz"
damaged "corpus cut short" "$tmp/gz"
cp results/corpora/ci/run.db.gz "$tmp/bit/"
printf x | dd of="$tmp/bit/run.db.gz" bs=1 seek=150000 conv=notrunc status=none
damaged "a changed byte in a corpus" "$tmp/bit"
head -c 100000 /dev/urandom >"$tmp/junk/run.db.gz"
damaged "a corpus of random bytes" "$tmp/junk"

# Programs in a run would run with every question, and change what is judged.
copy view
sqlite3 "$tmp/view/run.db" "ALTER TABLE fact RENAME TO was; CREATE VIEW fact AS SELECT key, (WITH RECURSIVE n(i) AS
	(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) AS value FROM was"
damaged "a view that never ends" "$tmp/view"
copy trigger
sqlite3 "$tmp/trigger/run.db" "CREATE TRIGGER t BEFORE INSERT ON verdict BEGIN UPDATE cell SET fault = 'none'; END"
damaged "a trigger that changes the truth" "$tmp/trigger"
copy virtual
sqlite3 "$tmp/virtual/run.db" "CREATE VIRTUAL TABLE v USING fts5(x)"
damaged "a virtual table" "$tmp/virtual"

check "a whole run is read" bash -c "'$culprit' table '$good' >/dev/null"
said=$("$culprit" table "$tmp" 2>&1)
check "not a run: $said" [ "$?$said" = "2culprit table: '$tmp' is not a run: it has no run.db" ]

if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$culprit"; then
	copy private && chmod 700 "$tmp/private" && chmod 755 "$tmp"
	said=$(setpriv --reuid=65534 --regid=65534 --clear-groups "$culprit" table "$tmp/private" 2>&1)
	check "another's run: $said" bash -c "[ $? = 2 ] && [[ \"\$1\" == *'Permission denied'* ]]" - "$said"
	mkdir -p "$tmp/home/runs/mine" && cp $good/run.db "$tmp/home/runs/mine/" && chown 65534:65534 "$tmp/home/runs"
	SUDO_UID=65534 SUDO_GID=65534 "$culprit" rescore "$tmp/home/runs/mine" --save >/dev/null
	check "files written under sudo belong to the user" [ "$(stat -c %u "$tmp/home/runs/mine" "$tmp/home/runs/mine/run.db" | tr '\n' ' ')" = "65534 65534 " ]
	check "the user can use it" setpriv --reuid=65534 --regid=65534 --clear-groups "$culprit" table "$tmp/home/runs/mine"
else
	ok "another's run # SKIP needs root, and a program that everybody may run"
fi

# Files that commands write are whole or not there.
run=results/corpora/ci
check "a JUnit file to a full device" bash -c "mknod '$tmp/full' c 1 7 2>/dev/null || exit 0; '$culprit' table $run --junit '$tmp/full' >/dev/null 2>'$tmp/said'; [ \$? != 0 ] && grep -q 'No space left' '$tmp/said' && [ -c '$tmp/full' ]"
check "a JUnit file on a full disk does not stay" bash -c "ulimit -f 1; trap '' XFSZ; '$culprit' table $run --junit '$tmp/junit.xml' >/dev/null 2>&1; [ \$? != 0 ] && [ ! -e '$tmp/junit.xml' ]"
ln -s there.json "$tmp/link.json"
check "a baseline through a link" bash -c "'$culprit' table $run --write-baseline '$tmp/link.json' >/dev/null && [ -L '$tmp/link.json' ] && [ -s '$tmp/there.json' ]"
check "a report to a device" bash -c "mknod '$tmp/null' c 1 3 2>/dev/null || exit 0; '$culprit' report $good -o '$tmp/null' >/dev/null && [ -c '$tmp/null' ]"
check "a report to /dev/stdout" bash -c "'$culprit' report $good -o /dev/stdout | grep -q '</html>' && [ -L /dev/stdout ]"
done_testing
