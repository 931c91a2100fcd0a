#!/bin/bash
# The user's SSH configuration: two jump hosts and a host behind them, each an sshd with its own key, in
# namespaces of the test's own; ~/.ssh is the test's too.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
[ "$(id -u)" = 0 ] || skip_all "needs root: sshd and namespaces"
[ -x /usr/sbin/sshd ] || skip_all "needs openssh-server"
command -v ssh-agent >/dev/null || skip_all "needs openssh-client"
if [ -z "$HOSTS_SSH_INSIDE" ]; then
	HOSTS_SSH_INSIDE=1 exec unshare --pid --fork --kill-child --mount-proc --net --mount "$0"
fi
culprit=$PWD/${OUT:-out}/culprit
dir=$(mktemp -d /tmp/culprit-hosts-ssh.XXXXXX)
mkdir -p $dir /run/sshd /var/lib/culprit /root/.ssh
for m in $dir /var/lib/culprit /root/.ssh; do mount -t tmpfs -o mode=0711 tmpfs $m || exit 1; done
trap 'cd /; umount -l $dir /var/lib/culprit /root/.ssh; rmdir $dir' EXIT
unset SSH_AUTH_SOCK
ip link set lo up
cd $dir || exit 1
ssh=/root/.ssh
mkdir brick
for key in id other locked bastion inner s1 s2; do
	ssh-keygen -q -t ed25519 -C '' -N "$([ $key = locked ] && echo secret)" -f $key
done
cat id.pub locked.pub >authorized

# NAME ADDRESS PORT: 127.0.0.0/8 is all ours. Its log says who was forwarded where.
daemon() {
	cat >"$1.conf" <<-END
		Port $3
		ListenAddress $2
		HostKey $dir/$1
		AuthorizedKeysFile $dir/authorized
		StrictModes no
		UsePAM no
		PidFile none
		LogLevel DEBUG1
		MaxAuthTries 3
		SetEnv HOME=$dir
	END
	: >"$1.log"
	/usr/sbin/sshd -D -e -f "$dir/$1.conf" 2>>"$1.log" &
	eval "$1=$!"
	until grep -q 'Server listening' "$1.log"; do sleep 0.05; done
}
daemon bastion 127.1.0.1 2201
daemon inner 127.1.0.2 2202
daemon s1 127.1.0.3 2203
daemon s2 127.1.0.4 2203

known() { # FILE: the hosts' keys, as ssh would have written them; some by their aliases, some hashed
	{
		echo "[127.1.0.1]:2201 $(cat bastion.pub)"
		echo "[127.1.0.2]:2202 $(cat inner.pub)"
		echo "s1-key $(cat s1.pub)"
		echo "[127.1.0.4]:2203 $(cat s2.pub)"
	} >"$1"
	ssh-keygen -q -H -f "$1" >/dev/null 2>&1
	rm -f "$1.old"
}
config() {
	cat <<-END
	Host bastion
	  HostName 127.1.0.1
	  Port 2201
	Host inner
	  HostName 127.1.0.2
	  Port 2202
	  ProxyJump bastion
	Host s1
	  HostName 127.1.0.3
	  ProxyJump bastion,inner
	  HostKeyAlias s1-key
	Host s2
	  HostName 127.1.0.4
	  ProxyJump inner
	Host s?
	  Port 2203
	Host *
	  User root
	  IdentityFile ~/.ssh/key
	  StrictHostKeyChecking no
	END
}
inventory() { # more for the table, more for s1
	cat <<-END
	return {
	  file_system = { type = "glusterfs" }, $1
	  nodes = {
	    { name = "s1", role = "server", storage = "$dir/brick", service_port = 24007, $2 },
	    { name = "s2", role = "server", storage = "$dir/brick", service_port = 24007 },
	  },
	}
	END
}
exits() { # code, then the command; its output goes to ./said
	local want=$1 got
	shift
	"$@" >said 2>&1
	got=$?
	cat said
	[ $got = "$want" ]
}
says() { tr -s '\n ' ' ' <said | grep -q -e "$1" || { cat said; false; }; }
# Contacts every host and prints the result for each.
contact() { exits "$1" "$culprit" undo --inventory hosts.lua; }
from() { "$culprit" doctor --inventory hosts.lua --ssh >said && says "$1"; }

