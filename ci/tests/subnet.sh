# A subnet that no other test of this machine has: source it, then call
#     take_subnet                         sets 'subnet' (10.200.N.0/24) and 'net' (10.200.N)
# N is taken under a lock that the test holds until it ends, so that two tests, or two copies of one, never share a subnet.
# Processes that the test leaves keep the lock; a subnet that this machine still has a route to is left out.
take_subnet() {
	local n locks=/run/lock/culprit-test-subnets

	mkdir -p "$locks" || return
	for ((n = 0; n < 256; n++)); do
		exec {subnet_lock}>"$locks/$n" || return
		if flock -n "$subnet_lock" && [ -z "$(ip -o route show root "10.200.$n.0/24")" ]; then
			net=10.200.$n
			# shellcheck disable=SC2034 # the caller's
			subnet=$net.0/24
			return
		fi
		exec {subnet_lock}>&-
	done
	echo "no subnet of 10.200.0.0/16 is free" >&2
	return 1
}
