#!/bin/bash
# What this site does to the nodes of an allocation before and after a shard. This one expects that the file system is up, and
# checks that culprit can work on the nodes: a shard that cannot ends here, before its first cell. Put in its place what makes
# and takes down your file system. SERVER_NODES and CLIENT_NODES hold the names that Slurm knows, separated by blanks;
# RUN is the shard's folder. 'release' is called once, however the shard ended, also if 'prepare' failed half-way.
set -euo pipefail
case $1 in
prepare) exec "${CULPRIT:-culprit}" doctor --inventory "$2" ;;
release) ;;
*) echo "site.sh: there is no '$1'" >&2; exit 2 ;;
esac
