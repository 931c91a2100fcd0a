#!/bin/bash
# inventory.sh NODE...: prints the inventory of these nodes, as settings.sh shares them out: CONTROLLER, clients, servers.
# Sourced after settings.sh, it only defines what it needs.

# share_out NODE...: fills client_nodes and server_nodes.
share_out() {
	local need=$((CONTROLLER + CLIENTS + SERVERS)) node
	if [[ $# -lt $need ]]; then
		echo "culprit: the allocation has $# nodes, and settings.sh asks for $need" >&2
		return 2
	fi
	for node; do
		if [[ ! $node =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]]; then
			echo "culprit: '$node' is no name of a node" >&2
			return 2
		fi
	done
	client_nodes=("${@:CONTROLLER+1:CLIENTS}")
	server_nodes=("${@:CONTROLLER+CLIENTS+1:SERVERS}")
}

# Names are s1, s2 ... and c1 ... in every allocation, so that a shard can continue with other nodes.
print_inventory() {
	local i
	printf 'return {\n  file_system = { %s },\n' "$FILE_SYSTEM"
	[[ ! $INVENTORY_KEYS ]] || printf '  %s,\n' "$INVENTORY_KEYS"
	printf '  nodes = {\n'
	for i in "${!server_nodes[@]}"; do
		printf '    { name = "s%d", role = "server", ssh = "%s"%s },\n' $((i + 1)) "${server_nodes[i]}" "${SERVER_KEYS:+, $SERVER_KEYS}"
	done
	for i in "${!client_nodes[@]}"; do
		printf '    { name = "c%d", role = "client", ssh = "%s"%s },\n' $((i + 1)) "${client_nodes[i]}" "${CLIENT_KEYS:+, $CLIENT_KEYS}"
	done
	printf '  },\n}\n'
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	CULPRIT_SLURM=$(cd "$(dirname "$0")" && pwd)
	# shellcheck source=settings.sh
	. "$CULPRIT_SLURM/settings.sh"
	share_out "$@" && print_inventory
fi
