-- Threads of one kind get slow whenever many threads of another kind use the same disk: what Esteves et al. 2023 saw
-- as peaks of clients' latency while five or more of seven background threads did I/O.
--
-- Kinds are a process's threads whose names differ only in digits at the end. A second is crowded where enough threads
-- of the other kind move data on the disk: more than half of the most that ever were at it in one second, or any at
-- all; both are tried, since a disk may be slow enough for one. Crowded seconds in a row are a period. Held against: a
-- call of the slow kind takes at least twice as long in crowded periods as in the others (medians of their means), and
-- it takes longer in a crowded period than in the one before it so often that chance would do it once in 4000 times
-- (sign test, z >= 3.46, half of 1/2000 as there are two tries; so 12 periods or more are needed, and one phase of the
-- work or a trend is not enough); 0.1 ms or more a call, since what does not wait for a disk takes less. That one waits
-- for the other's data is not told from waiting for the disk.

return {
	about = "threads were slow whenever many others used the same disk",
	severity = "warning",
	sql = [[
		with kinds as materialized (
			select log, cell, node, device, pid, process, rtrim(thread, '0123456789') kind, second,
				count(distinct tid) threads, sum(calls) calls, 1e-6 * sum(total_ns) ms from (
				select log, cell, node, device, pid, process, thread, tid, second, sum(calls) calls, sum(total_ns) total_ns
				from totals where kind = 'file' and class in ('read', 'write', 'sync')
				group by log, node, device, pid, process, thread, tid, second)
			group by log, node, device, pid, kind, second),
		others as materialized (
			select log, device, pid, kind, max(threads) most from kinds group by 1, 2, 3, 4 having most > 1),
		tries as (
			select *, most / 2 + 1 many from others union all select *, 1 from others),
		both as materialized (
			select v.*, o.pid other_pid, o.kind other, o.most, o.many, ifnull(k.threads, 0) >= o.many crowded
			from kinds v join tries o on o.log = v.log and o.device = v.device and (o.pid, o.kind) <> (v.pid, v.kind)
				left join kinds k on k.log = v.log and k.device = v.device and k.pid = o.pid and k.kind = o.kind
					and k.second = v.second),
		marked as (
			select *, crowded <> lag(crowded) over w changed from both
			window w as (partition by log, device, pid, kind, other_pid, other, many order by second)),
		counted as (
			select *, sum(changed) over w spell from marked
			window w as (partition by log, device, pid, kind, other_pid, other, many order by second)),
		spells as (
			select *, sum(ms) / sum(calls) mean, count(*) s, min(second) t from counted
			group by log, device, pid, kind, other_pid, other, many, spell),
		beside as (
			select *, lag(mean) over w before from spells
			window w as (partition by log, device, pid, kind, other_pid, other, many order by t)),
		tried as (
			select log, cell, node, device, process, pid, kind, other, other_pid, most, many,
				round(percentile(mean, 50) filter (where crowded), 3) slow_ms,
				round(percentile(mean, 50) filter (where not crowded), 3) fast_ms,
				sum(s) filter (where crowded) crowded_s, sum(s) filter (where not crowded) other_s,
				count(before) filter (where crowded) periods, sum(mean > before) filter (where crowded) worse,
				min(t) filter (where crowded) t
			from beside group by log, device, pid, kind, other_pid, other, many),
		held as (
			select *, row_number() over (partition by log, device, pid, kind, other_pid, other
				order by (2.0 * worse - periods) * (2 * worse - periods) / periods desc, many desc) place
			from tried where slow_ms >= .1 and slow_ms >= 2 * fast_ms and 2 * worse > periods
				and (2 * worse - periods) * (2 * worse - periods) >= 3.46 * 3.46 * periods)
		select * from held where place = 1 order by log, slow_ms desc]],
	text = "{kind} threads of {process} ({pid}) on {node}: {slow_ms} ms a call in the {crowded_s} s in which {many} "
		.. "or more of {most} {other} threads used device {device}, {fast_ms} ms in the other {other_s} s; "
		.. "slower than just before in {worse} of {periods} periods",
	todo = "let fewer of the other threads work at once, limit their bandwidth, or give them another disk",
	evidence = [[
		select second, count(distinct tid) filter (where pid = {other_pid} and name = {other}) others,
			sum(calls) filter (where pid = {pid} and name = {kind}) calls,
			1e-6 * sum(ns) filter (where pid = {pid} and name = {kind}) ms from (
			select second, pid, tid, rtrim(thread, '0123456789') name, calls, total_ns ns from totals
			where log = {log} and device = {device} and kind = 'file' and class in ('read', 'write', 'sync'))
		group by second order by second]],
}
