#!/bin/bash
# A node's sshd dies in the middle of a fault, and comes back: as it was, or with another host key.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/remote/hosts_lib.sh
check "a lab comes up" "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 2 --clients 1

# Listener and sessions at once: the one that dies second could still say goodbye.
sshd_dies() { inside "$(victim)" sh -c 'kill -STOP $(pgrep -x sshd); kill -KILL $(pgrep -x sshd)'; }
sshd_starts() { inside "$(victim)" /usr/sbin/sshd -f /run/culprit/sshd_config; }
said_lost() { grep -q 'attempt 1 invalid' "$1.said"; }

scenario comes-back receive-pktloss 4
begin comes-back
check "a fault acts" comes_to_act
check "its node's sshd is killed" sshd_dies
check "the attempt ends at once" until_true 20 said_lost comes-back
check "the node's guard undoes the fault, whoever listens" until_true 30 eval '! acting'
sshd_starts
ended 0 "the run continues and succeeds"
check "with another attempt" recovered comes-back
check "the first one's reason names the node" bash -c 'grep -qE "s[12]: (connection lost|agent ended)" <<<"$1"' sh "$(reason comes-back)"
check "all nodes are clean" nothing_left

scenario other-key receive-pktloss 15
begin other-key
check "a fault acts again" comes_to_act
check "sshd is killed again" sshd_dies
inside "$(victim)" sh -c 'rm -f /tmp/host /tmp/host.pub; ssh-keygen -q -t ed25519 -N "" -f /tmp/host
	sed "s,^HostKey .*,HostKey /tmp/host," /run/culprit/sshd_config >/tmp/sshd_config; exec /usr/sbin/sshd -f /tmp/sshd_config'
ended 3 "the run ends: no valid result"
check "it says that the host key has changed, and what to do" grep -q 's[12]: host key of .* has changed: .* put the new key into host_key' other-key.said
check "the attempt is kept as invalid" [ "$(attempts other-key)" = invalid ]
check "all nodes are clean, including that one" until_true 30 nothing_left

# The owner has looked, and pins the new key.
new=$(inside "$(victim)" cut -d' ' -f1,2 /tmp/host.pub)
was=$(grep -n "name = \"$(victim)\"" "$dir/inventory.lua" | cut -d: -f1)
sed -i "$was,$((was + 2))s,host_key = \"[^\"]*\",host_key = \"$new\"," "$dir/inventory.lua"
go_on other-key
ended 0 "with the new key in the inventory, 'culprit resume' continues the run"
check "to its end" recovered other-key
check "the lab goes down" down
done_testing