config >$ssh/config
known $ssh/known_hosts
cp id $ssh/key
inventory >hosts.lua

check "hosts behind one and two jump hosts, by ~/.ssh/config alone" contact 0
check "doctor --ssh says where each value is from" from 's1 destination default s1 address SSH configuration 127.1.0.3 port SSH configuration 2203 user SSH configuration root key SSH configuration /root/.ssh/key jump host SSH configuration root@127.1.0.1:2201 jump host SSH configuration root@127.1.0.2:2202 host key'
check "the way leads over both" grep -q 'target 127.1.0.2 port 2202' bastion.log
check "and from the second to the host" grep -q 'target 127.1.0.3 port 2203' inner.log
check "known_hosts is unchanged" bash -c '! grep -q "127" /root/.ssh/known_hosts && [ "$(wc -l </root/.ssh/known_hosts)" = 4 ]'

# The inventory's own file, and an inventory that wants none.
mv $ssh/config elsewhere
chmod 644 elsewhere
inventory 'ssh_config = "elsewhere",' >hosts.lua
check "ssh_config names another file, next to the inventory" contact 0
inventory 'ssh_config = "nowhere",' >hosts.lua
check "one that is not there is an error of the inventory" contact 2
check "with its line" says 'hosts.lua:2: cannot read SSH configuration'
cp elsewhere $ssh/config
inventory 'ssh_config = "none",' 'address = "127.1.0.3", ssh_port = 2, jump = "none"' >hosts.lua
check "\"none\" looks at none" contact 3
check "so the name itself is looked up" says "s2: cannot find address 's2'"
check "and the port is the inventory's" says 'connection refused at 127.1.0.3:2 '
inventory '' 'ssh_port = 2203, jump = "root@127.1.0.1:2201"' >hosts.lua
check "what the inventory says wins: its jump host" contact 0
inventory '' "identity = \"other\"" >hosts.lua
check "and its key, also if it is the wrong one" contact 3
check "which the host says" says "does not accept key './other'"
inventory '' "host_key = \"$(cat other.pub)\"" >hosts.lua
check "and its host key" contact 3
check "which beats known_hosts" says 'the inventory has SHA256'
check "and doctor --ssh says so" from 'host key inventory'

# Host keys of every hop.
inventory >hosts.lua
sed -i "s/StrictHostKeyChecking no/UserKnownHostsFile $(printf '%s ' "$dir"/empty "$dir/k\"n\"own" | sed 's/"//g; s,/,\\/,g')/" $ssh/config
touch empty
known known
check "several files of known hosts" contact 0
ssh-keygen -q -R '[127.1.0.2]:2202' -f known >/dev/null 2>&1
check "a jump host whose key is not known is refused" contact 3
check "and named, with what to do" says 's1: jump host: host key of 127.1.0.2:2202 is unknown .*ssh to it once'
check "its key was not learned" bash -c '! ssh-keygen -F "[127.1.0.2]:2202" -f known'
echo "[127.1.0.2]:2202 $(cat other.pub)" >>known
check "one whose key has changed is refused" contact 3
check "with what to do" says 'host key of 127.1.0.2:2202 is not the one in known_hosts.*ssh-keygen -R .\[127.1.0.2\]:2202'
known known
sed -i 's/HostKeyAlias s1-key/HostKeyAlias unheard-of/' $ssh/config
check "the host itself, too" contact 3
check "that one alone" bash -c 'grep -q "s1 .*not reached" said && grep -q "s2 .*clean" said'
config >$ssh/config

