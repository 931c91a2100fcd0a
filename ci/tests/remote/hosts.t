#!/bin/bash
# README, 'Your own cluster', word for word: its inventory and its commands, on hosts about which culprit knows only
# a user's ~/.ssh/config: behind a jump host, on a separate port, with keys in known_hosts. They are a
# lab's nodes, on which an existing GlusterFS volume was made with glusterd and gluster(8).
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/lab/lab_lib.sh
for program in glusterd gluster mount.glusterfs ssh; do
	PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || skip_all "there is no $program"
done
tmp=$(mktemp -d)
trap '"$culprit" lab down --dir "$dir" >/dev/null 2>&1; rm -rf "$tmp"' EXIT
readme=$PWD/README.md
mkdir "$tmp/bin" "$tmp/ssh" "$tmp/work"
ln -s "$culprit" "$tmp/bin/culprit"
cd "$tmp/work" || exit 1

# ---- what the hosts' owner has ----
check "a lab comes up" "$culprit" lab up --dir "$dir" --subnet "$subnet" --servers 3 --clients 1

# What culprit finds on the lab's own volume, whose bricks were started from volume files.
sed -E 's/ *storage = "[^"]*",//; s/ *service_port = [0-9]+,//; s/, mount = "[^"]*"//' "$dir/inventory.lua" >"$dir/bare.lua"
"$culprit" doctor --inventory "$dir/bare.lua" >said 2>&1
code=$?
sed 's/^/# /' said
check "values missing in the inventory are detected on hosts" [ $code = 0 ]
check "bricks by their volume files" [ "$(grep -c '/srv/storage (port 24007, pid' said)" = 3 ]
check "mounts in /proc/mounts" grep -q 'file system *.*/mnt/fs (.*pid [0-9]*), by /proc/mounts' said

glusterd_up() { # NODE: the lab's own brick, and its mount, make way
	inside "$1" sh -c '
		for p in /proc/[0-9]*; do case $(tr "\0" "\n" 2>/dev/null <$p/cmdline | head -n 1) in
		glusterfsd|glusterfs) kill -9 ${p#/proc/} ;; esac; done
		umount -l /mnt/fs 2>/dev/null
		case $1 in s*) for x in glusterfs.volume-id gfid; do setfattr -x trusted.$x /srv/storage; done 2>/dev/null ;; esac
		mkdir -p /tmp/log /var/lib/glusterd /run/gluster /srv/storage/gv0
		mount --bind /tmp/log /var/log && mkdir -p /var/log/glusterfs/bricks
		case $1 in s*) exec glusterd ;; esac' sh "$1"
}
volume_up() {
	local n
	for n in s1 s2 s3 c1; do glusterd_up $n || return; done
	until inside s1 gluster --mode=script peer probe s2 && inside s1 gluster --mode=script peer probe s3; do sleep 0.2; done
	for n in s1 s2 s3; do # each must know both others, or it refuses the volume
		until [ "$(inside $n gluster peer status | grep -c 'Peer in Cluster (Connected)')" = 2 ]; do sleep 0.2; done
	done
	inside s1 gluster --mode=script volume create gv0 s1:/srv/storage/gv0 s2:/srv/storage/gv0 s3:/srv/storage/gv0 &&
		inside s1 gluster --mode=script volume set gv0 features.shard on &&
		inside s1 gluster --mode=script volume set gv0 features.shard-block-size 4MB &&
		inside s1 gluster --mode=script volume start gv0 &&
		inside c1 sh -c 'mkdir -p /mnt/gluster && mount -t glusterfs s1:/gv0 /mnt/gluster'
}
check "GlusterFS's own tools make a volume there" timeout 300 bash -c "$(declare -f glusterd_up volume_up inside); culprit=$culprit dir=$dir; volume_up"

