-- Table 6.1 of Dinh 2009 again: nine processes of five clients write to four servers, of which one has its
-- processors taken and a fifth of its memory left (there 200 MB of 1 GB); and the balanced runs beside it.
--
--   culprit lab up --fs orangefs,method=alt-aio,disk_calls=200 --clients 5 --outsiders 0 --cpus 0.6 \
--                  --memory 256MiB --disk-rate 10MB/s --disk-seek 10ms --nic 300Mbit/s
--   for s in s1 s2 s3 s4; do culprit lab exec $s -- mount -o remount,commit=300 /srv/storage; done
--   culprit run scenarios/unbalanced.lua -o runs/unbalanced
--   ci/bench/table61.sh runs/unbalanced 0 >averages.csv && ci/bench/table61.sh averages.csv
--
-- alt-aio is the thesis's way to disk, through the page cache; with disk_calls no operation waits in a server
-- unseen. Nodes have a quarter of the memory there, disks about a fifth of the speed, and NICs more than disks take.
-- A commit of ext4's journal writes all data of new files: at this speed it stops plain servers for seconds, so
-- that it must not come in a cell. Processes write 30 blocks, not 10, so that none begins anew in a cell. On
-- GlusterFS (--fs glusterfs) the blocks go through the mount. All calls are traced, with heads of messages.

---@type culprit.Scenario
return {
	name      = "unbalanced",
	summary   = "one of four servers is short of processor and memory (Dinh 2009, Table 6.1)",
	workloads = { { "mpi-io", blocks = 30, orangefs = "/opt/orangefs/bin/pvfs2-cp" } },
	faults    = { "none", { "unbalanced", leave = "50MB" } },
	tracer    = { "ebpf", mode = "flow", heads = true },
	detectors = { "peer-robust", "always-healthy", "always-same", "seeded-random" },
	phases    = { before = "1s", fault = "25s", after = "7s" }, -- after: what is in flight still ends
	repeats   = 5,
}
