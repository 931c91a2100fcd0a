-- A process spends its time waiting for syncs of a few bytes each.
--
-- Held against: within 10 seconds its threads waited for syncs for 5 seconds or more (taken together, half of the time
-- of one thread), 100 times or more, and wrote less than 4096 bytes a sync: a disk writes a page at least, and the
-- file system's journal besides, so that most of what the disk did was not the data. Not meant: few long syncs, which
-- a slow disk makes; large writes, each synced.

return {
	about = "most of the time went into syncs of a few bytes each",
	severity = "warning",
	sql = [[
		with spans as (
			select log, cell, node, pid, process, cast(t / 10 as integer) * 10 since_s, count(*) - count(bytes) syncs,
				sum(bytes) / max(1, count(*) - count(bytes)) a_sync,
				1e-9 * sum(service_ns) filter (where bytes is null) s
			from events where class in ('write', 'sync') and call <> 'sync_file_range' and kind = 'file'
				and errno is null
			group by log, pid, since_s)
		select log, cell, node, process, pid, sum(syncs) syncs, sum(syncs * a_sync) / sum(syncs) a_sync,
			round(sum(s), 1) s, 10 * count(*) of_s, min(since_s) since_s, min(since_s) t
		from spans where syncs >= 100 and s >= 5 and a_sync < 4096 group by log, pid order by log, since_s]],
	text = "{process} ({pid}) on {node} waited {s} s of {of_s} s for {syncs} syncs of about {a_sync} written bytes each, "
		.. "from {since_s} s on",
	todo = "let several changes share one sync (group commit), or sync only where data must survive a crash at once",
	evidence = "select number, t, tid, call, path, bytes, service_ns from events where log = {log} and pid = {pid} "
		.. "and class in ('write', 'sync') and t >= {since_s} and t < {since_s} + 10",
}
