-- A process opens the same file, or asks for its attributes by name, again and again without a pause: it could have
-- kept the descriptor, or what it had learnt. Each time costs a path lookup; on a network file system often a request.
--
-- Held against: an open of the same file (not of a new one with its name), or stat, access and the like of the same
-- path, by the same process, less than 10 ms after the last one (who looks at intervals whether something changed waits
-- longer), from 100 times in 10 s: a lookup that is answered over a network takes some 0.1 ms, 100 of them the 10 ms.
-- Fewer cost nothing, however many become of them in hours. Looks at names take a twentieth of the time from each to the
-- next, or more, as calls of small-io do (zip asks the C library for each member's local time, which looks at
-- /etc/localtime: 0.7 us in 100).
-- fstat, of a descriptor, is cheap and is not meant. Nor are a server's looks at names: it answers clients that ask, and
-- may not answer from memory (a brick of GlusterFS does two for each lookup: 214 in 1.4 s for one new folder).

return {
	about = "the same file was opened, or asked for its attributes, again and again",
	severity = "note",
	sql = [[
		with asked as materialized (
			select log, cell, node, pid, process, path, 'opened' what, number, t, time_ns,
				null service_ns, lag(time_ns) over (partition by log, pid, file order by number) last_ns
			from descriptors where open and kind = 'file' and file is not null
			union all
			select log, cell, node, pid, process, path, 'asked for its attributes' what, number, t, time_ns,
				service_ns, lag(time_ns) over (partition by log, pid, path order by seq) last_ns
			from events where path like '/%' and ifnull(kind, 'dir') = 'dir' and ifnull(owner, '') <> 'server'
				and call in ('stat', 'lstat', 'newfstatat', 'statx', 'access', 'faccessat', 'faccessat2')),
		again as (
			select *, count(*) over (partition by log, pid, path, what order by time_ns
				range between 10000000000 preceding and current row) n
			from asked where time_ns - last_ns < 1e7)
		select log, cell, node, process, pid, path, what, min(t) t, max(n) times, min(number) number from again
		group by log, pid, path, what having times >= 100
			and ifnull(20 * sum(service_ns) >= sum(time_ns + service_ns - last_ns), true) order by log, number]],
	text = "{process} ({pid}) on {node}: {path} was {what} {times} times in 10 s, each within 10 ms of the last",
	todo = "keep the file open between uses, or keep what was learnt about it",
	evidence = "select number, t, call, path from events where log = {log} and pid = {pid} and path = {path} union all "
		.. "select number, t, 'descriptor ' || fd, path from descriptors where log = {log} and pid = {pid} "
		.. "and path = {path} and open order by number limit 100",
}