# Keys: ssh-agent's, a passphrase, IdentitiesOnly.
eval "$(ssh-agent)" >/dev/null
agent=$SSH_AGENT_PID
rm $ssh/key
check "a missing key is reported" contact 3
check "with what to do" says 'accepts no key'
ssh-add -q id 2>/dev/null
check "ssh-agent's key" contact 0
ssh-add -q -D 2>/dev/null
cp locked locked.pub $ssh
sed -i 's,~/.ssh/key,%d/.ssh/locked\n  IdentitiesOnly yes,' $ssh/config
check "a key with a passphrase is not asked for" contact 3
check "but said" says 'has a passphrase'
cp id noagent
SSH_AUTH_SOCK=$SSH_AUTH_SOCK DISPLAY=: SSH_ASKPASS_REQUIRE=force SSH_ASKPASS=$dir/pass bash -c '
	printf "#!/bin/sh\necho secret\n" >pass; chmod +x pass; ssh-add -q locked' 2>/dev/null
check "ssh-agent has it" contact 0
kill "$agent"
unset SSH_AUTH_SOCK
config >$ssh/config
cp id $ssh/key

# What cannot be done is said, not half done.
sed -i 's/ProxyJump inner/ProxyCommand nc %h %p/' $ssh/config
check "a ProxyCommand is refused" contact 2
check "by line" says "hosts.lua:5: node 's2': the SSH configuration has a ProxyCommand"
config | sed 's/ProxyJump bastion$/ProxyJump s2/' >$ssh/config
check "jump hosts in a circle are refused" contact 2
check "as such" says 'loop'
printf 'Host s1\n  Prot 22\n' >$ssh/config
check "ssh's own error is reported" contact 2
check "with its line" says '/root/.ssh/config: *line 2: Bad configuration option: prot'
config >$ssh/config

# A user who is not root, and sudo.
if command -v sudo >/dev/null; then
	mkdir ann && chown 4242:4242 ann
	for f in passwd shadow group sudoers; do cp -a /etc/$f $f; done
	echo "ann:x:4242:4242::$dir/ann:/bin/sh" >>passwd
	echo 'ann:*:19000:0:99999:7:::' >>shadow
	echo 'ann:x:4242:' >>group
	echo 'ann ALL=(ALL) ALL' >>sudoers
	for f in passwd shadow group sudoers; do mount --bind $f /etc/$f; done
	inventory '' 'user = "ann"' >hosts.lua
	check "a user who is not root is let in" contact 0
	check "with the agent at home" test -d ann/.cache/culprit/agent
	rm -rf /var/lib/culprit/agent
	inventory '' 'user = "ann", become = "sudo"' >hosts.lua
	check "a user who needs a password for sudo is refused" contact 3
	check "with what to do" says "s1: ann@127.1.0.3:2203 cannot become root; let it run sudo without a password (NOPASSWD): sudo: a password is required"
	sed -i 's/^ann ALL.*/ann ALL=(ALL) NOPASSWD: ALL/' sudoers
	cp sudoers /etc/sudoers 2>/dev/null
	check "a user with NOPASSWD is root there" contact 0
	check "with the agent in root's place" test -d /var/lib/culprit/agent
	"$culprit" doctor --json --inventory hosts.lua >said 2>&1
	check "doctor says so" bash -c 'grep -q "as root by sudo" said && grep -A3 "\"where\": \"s1\"" said | grep -q "ann@127.1.0.3:2203"'
	check "files go there and back as root" bash -c 'tr -s "\n " " " <said | grep -q "\"where\": \"s1\", \"what\": \"files\", \"level\": \"ok\""'
	inventory >hosts.lua
else
	ok "a user who is not root # SKIP there is no sudo"
fi

kill "$s2"
wait "$s2" 2>/dev/null
check "a host that is down behind a jump host is named" contact 3
check "with the jump host's word" says 's2.*jump host: 127.1.0.2 cannot reach 127.1.0.4:2203.*refused'
kill "$bastion" "$inner" "$s1"
done_testing
