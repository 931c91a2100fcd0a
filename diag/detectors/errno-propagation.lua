-- errno-propagation: Kasick et al. 2009, section 7. Indicts a server if one of its calls failed with an
-- errno that did not occur in fault-free training, and an application got that errno at about the same
-- time.
--
-- The paper's algorithm. Training on a whole client session flags the errnos of calls that fail on servers
-- in normal operation. An errno that is not flagged, and that reaches the application within a window of 3
-- seconds around the server's call, indicts the server on which it occurred.
--
-- The paper leaves the following open. The rules were derived from logs of failures made by hand (a
-- GlusterFS brick read-only, full, out of descriptors, under a file-size limit) and from logs of healthy
-- bricks.
--
-- Flags. The errno alone is flagged, not (call, errno), and for all servers together. Which call finds that
-- a
--   file is missing depends on the code path (GlusterFS uses lgetxattr, newfstatat, openat and readlinkat),
--   and files are placed on servers by hash. A short session cannot show every pair on every server, and each
--   missing pair would cause a false alarm. The price: a fault whose errno is common in normal operation
--   (ENOENT, EAGAIN) is not detected.
-- Window. 1.5 s to either side. Bursts (see culprit.Event) are compared as intervals. An application's call
--   counts from its start: a write of one large record fails at its end, seconds after a server refused a
--   part of it (1.3 s with records of 16 MB on disks of 8 MB/s).
-- Same errno. The errno itself, or those into which the file system's adapter says it is translated.
-- Majority. An unexpected errno on more than half of the servers indicts none of them, because the paper
-- assumes
--   that most servers are healthy. Example: healthy GlusterFS bricks return EEXIST when several writers
--   create the same shard, which may not happen in a short session.
-- Silent failures. A server's unexpected errno that no application saw is listed in the evidence
-- ('silent'), and
--   indicts only with 'silent = true', for two reasons. Without the application as a witness the verdict
--   depends on complete training alone: every healthy brick that was examined had errnos under load (EEXIST,
--   ERANGE) that a session of small files does not produce. And a failure that no application saw is not a
--   propagated error. Where a file system loses failed writes, 'silent = true' is useful after training on
--   the workloads that are judged.

local EVIDENCE_MAX = 20

-- The resource that an errno points to.
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

-- Returns errno -> true for those that applications may get when a server's call fails with 'errno'.
local function becomes(run, errno)
	local set = {}
	for _, name in ipairs(run.file_system.errno_map[errno] or { errno }) do
		set[name] = true
	end
	return set
end

-- The application's failure with one of 'errnos' that is nearest in time to the server's, and the distance
-- in seconds; nil if none is within 'half' a window.
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

-- Returns errno -> number of servers on which it occurred unexpectedly.
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
		return { { metric = "any", abstain = true, reason = "in training no call of any server failed: nothing shows what is normal" } }
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
			indict(ev, math.max(ev.time_s, app.time_s)) -- when both had happened
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
			note = #propagated == 0 and #silent > 0 and "calls failed on servers, and no application got their errnos" or nil } } }
end

---@type culprit.Detector
return {
	name = "errno-propagation",
	summary = "an errno unknown from training reaches an application from a server (Kasick et al. 2009, section 7)",
	events = true,
	params = {
		window = { default = "3s", unit = "seconds", min = "1s", max = "600s", help = "window around a server's failed call" },
		silent = { default = false, help = "also indict for unexpected errnos that no application saw" },
	},
	train = train,
	diagnose = diagnose,
}
