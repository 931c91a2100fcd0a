-- A server's call on a file failed, and the application's call that had caused it ended well: somewhere between the
-- two the error was lost. The request's binding (culprit timeline shows it) ties one to the other.
--
-- Held against: a failed read, write or sync, or any call with an error of the server's means (EIO, EROFS, ENOSPC and
-- the like; a lookup's ENOENT or a missing attribute's ENODATA is an answer). Not meant: a call that was interrupted or
-- would have had to wait; one that was done again with success for the same call of the application. A file system
-- that keeps copies may hide an error from applications on purpose: then the copy is to be repaired. Where the
-- application's call returned before the data went to a server, a log ties nothing to it: errno-silent, the detector,
-- compares what servers and applications saw as a whole.

return {
	about = "a server failed, and the application's call behind it ended well",
	severity = "error",
	sql = [[
		select *, count(*) calls, min(time_ns) first_ns from failures where app_result >= 0 and again is null
			and errno not in ('EINTR', 'EAGAIN', 'ERESTARTSYS', 'ERESTARTNOINTR', 'ERESTARTNOHAND')
			and (class in ('read', 'write', 'sync') or errno in ('EIO', 'EROFS', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE',
				'ENOMEM', 'EBADMSG', 'EUCLEAN', 'ENXIO', 'ENODEV', 'ESTALE'))
		group by attempt, node, call, errno, app_pid, app_path order by attempt, first_ns]],
	text = "cell {cell}: {call} failed on {node} with {errno}, for a {request} request of {client} ({by}); there "
		.. "{app_call} of {app_thread} ({app_pid}) on {app_path} returned {app_result}; so {calls} times",
	todo = "find the layer that drops it (the request's answer, the client's cache, a copy) and let it tell the caller",
	evidence = "select node, owner, number, t, pid, tid, call, path, offset, result, errno from events where attempt = "
		.. "{attempt} and ((node = {node} and tid = {tid} and time_ns = {time_ns}) "
		.. "or (node = {client} and tid = {app_tid} and time_ns = {app_time_ns}))",
}
