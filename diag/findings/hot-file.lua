-- One file makes one server move more data than its peers.
--
-- Held against: in an attempt with three servers or more, a server's disk calls moved more than twice the median of all
-- servers, and one file more than half of the server's. Bytes are compared, not times: a server with a slow disk takes
-- longer for the same. From 256 calls on the file, which at some milliseconds each are a second of a disk's time.
-- The name is that of the server's own file; what the users' file is called, only the file system knows.

return {
	about = "one file made one server busier than its peers",
	severity = "warning",
	sql = [[
		with files as materialized (
			select cell, attempt, node, log, path, sum(case when kind = 'file' and class in ('read', 'write')
				then bytes else 0 end) moved, sum(calls) calls from totals where owner = 'server'
			group by cell, attempt, node, log, path, kind = 'file' and class in ('read', 'write')),
		servers as (
			select cell, attempt, node, log, path, calls, sum(moved) moved, max(moved) top
			from files group by attempt, node),
		typical as (
			select attempt, count(*) n, percentile(moved, 50) median from servers group by attempt having n >= 3)
		select s.*, round(moved / 1e6, 1) mb, round(median / 1e6, 1) median_mb, 100 * top / moved pct
		from servers s join typical using (attempt)
		where moved > 2 * median and top > moved / 2.0 and calls >= 256 order by attempt, node]],
	text = "cell {cell}: {node} moved {mb} MB, the median server {median_mb} MB; {pct} % of it are {path}",
	todo = "stripe the file over more servers, or let its readers share what they read",
	evidence = "select cell, attempt, node, path, sum(calls) calls, sum(bytes) bytes from totals "
		.. "where attempt = {attempt} and owner = 'server' and kind = 'file' and class in ('read', 'write') "
		.. "group by node, path order by bytes desc limit 20",
}
