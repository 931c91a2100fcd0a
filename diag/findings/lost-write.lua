-- A write to a file failed, or moved fewer bytes than it was to move, and the same process never wrote what
-- was missing.
--
-- Held against: write, pwrite64 and the like on files, with a known position. A process that later writes
-- all of what was missing, in one call, is fine. EINTR, EAGAIN and a restart by the kernel are no failure. A write that is
-- cut short as its process is killed is the signal's doing: the thread makes no other call.
-- Of calls with a list of buffers (writev) a log does not say how much was asked: their short writes are
-- not seen, their failures are. A program that noticed the failure and told its user did right, too: a log
-- does not show that.

return {
	about = "a write failed or was cut short, and nobody wrote the rest",
	severity = "error",
	sql = [[
		with writes as materialized (
			select log, cell, node, pid, tid, process, path, file, seq, number, t, call, offset, asked, bytes, errno
			from events where class = 'write' and kind = 'file' and file is not null
				and offset is not null and result is not null),
		bad as (
			select *, offset + bytes lost_at, ifnull(asked - bytes, 1) missing from writes
			where errno not in ('EINTR', 'EAGAIN', 'ERESTARTSYS', 'ERESTARTNOINTR', 'ERESTARTNOHAND')
				or (errno is null and bytes < asked))
		select log, cell, node, process, pid, path, call, ifnull(errno, 'cut short') why, lost_at, missing, t, number,
			file
		from bad where not exists (
			select 1 from writes later where later.log = bad.log and later.file = bad.file
				and later.pid = bad.pid and later.seq > bad.seq and later.bytes > 0
				and later.offset <= bad.lost_at
				and later.offset + later.bytes >= bad.lost_at + bad.missing)
			and not (errno is null and exists (select 1 from signals s where s.log = bad.log and s.pid = bad.pid
					and s.fatal = 1 and s.number > bad.number)
				and not exists (select 1 from events e where e.log = bad.log and e.tid = bad.tid
					and e.number > bad.number))
		order by log, number]],
	text = "{process} ({pid}) on {node}: {call} to {path} at byte {lost_at}: {why}, and the {missing} bytes were "
		.. "not written again",
	todo = "check the result of each write; go on with the rest after a short one, and tell the user "
		.. "of a failure",
	evidence = "select number, t, call, offset, asked, bytes, errno from events where log = {log} "
		.. "and pid = {pid} and file = {file}",
}
