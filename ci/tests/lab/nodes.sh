# A lab of the test's own for runs that are cut short: three servers, a client, an outsider, in its own subnet; and what its
# nodes hold of ours. Source it at the root of the checkout: it goes to $tmp, which is removed with the lab when the test ends.
#     lab_up [OPTION ...]                 "the lab comes up", or the test ends
#     node NAME COMMAND ..., on_all TEXT  on one node; a shell's TEXT on all at a time
#     left, clean                         what a run has left on any node; nothing
#     fingerprints                        what an agent finds on each node, and what it had to clean, which should be nothing
. ci/tests/tap.sh
. ci/tests/subnet.sh
[ "$(id -u)" -eq 0 ] || skip_all "the lab needs root"
root=$PWD
culprit=$root/${OUT:-out}/culprit
tmp=$(mktemp -d)
lab=$tmp/lab
# shellcheck disable=SC2034 # the test's
inventory=$lab/inventory.lua
nodes="s1 s2 s3 c1 o1"
lab_finish() {
	# shellcheck disable=SC2046 # a word each
	kill -KILL $(jobs -pr) 2>/dev/null
	"$culprit" lab down --dir "$lab" >/dev/null 2>&1
	! mountpoint -q "$tmp/small" || umount "$tmp/small"
	rm -rf "$tmp"
}
trap lab_finish EXIT
cd "$tmp" || exit 1

lab_up() {
	local said
	if take_subnet && said=$("$culprit" lab up --dir "$lab" --subnet "$subnet" --servers 3 --clients 1 "$@" 2>&1); then
		ok "the lab comes up"
	else
		not_ok "the lab comes up" "$said"
		done_testing
	fi
}
node() { "$culprit" lab exec --dir "$lab" "$@"; }
on_all() ( # a shell of its own, for 'wait'
	for n in $nodes; do node $n -- sh -c "$1" </dev/null >"$tmp/on.$n" & done
	wait
	for n in $nodes; do cat "$tmp/on.$n"; done
)
left() { on_all 'nft list tables 2>/dev/null | grep culprit_; pgrep -xl "dd|postmark|sg_.*|culprit-.*" 2>/dev/null; ls /var/lib/culprit/undo 2>/dev/null'; }
clean() { [ -z "$(left)" ]; }

# The agent is where the harness put it: a clone in /tmp is not visible on a node.
fingerprints() {
	on_all 'd=$(ls -d /var/lib/culprit/agent/*/ | head -1); p=$(pgrep -x "glusterfsd?" | head -1)
		printf "{\"id\":1,\"op\":\"fingerprint\"%s}\n{\"id\":2,\"op\":\"bye\"}\n" "${p:+,\"pids\":[$p]}" |
			"$d"/ld-linux* --library-path "$d" "$d"/culprit-agent serve' |
		sed -n 's/^{"id":1,"result":\(.*\)}$/\1/p; s/^.*"cleaned":\(\[[^]]*\]\),"unclean":\(\[[^]]*\]\).*$/cleaned \1 unclean \2/p'
}
