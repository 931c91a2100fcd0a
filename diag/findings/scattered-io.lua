-- A process goes over a part of a file once and leaves nothing out, but in small pieces and out of order: the same
-- bytes could have been moved in order, and in large pieces.
--
-- Held against: pieces below 128 KiB (what the kernel reads ahead by default), most of which begin more than 128 KiB
-- from where the thread's last call on the file ended and from where the process's did (threads that share a file
-- front to back are in order); which together cover at least 90 % of the range between the lowest and the highest
-- byte, and move at most 10 % more than it: each byte about once. Lookups in a database hit some bytes often and
-- others never, and are not meant. From 256 pieces: a disk seeks some milliseconds for each, a second in all. On average
-- they take 20 us each, or more, and 1 us for each 8 KiB: the page cache takes a few, the tracer's own time included,
-- and copies more than 8 KiB in a us; the fastest disks in common use take about 80, a virtual disk that its host
-- caches about 40. What is in memory anyway (a temporary file) may be gone over in any order.

return {
	about = "a file was gone over once in small pieces and out of order",
	severity = "warning",
	sql = [[
		with once as materialized (
			select log, pid, file, class from events
			where class in ('read', 'write') and kind = 'file' and offset is not null and bytes > 0
			group by log, pid, file, class having count(*) >= 256 and max(bytes) < 131072
				and sum(bytes) between .9 * (max(offset + bytes) - min(offset))
					and 1.1 * (max(offset + bytes) - min(offset))),
		io as (
			select log, cell, node, pid, process, path, file, class, number, t, service_ns, offset, bytes, min(
				abs(offset - lag(offset + bytes) over (partition by log, pid, tid, file, class order by seq)),
				abs(offset - lag(offset + bytes) over (partition by log, pid, file, class order by seq))) jump
			from events where class in ('read', 'write') and kind = 'file' and offset is not null and bytes > 0
				and (log, pid, file, class) in once),
		pieces as (
			select *, count(*) n, max(bytes) size, sum(bytes) moved, sum(jump > 131072) jumps, sum(service_ns) ns
			from io group by log, pid, file, class, offset)
		select log, cell, node, process, pid, path, class, file, min(t) t, sum(n) calls, sum(moved) / sum(n) mean,
			sum(jumps) * 100 / sum(n) pct, round(sum(ns) / 1e9, 3) s, max(offset + size) - min(offset) range,
			min(number) number
		from pieces group by log, pid, file, class
		having pct > 50 and sum(ns) >= 20000 * sum(n) + 1000 * sum(moved) / 8192 and sum(size) >= .9 * range order by log, number]],
	text = "{process} ({pid}) on {node} went over {range} bytes of {path} ({class}) in {calls} pieces of {mean} bytes, "
		.. "{pct} % of them far from the last one; {s} s",
	todo = "move the pieces in the order of their offsets and join neighbours, or read it all at once",
	evidence = "select number, t, tid, call, offset, bytes, service_ns from events where log = {log} "
		.. "and pid = {pid} and file = {file} and class = {class} order by seq limit 100",
}
