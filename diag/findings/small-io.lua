-- A file is read or written in many small pieces, each where the last one ended and right after it: fewer and larger
-- calls would have moved the same bytes.
--
-- Held against: a call of less than 4096 bytes (a page, the least that the kernel caches and a disk moves) that begins
-- where the process's last call on the file ended, less than 1 ms after it (a buffer that waits so long delays nobody:
-- one access to a disk takes longer), the last one being small, too, with no sync in between. From 1000 such calls of
-- a process on a file: at some microseconds each they take the time of one access to a disk, and fewer do no harm. They
-- take a twentieth of the time from each to the next, or more: where the program does other things all the while (a line
-- of a log for each request), fewer calls would make it no faster. Three such files of a folder, or more, are one finding.

return {
	about = "a file was read or written in small pieces where large ones were possible",
	severity = "note",
	sql = [[
		with io as materialized (
			select log, cell, node, pid, process, path, file, class, number, t, time_ns, service_ns, offset, bytes,
				lag(class) over w last_class, lag(offset + bytes) over w last_end,
				lag(time_ns + service_ns) over w last_ns
			from events where class in ('read', 'write', 'sync') and kind = 'file' and errno is null
				and (class = 'sync' or (offset is not null and bytes between 1 and 4095))
			window w as (partition by log, pid, file order by seq)),
		found as (
		select log, cell, node, process, pid, path, class, file, t, count(*) calls, sum(bytes) / count(*) mean,
			(sum(bytes) + 131071) / 131072 enough, round(sum(service_ns) / 1e6, 3) ms, min(number) number
		from io where class = last_class and offset = last_end and time_ns - last_ns < 1e6
		group by log, pid, file, class having calls >= 1000
			and 20 * sum(service_ns) >= sum(time_ns + service_ns - last_ns)),
		placed as (
			select *, count(*) over (partition by log, pid, class, folder) files from (
				select *, rtrim(path, replace(path, '/', '')) folder from found))
		select log, cell, node, process, pid, class, file, t, sum(calls) calls, sum(mean * calls) / sum(calls) mean,
			sum(enough) enough, round(sum(ms), 3) ms, min(number) number,
			iif(files > 2, files || ' files in ' || folder || ', the first of them ' || path, path) place
		from placed group by log, pid, class, iif(files > 2, folder, file) order by log, number]],
	text = "{process} ({pid}) on {node}: {calls} calls of {mean} bytes in a row ({class}) on {place}, {ms} ms; "
		.. "{enough} of 128 KiB would have done",
	todo = "put a buffer in between (stdio's setvbuf, a buffered reader or writer), or map the file",
	evidence = "select number, t, tid, call, offset, bytes, service_ns from events where log = {log} "
		.. "and pid = {pid} and file = {file} and class = {class} and number >= {number} order by seq limit 100",
}
