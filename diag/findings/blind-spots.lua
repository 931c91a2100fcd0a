-- The tracer knows of reads and writes that it cannot record: they go through memory, through rings of io_uring, or are
-- made by 32-bit programs. What a log says of files and bytes leaves them out, so "nothing" may be too little.
--
-- Held against: any that was counted. Not meant: descriptors that were changed unseen ('changes' of the table unseen),
-- since they were right again when they were used; private mappings, which every program has of its libraries.

return {
	about = "something was read, written or called under trace that the log does not have",
	severity = "note",
	sql = [[
		select *, sum(count) calls from unseen where what <> 'changes' group by attempt, node, log, what
			order by calls desc]],
	text = "{log}: not seen on {node}: {about}: {calls}",
	todo = "read counts of files and bytes as lower bounds; for io_uring trace with ebpf on a kernel that shows it",
	evidence = "select node, owner, number, t, what, count from unseen where log = {log} and what = {what}",
}
