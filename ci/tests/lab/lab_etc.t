#!/bin/bash
# A package manager replaces files in the machine's /etc while a lab is up: nodes keep their own. The machine's /etc is a
# copy here, in a namespace of the test's own.
self=$(realpath "$0")
cd "$(dirname "$0")/../../.." || exit 1
if [ -z "$CULPRIT_TEST_ETC" ] && [ "$(id -u)" = 0 ]; then
	exec env CULPRIT_TEST_ETC=1 unshare --mount --propagation private bash -c '
		mount -t tmpfs -o mode=755 tmpfs /mnt && mkdir /mnt/etc && cp -a /etc/. /mnt/etc && mount --bind /mnt/etc /etc && exec "$0"' "$self"
fi
. ci/tests/lab/lab_lib.sh
replace() { cp -a "/etc/$1" "/etc/$1.new" && mv "/etc/$1.new" "/etc/$1"; } # as package managers do, with identical content
etc() { inside "$1" cat /etc/shadow /etc/hosts /etc/hostname | sha256sum; }

check "a lab" up
before=$(etc s1; etc c1)
check "nodes have a host name of their own" [ "$(inside s1 cat /etc/hostname)" = s1 ]
for file in shadow hosts hostname passwd ld.so.cache; do [ ! -e /etc/$file ] || check "$file is replaced" replace $file; done
is "nodes have what they had" "$(etc s1; etc c1)" "$before"
check "and can be reached" "$culprit" undo --inventory "$dir/inventory.lua"
inside s1 sh -c 'echo mine >/etc/hostname'
is "what a node writes there is its own" "$(inside c1 cat /etc/hostname) $(grep -c mine /etc/hostname)" "c1 0"
check "the lab goes down" down
check "nothing is left" clean
done_testing
