-- Calls that took longer than a second. Each row of 'sql' is a finding; 'culprit query --schema' lists the tables.
-- {column} is replaced by the row's value in 'text', and by that value as SQL in 'evidence'. Say here what this
-- finding shows and what it does not.

return {
	about = "a read, write or sync took longer than a second",
	severity = "warning", -- error, warning or note
	sql = [[
		select log, node, process, pid, call, path, number, round(service_ns / 1e9, 3) s from events
		where class in ('read', 'write', 'sync') and kind = 'file' and service_ns > 1e9]],
	text = "{process} ({pid}) on {node}: {call} on {path} took {s} s",
	todo = "check the disk's other work at that time",
	evidence = "select * from events where log = {log} and number = {number}", -- optional
}
