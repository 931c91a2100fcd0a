-- A process writes a new version of a file under another name and renames it, without a sync between the last write
-- and the rename. After a crash the name may lead to an empty or half-written file: most file systems may write the
-- rename to the disk before the data.
--
-- Held against: rename of a file that the same process wrote, where no fsync or fdatasync of that file and no sync or
-- syncfs came in between, by anybody in the log. All processes of a program are one finding: a build or a version
-- control system starts hundreds, which all do the same. Not meant: a file put aside, whose new name begins with the old one
-- (app.log to app.log.1); a file opened with O_SYNC or O_DSYNC. A log cannot show that the file system orders the two
-- by itself (ext4 does where the target exists), or that the data need not survive a crash.

return {
	about = "a file was renamed before its data was synced",
	severity = "warning",
	sql = [[
		with files as materialized (
			select log, pid, path, file, basename(path) name, max(seq) written from events
			where class = 'write' and kind = 'file' and bytes > 0 group by log, pid, path, file),
		syncs as materialized (
			select log, file, call, seq from events
			where call in ('fsync', 'fdatasync', 'syncfs', 'sync') and result = 0),
		durable as materialized (
			select distinct log, basename(path) name from events
			where class = 'open' and flags like '%SYNC%'),
		renames as materialized (
			select r.*, f.file, max(f.written) written from files f join (
				select log, cell, node, pid, process, seq, number, t, path2, basename(path) name,
					iif(path like './%', substr(path, 3), path) path
				from events where call in ('rename', 'renameat', 'renameat2') and result = 0) r
			on f.log = r.log and f.pid = r.pid and f.name = r.name and f.written < r.seq
				and substr(f.path, -length(r.path)) = r.path
			where substr(r.path2, 1, length(r.path)) <> r.path group by r.log, r.number)
		select log, cell, node, process, pid, path, path2, t, min(number) number, count(*) renames, file,
			iif(count(distinct pid) > 1, ', by ' || count(distinct pid) || ' processes', '') by_many
		from renames r where not exists (
				select 1 from syncs s where s.log = r.log and s.file = r.file
					and s.seq between r.written and r.seq)
			and not exists (select 1 from syncs s where s.call in ('sync', 'syncfs') and s.log = r.log
				and s.seq between r.written and r.seq)
			and not exists (select 1 from durable d where d.log = r.log and d.name = r.name)
		group by log, ifnull(process, pid) order by log, number]],
	text = "{process} ({pid}) on {node} renamed {path} to {path2} at {t} s without a sync of what it had written; "
		.. "files so renamed: {renames}{by_many}",
	todo = "call fsync on the new file before rename, and on its folder afterwards",
	evidence = "select number, t, call, class, path, path2, bytes, errno from events where log = {log} "
		.. "and pid = {pid} and (number = {number} or file = {file})",
}
