-- A reader goes on in a new file where it stopped in the old one of the same name: the data loss that
-- Esteves et al. 2023 found in a log follower. The file was removed or renamed, another took its name, and
-- the reader kept the old file's position. It reads behind the new file's end, and gets nothing, or in the middle of
-- it; what lies before is lost to it.
--
-- Held against: the first read of a descriptor of the new file begins exactly where the reads of the old one ended,
-- not at 0, and the reader has not read the new file up to there (it may have looked at its beginning, to tell it by
-- that). If the read finds data, the reader must never read what lies before, and a process must have written that
-- which had not read the old file: a copy that goes on holds what was read already. A reader that begins at 0 is not
-- meant; neither is one that jumps to the end, unless both files are equally long. Where the old file's reads ended,
-- they had returned data: who only asks whether there is more follows nothing. A process that wrote the new file is
-- no follower of the old one (a database and its journal). Processes of one name are one reader: it may have been
-- started again. The log must have file tags. Where it has no position of a read (an older log of ptrace), that
-- follows from the open, lseek and the reads since. A reader is named once for a path.

return {
	about = "a file was read from a stale offset after it had been replaced",
	severity = "error",
	sql = [[
		with replaced as materialized (
			select log, path from descriptors where open and kind = 'file' and file is not null
			group by log, path having count(distinct file) > 1),
		acts as (
			select log, cell, node, pid, process, path, file, fd, number, t, call, offset, bytes,
				class = 'read' is_read from events
			where kind = 'file' and file is not null and errno is null and (class = 'read' or call = 'lseek')
				and (log, path) in replaced
			union all
			select log, cell, node, pid, process, path, file, fd, number, t, 'open', 0, 0, 0
			from descriptors where open and kind = 'file' and (log, path) in replaced),
		parts as (
			select *, count(*) filter (where call = 'open') over w opening,
				count(*) filter (where not is_read) over w part
			from acts window w as (partition by log, pid, fd order by number)),
		places as (
			select *, ifnull(offset, first_value(offset) over w - bytes
				+ sum(bytes) filter (where offset is null) over w) at from parts
			window w as (partition by log, pid, fd, part order by number)),
		reads as materialized (
			select log, cell, node, pid, ifnull(process, pid) process, path, file, number, t, at offset, bytes,
				row_number() over (partition by log, pid, fd, opening order by number) nth
			from places where is_read and at is not null),
		spans as materialized (
			select log, process, path, file, max(number) last, max(offset + bytes) reached
			from reads where bytes > 0 group by log, process, path, file),
		writers as materialized (
			select log, pid, file, min(offset) first from events
			where kind = 'file' and file is not null and class = 'write' and bytes > 0 and (log, path) in replaced
			group by log, pid, file)
		select r.log, r.cell, r.node, r.process, r.pid, r.path, r.offset, r.t, min(r.number) number, old.file old_file, r.file,
			case when count(distinct r.file) > 1 then ', and of ' || (count(distinct r.file) - 1) || ' more' else '' end more,
			case when sum(r.bytes) > 0 then 'what lies before was not read' else 'nothing was read' end got
		from reads r join spans old on old.log = r.log and old.process = r.process and old.path = r.path
				and old.file <> r.file and old.last < r.number and old.reached = r.offset
		where r.nth = 1 and r.offset > 0 and not exists (
			select 1 from reads b where b.log = r.log and b.process = r.process and b.file = r.file
				and (r.bytes > 0 or b.number < r.number) and b.offset < r.offset and b.offset + b.bytes >= r.offset)
			and not exists (select 1 from writers w where w.log = r.log and w.file = r.file and w.pid = r.pid)
			and (r.bytes = 0 or exists (select 1 from writers w where w.log = r.log and w.file = r.file and w.first = 0
				and not exists (select 1 from reads s where s.log = w.log and s.pid = w.pid and s.file = old.file)))
		group by r.log, r.process, r.path order by r.log, number]],
	text = "{process} ({pid}) on {node} went on at byte {offset} of a new {path}{more}, where the old one ended: {got}",
	todo = "let the reader compare device, inode and size when it opens a name again, and begin at 0 "
		.. "where they differ",
	evidence = "select number, t, call, file, offset, bytes, path from events where log = {log} "
		.. "and path = {path} and (pid = {pid} or process = {process})",
}
