#!/bin/bash
# What the adapter of GlusterFS makes of a host: mounts, with and without a volume.
cd "$(dirname "$0")/../../.." || exit 1
. ci/tests/tap.sh
command -v lua5.4 >/dev/null || skip_all "there is no lua5.4"
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', expected '$3'"; fi; }
found() { lua5.4 -e 'local fs = dofile("harness/fs/glusterfs.lua")
	for _, m in ipairs(fs.discover({role = "client"}, {}, function() return os.getenv("LINE") end)) do print(m.mount .. " " .. tostring(m.volume)) end'; }
is "a mount of a volume has its name" "$(LINE='s1:/data /mnt/g fuse.glusterfs rw 0 0' found)" "/mnt/g data"
is "one made from a volume file has none" "$(LINE='s1:(null) /mnt/g fuse.glusterfs rw 0 0' found)" "/mnt/g nil"
is "... nor with a slash" "$(LINE='s1:/(null) /mnt/g fuse.glusterfs rw 0 0' found)" "/mnt/g nil"
done_testing
