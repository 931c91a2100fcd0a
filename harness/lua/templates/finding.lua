-- Calls that took longer than a second. Each row of 'sql' is a finding; 'culprit query --schema' lists the tables.
-- In 'text' {column} stands for the row's value, in 'evidence' for it as SQL. Say up here what is held against
-- whom, and what is not.

return {
	about = "a read, write or sync took longer than a second",
	severity = "warning", -- error, warning or note
	sql = [[
		select log, node, process, pid, call, path, number, round(service_ns / 1e9, 3) s from events
		where class in ('read', 'write', 'sync') and kind = 'file' and service_ns > 1e9]],
	text = "{process} ({pid}) on {node}: {call} on {path} took {s} s",
	todo = "look at what else the disk did at that time",
	evidence = "select * from events where log = {log} and number = {number}", -- may be left out
}
