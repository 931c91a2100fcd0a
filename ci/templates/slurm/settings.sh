# The settings of culprit under Slurm: copy this folder, and change what is here. It is sourced by bash;
# CULPRIT_SLURM is this folder.
# shellcheck disable=SC2034 # used by those that source it

CULPRIT=culprit           # the program; it is needed on the nodes that run shards (the first of each allocation)
SCENARIO=scenarios/ci.lua # relative to the folder where submit.sh is called
SEED=1                    # one for all shards: the plan is drawn from it
SHARDS=4                  # array jobs, each with an allocation of its own
RUNS=runs/slurm           # must be seen by all nodes: shards and their merge are written here
RUN_OPTIONS=()            # of 'culprit run' and 'culprit resume' alike: --on-end 'mail ...'

# An allocation: CONTROLLER nodes for culprit itself (0 or 1), then clients, then servers. With 0 culprit runs on the first
# client, which costs that client processor time.
CONTROLLER=1
CLIENTS=1
SERVERS=4

# What the inventory says next to names and roles (harness/nodes/README.md), in Lua.
FILE_SYSTEM='type = "glusterfs"'
SERVER_KEYS=''       # 'storage = "/data/brick", spare = "/dev/sdb2"'
CLIENT_KEYS=''       # 'mount = "/mnt/test"'
INVENTORY_KEYS=''    # 'ssh_config = "/shared/ssh_config"'

# Slurm. The time limit is of one shard; 'culprit run ... --dry-run' says how long the plan takes.
SHARD_OPTIONS=(--time=08:00:00 --exclusive)
MERGE_OPTIONS=(--time=00:30:00)

# The site's own program: 'SITE prepare INVENTORY' makes the file system of these nodes, 'SITE release INVENTORY' takes it
# down. Each is ended after its limit, in seconds.
SITE=$CULPRIT_SLURM/site.sh
PREPARE_LIMIT=1800
RELEASE_LIMIT=600
UNDO_LIMIT=120
