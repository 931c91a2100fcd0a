#!/bin/bash
# culprit doctor and culprit undo, against sshds in private namespaces.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
. ci/tests/schema.sh
[ "$(id -u)" = 0 ] || skip_all "needs root: sshd and namespaces"
[ -x /usr/sbin/sshd ] || skip_all "needs openssh-server"
if [ -z "$NODE_CLI_INSIDE" ]; then
	NODE_CLI_INSIDE=1 exec unshare --pid --fork --kill-child --mount-proc --net --mount "$0"
fi
culprit=$PWD/${OUT:-out}/culprit
dir=$(mktemp -d /tmp/culprit-node-cli.XXXXXX)
mkdir -p $dir /run/sshd /var/lib/culprit
mount -t tmpfs tmpfs $dir && mount -t tmpfs tmpfs /var/lib/culprit || exit 1
trap 'cd /; umount -l $dir/mnt $dir /var/lib/culprit; rmdir $dir' EXIT
ip link set lo up
cd $dir || exit 1
mkdir brick mnt && mount -t tmpfs tmpfs mnt
for key in host id; do ssh-keygen -q -t ed25519 -N '' -f $key; done
cp id.pub authorized
cat >sshd_config <<-END
	Port 2222
	ListenAddress 127.0.0.1
	HostKey $dir/host
	AuthorizedKeysFile $dir/authorized
	StrictModes no
	UsePAM no
	PidFile none
	Subsystem sftp /bin/sh -c 'echo cannot open /dev/null >&2; exit 1'
	SetEnv HOME=$dir
END
mkfifo log
/usr/sbin/sshd -D -e -f $dir/sshd_config 2>log &
sshd=$!
exec 3<log
while read -r line <&3; do [[ $line == *listening* ]] && break; done

# Stand-ins for the file system: processes with its programs' names.
mkfifo rest
for name in glusterfsd glusterfs; do (exec -a $name sh -c 'read -r x <rest' sh $dir/mnt) & done
inventory() { # port of s2, storage of s1
	cat <<-END
	return {
	  file_system = { type = "glusterfs", layout = "distribute" },
	  nodes = {
	    { name = "s1", role = "server", address = "127.0.0.1", ssh_port = 2222, identity = "id",
	      host_key = "$(cat host.pub)", storage = "$2", service_port = 24007 },
	    { name = "s2", role = "server", address = "127.0.0.1", ssh_port = $1, identity = "id",
	      host_key = "$(cat host.pub)", storage = "$2", service_port = 24008 },
	    { name = "c1", role = "client", address = "127.0.0.1", ssh_port = 2222, identity = "id",
	      host_key = "$(cat host.pub)", mount = "$dir/mnt" },
	  },
	}
	END
}
inventory 2222 $dir/brick >good.lua
inventory 2 $dir/nothing >bad.lua

exits() { # code, then the command; its output goes to ./said
	local want=$1 got
	shift
	"$@" >said 2>&1
	got=$?
	cat said
	[ $got = "$want" ]
}
says() { cat said; grep -q -e "$1" said; }

check "doctor finds nothing bad on good nodes" exits 0 "$culprit" doctor --inventory good.lua
check "and has a line for each" sh -c '[ $(grep -c "ok .*root@127.0.0.1:2222" said) = 3 ]'
check "and what each can do" sh -c '[ $(grep -cE "^  (s1|s2|c1) +root +(nft|ip)[a-z]+ .*ptrace.*GB" said) = 3 ]'
check "and calls each function of the file system: processes" says 'ok *server_pids *1 process: [0-9]* '
check "... the probe, with its time" says 'ok *probe *every server takes part; [0-9.]* s, of 30'
check "... the port, where nothing listens" says 'note *service *127.0.0.1, port 24007: nothing listens'
check "and which faults can run" says 'ok *cpu-hog *can run'
check "and which cannot, and why" says 'note *kill *cannot run: s1: the inventory does not allow'
check "in 80 columns" awk 'length > 80 { bad = 1; print } END { exit bad }' said
check "doctor finds bad hosts" exits 3 "$culprit" doctor --inventory bad.lua
check "a node that is not reached is named with the reason" says 's2: connection refused at 127.0.0.1:2'
check "and a storage folder that is not there" says 'there is no folder'
check "the others are tried all the same" says 'ok *c1'
rmdir brick && umount mnt
check "doctor finds that the probe fails: its file system is not there" exits 3 "$culprit" doctor --inventory good.lua
mkdir brick && mount -t tmpfs tmpfs mnt
check "doctor --json is for programs" exits 0 "$culprit" doctor --json -i good.lua
check "and says the same" says '"able": true'
fits doctor said
check "and that packets can be dropped there" sh -c 'grep -A2 packets.drop said | grep -q "\"level\": \"ok\""'
check "a wrong option is a usage error" exits 2 "$culprit" doctor --nonsense
check "undo finds clean nodes clean" exits 0 "$culprit" undo --inventory good.lua
check "and says so of each" sh -c '[ $(grep -c "clean$" said) = 3 ]'
check "undo without an inventory is a usage error" exits 2 "$culprit" undo

# A host on which every command hangs.
sed 's/2222/2223/' sshd_config >hanging_config
echo 'ForceCommand echo waiting for the home folder >&2; sleep 1000' >>hanging_config
/usr/sbin/sshd -D -e -f $dir/hanging_config 2>hanging.log &
hanging=$!
until grep -q 'Server listening' hanging.log; do sleep 0.05; done
inventory 2223 $dir/brick >hanging.lua
for command in doctor undo; do
	check "$command ends where a host runs no command" exits 3 timeout 60 "$culprit" $command --inventory hanging.lua
	check "and quotes the host" says 'waiting for'
done
kill $hanging

# An agent and its guard are killed in the middle of a fault.
agent=$(dirname "$culprit")/agent
coproc "$agent/culprit-agent" serve
disown
read -r _ <&"${COPROC[0]}"
echo '{"id":1,"op":"packets.drop","percent":1,"from":["127.9.9.9"]}' >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
# This PID namespace has only our processes; they are stopped first, so that neither sees the other end.
pkill -STOP '^culprit-'
pkill -KILL '^culprit-'
while pgrep '^culprit-' >/dev/null; do sleep 0.05; done
check "undo cleans what was left" exits 0 "$culprit" undo --json --inventory good.lua
check "and says what it was" says '"undone": \[$'
fits undo said
check "there was something to undo" bash -c 'echo "$1"; grep handle <<<"$1"' sh "$answer"
check "undo where a node is not reached is not all" exits 3 "$culprit" undo --inventory bad.lua
check "the node is named" says 's2 .*not reached'
"$culprit" undo --json --inventory bad.lua >undone.json 2>/dev/null
fits undo undone.json
kill $sshd
: >rest
done_testing
