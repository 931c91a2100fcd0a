-- errno-propagation: Kasick et al. 2009, section 7. A server whose call failed with an errno that fault-free training did
-- not see, and that an application got at about the same time, is the culprit.
--
-- From the paper: training on a whole client session flags the errnos of calls that fail on servers in normal
-- operation; an errno that was not flagged, and that reaches the application within a window of 3 seconds around
-- the server's call, indicts the server on which it arose.
--
-- The paper leaves the following open. The rules were derived from logs of failures made by hand (a brick of
-- GlusterFS read-only, full, out of descriptors, under a file-size limit) and from healthy ones.
--
-- Errno alone is flagged, not (call, errno), and for all servers together, not for each. Which call
--   finds out that a file is not there is an accident of the code path (GlusterFS asks lgetxattr, newfstatat,
--   openat and readlinkat), and files go to servers by hash: a short session cannot show every pair on every
--   server, and each that it does not show would be a false alarm. The price: a fault whose errno is an
--   everyday one (ENOENT, EAGAIN) goes unseen here.
-- The window is 1.5 s to either side. Bursts (see culprit.Event) are compared as intervals, which says the same.
--   An application's call counts from its start: a write of one large record fails at its end, seconds after the
--   piece of it that a server refused (1.3 s with records of 16 MB on disks of 8 MB/s).
-- "The same errno" is the errno itself, or what the file system's adapter says that it becomes.
-- A failure that a majority shows. When more than half of the servers show the same unexpected errno, it is
--   not what sets one apart: the paper assumes that most servers are healthy. Healthy GlusterFS bricks, say,
--   begin to return EEXIST when several writers make the same shard, which a short session may not.
-- Failures in silence. A server's unexpected errno that no application saw is named in the evidence
--   ('silent'), but indicts only if asked for ('silent = true'). Two reasons. Without the application as a witness,
--   the verdict would rest on the completeness of training alone: every healthy brick that was looked at
--   had errnos under load (EEXIST, ERANGE) that a session of small files does not produce. And
--   a failure that nobody saw is no propagated error. But whoever runs a file system that loses failed
--   writes can have them as verdicts, after training on the workloads that are judged.

local EVIDENCE_MAX = 20

-- What ran out or was taken away, as far as the errno's own meaning says it.
local resources = { ENOSPC = "storage", EDQUOT = "storage", EROFS = "storage", EIO = "disk", EMFILE = "files", ENFILE = "files",
	EFBIG = "files", ENOMEM = "memory" }

local function train(runs)
	local normal, seen = {}, 0
	for _, run in ipairs(runs) do
		for _, ev in ipairs(run.events) do
			if ev.kind == "server-error" then
				normal[ev.error] = (normal[ev.error] or 0) + ev.count
				seen = seen + 1
			end
		end
	end
	return { normal = normal, bursts = seen, runs = #runs }
end

-- errno -> true: what applications may see of a server's 'errno'.
local function becomes(run, errno)
	local set = {}
	for _, name in ipairs(run.file_system.errno_map[errno] or { errno }) do
		set[name] = true
	end
	return set
end

-- The application's failure nearest in time, within half a window of the server's; or nil.
local function witness(server, failures, errnos, half)
	local best, least
	for _, app in ipairs(failures) do
		local start_s = app.time_s - (app.longest_s or 0)
		local apart = math.max(0, start_s - server.last_s, server.time_s - app.last_s)
		if errnos[app.error] and apart <= half and (not least or apart < least) then
			best, least = app, apart
		end
	end
	return best, least
end

local function describe(ev)
	return { server = ev.server, client = ev.client, call = ev.call, error = ev.error, place = ev.place,
		count = ev.count, first_s = ev.time_s, last_s = ev.last_s }
end

-- errno -> set of servers that show it without having been expected to.
local function spread(unexpected)
	local servers, counts = {}, {}
	for _, ev in ipairs(unexpected) do
		servers[ev.error] = servers[ev.error] or {}
		if not servers[ev.error][ev.server] then
			servers[ev.error][ev.server] = true
			counts[ev.error] = (counts[ev.error] or 0) + 1
		end
	end
	return counts
end

local function diagnose(run, model, params)
	if (model.bursts or 0) == 0 then
		return { { metric = "any", abstain = true, reason = "in training no call of any server failed: nothing tells what is normal" } }
	end
	local unexpected, failures = {}, {}
	for _, ev in ipairs(run.events) do
		if ev.kind == "server-error" and not model.normal[ev.error] then
			unexpected[#unexpected + 1] = ev
		elseif ev.kind == "app-error" then
			failures[#failures + 1] = ev
		end
	end
	local counts, guilty, indicted = spread(unexpected), {}, {}
	local propagated, silent, common, times, resource = {}, {}, {}, {}, nil
	local function indict(ev, at_s)
		guilty[ev.server] = true
		times[ev.server] = math.min(times[ev.server] or at_s, at_s)
		resource = resource or resources[ev.error]
	end
	for _, ev in ipairs(unexpected) do
		local app, apart = witness(ev, failures, becomes(run, ev.error), params.window / 2)
		local told = describe(ev)
		if counts[ev.error] * 2 > #run.servers then
			common[ev.error] = counts[ev.error]
		elseif app then
			told.application, told.apart_s = describe(app), apart
			if #propagated < EVIDENCE_MAX then propagated[#propagated + 1] = told end
			indict(ev, math.max(ev.time_s, app.time_s)) -- when both are known
		else
			if #silent < EVIDENCE_MAX then silent[#silent + 1] = told end
			if params.silent then indict(ev, ev.time_s) end
		end
	end
	for _, server in ipairs(run.servers) do
		if guilty[server] then indicted[#indicted + 1] = server end
	end
	return { { metric = "any", indicted = indicted, time_s = times, resource = resource,
		evidence = { propagated = propagated, silent = silent, on_most_servers = common,
			note = #propagated == 0 and #silent > 0 and "servers failed, and the clients saw nothing of it" or nil } } }
end

---@type culprit.Detector
return {
	name = "errno-propagation",
	summary = "an errno that training did not see, from a server to an application (Kasick et al. 2009, section 7)",
	events = true,
	params = {
		window = { default = "3s", unit = "seconds", min = "1s", max = "600s", help = "around a server's failed call" },
		silent = { default = false, help = "indict for unexpected errnos that no application saw, too" },
	},
	train = train,
	diagnose = diagnose,
}