# Port 2200 everywhere but on the jump host, a key under another name, hosts under other names than the lab's.
for n in s1 s2 s3 c1; do inside $n /usr/sbin/sshd -f "$(inside $n sh -c 'ls /run/*/sshd_config | head -n 1')" -p 2200; done
cp "$dir/id_ed25519" "$tmp/ssh/storage_key"
{
	echo "Host gate"
	echo "  HostName $net.51"
	for i in 1 2 3; do printf 'Host s%s\n  HostName %s.1%s\n' $i "$net" $i; done
	printf 'Host c1\n  HostName %s.31\nHost s? c?\n  Port 2200\n  ProxyJump gate\n' "$net"
	printf 'Host *\n  User root\n  IdentityFile ~/.ssh/storage_key\n  IdentitiesOnly yes\n'
} >"$tmp/ssh/config"
sed -E "/^$net.51/!s/^($net.[0-9]+)/[\1]:2200/" "$dir/known_hosts" >"$tmp/ssh/known_hosts"
chmod -R go= "$tmp/ssh"

# ---- what the README says ----
section() { sed -n '/^## Your own cluster/,/^## Your own scenario/p' "$readme"; }
section | sed -n '/^```lua/,/^```/p' | grep -v '^```' >hosts.lua
section | sed -n 's/^    \(culprit .*\)/\1/p' >commands
cat >mine.lua <<'L'
return { name = "mine", workloads = { "ddw" }, faults = { "none", "receive-pktloss" }, detectors = { "always-healthy" },
         phases = { before = "1s", fault = "2s", after = "1s" }, repeats = 10 }
L
check "the README has an inventory and four commands" bash -c '[ "$(grep -c "^culprit" commands)" = 4 ] && grep -q "role = \"server\"" hosts.lua'
# A user's shell, with ~/.ssh as the user has it.
user() {
	unshare --mount bash -c '
		mkdir -p /root/.ssh && mount -t tmpfs -o mode=0700 tmpfs /root/.ssh && cp -p "$1"/ssh/* /root/.ssh && unset SSH_AUTH_SOCK &&
		PATH=$1/bin:$PATH && eval "$2"' sh "$tmp" "$1" >said 2>&1
	local code=$?
	sed 's/^/# /' said
	return $code
}
n=0
while read -r command; do
	n=$((n + 1))
	user "$command"
	check "exits with 0: $command" [ $? = 0 ]
	cp said said.$n
done <commands

check "--ssh says that all of it is from the SSH configuration" [ "$(grep -c 'SSH configuration  root@'"$net"'.51:22$' said.1)" = 4 ]
check "doctor has tried every host behind the jump host" [ "$(tr -s '\n ' ' ' <said.2 | grep -o "root@$net.[1-3]*:2200 via root@$net.51:22, host key in known_hosts" | wc -l)" = 4 ]
check "glusterd's bricks are found, with the ports that it gave them" [ "$(grep -c '/srv/storage/gv0 (volume gv0, port [0-9]*, pid' said.2)" = 3 ]
check "the mount, too" grep -q '/mnt/gluster (volume gv0, pid' said.2
check "a fault that needs a server restarted is refused, with the reason" bash -c 'tr -s "\n " " " <said.2 | grep -q "kill cannot run: s1: the inventory does not allow restarts"'
check "one that needs a spare disk, too" bash -c 'tr -s "\n " " " <said.2 | grep -q "disk-hog cannot run: s1: "'
check "one that needs neither can run" grep -q 'receive-pktloss *can run' said.2
check "doctor fits 80 columns" awk 'length > 80 { bad = 1; print } END { exit bad }' said.2
check "one cell ran and is confirmed" grep -q '1 of 1 cells confirmed' said.3
check "the bricks' writes were measured" [ "$("$culprit" query --samples runs/* --metric dwrite | wc -l)" -gt 1 ]
check "all nodes were clean" [ "$(grep -c 'clean$' said.4)" = 4 ]

# A reinstalled host has another key.
sed -E "s/^(\[$net.12\]:2200 ssh-ed25519 ).*/\1$(ssh-keygen -q -t ed25519 -N '' -f other && cut -d' ' -f2 other.pub | sed 's/\//\\\//g')/" \
	-i "$tmp/ssh/known_hosts"
user "$(sed -n 3p commands)"
check "a changed host key stops the run before it begins" [ $? = 2 ]
check "and says which, and what to do" grep -q "s2: host key of $net.12:2200 is not the one in known_hosts.*ssh-keygen -R '\[$net.12\]:2200'" said
check "the lab goes down" down
check "and leaves nothing" [ ! -e "$dir" ]
done_testing
