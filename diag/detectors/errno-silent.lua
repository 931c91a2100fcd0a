-- errno-silent: the counterpart of errno-propagation. Indicts a server that failed to store data while no
-- application was told: silent loss.
--
-- Example: a server that acknowledges writes before they are on its disk (OrangeFS with alt-aio) hits a limit
-- on file sizes. 240 writes fail with EFBIG on the server, none on a client, and zeros are read back.
--
-- Which calls. Those that put data into storage: writes, ftruncate, fallocate, and those that bring it to the
--   disk (fsync ...). A failed open, mkdir or setxattr loses no data: the server refuses the request, and a
--   client may create the object elsewhere.
-- Which failures. Neither EAGAIN and EINTR, after which a call is repeated, nor fsync or fallocate saying that
--   the file cannot do this (EINVAL, EOPNOTSUPP, ENOSYS). Nor those that training saw: an errno with which
--   calls of this kind fail in normal operation. Training on a session without any such failure is good
--   training; it flags nothing.
-- Repeated. A call that the server repeats with success on the same range of the same file has lost nothing
--   (a write refused by O_DIRECT and repeated through the cache). A later fsync makes nothing good: the
--   kernel drops the pages that it could not write, and tells once.
-- Fail-stop. A server that ends within 2 s of its first failure has not acknowledged what failed: clients lose
--   it, or send again when it is back. Not silent; crash-hang looks for it.
-- Told success. An application's calls that change data succeeded, at most 'listen' before the first failure
--   (a cache may hold the data for so long) or after the last. If none did, nobody was told a wrong thing.
-- Heard. From 1.5 s before the first failure (clocks, order of ends) to the end of the run, a call of any
--   application failed with the errno, with one into which the file system's adapter says that it is
--   translated, or with one that says that a server is lost; or a call that changes or closes a file failed
--   with whatever errno that training did not see there: an adapter may not know every translation, and who is
--   told of a wrong error is told. A late report, at fsync or close, counts. An application's call counts from
--   its start, as a long one fails at its end.
-- How long. Silence takes time to establish: nobody heard for 'listen' (30 s: by default the kernel's longest
--   delay of a write) after the first failure. If the run ends before that, or if an application has waited
--   for an answer since before the first failure and until the end, the detector cannot tell, and abstains.
--   An application that has ended was told success to its end, and does not listen any more.
-- Majority. Errnos that say that storage does not take data (ENOSPC, EIO, EROFS, EFBIG ...) indict as many
--   servers as show them: loss is no matter of comparison. Any other errno on more than half of the servers is
--   a server program's way of working (it tries what this storage does not support), and indicts none.
--
-- Which application's write a failure belongs to is not known: no call of a server names its client's call.
-- So a failure is heard if anybody heard it. With copies on other servers (replicas, parity) what is lost may be
-- one copy only: the server has failed all the same, and nobody was told.

local SLACK_S = 1.5
local FAIL_STOP_S = 2
local EVIDENCE_MAX = 20

local resources = { ENOSPC = "storage", EDQUOT = "storage", EROFS = "storage", EIO = "disk", ENODEV = "disk", ENXIO = "disk",
	EFBIG = "files", EMFILE = "files", ENFILE = "files", ENOMEM = "memory" }

-- The storage itself does not take data, whatever the server's program tries.
local refuses = { ENOSPC = true, EDQUOT = true, EROFS = true, EIO = true, ENODEV = true, ENXIO = true, EFBIG = true }

local writes, syncs, again = {}, {}, { EAGAIN = true, EINTR = true }
for _, call in ipairs { "write", "pwrite64", "writev", "pwritev", "pwritev2", "io_submit", "copy_file_range", "ftruncate",
	"fallocate" } do
	writes[call] = true
end
for _, call in ipairs { "fsync", "fdatasync", "syncfs", "sync_file_range" } do syncs[call] = true end
local unsupported = { EINVAL = true, EOPNOTSUPP = true, ENOSYS = true }

local function changes_data(ev)
	return writes[ev.call] or syncs[ev.call] or false
end

-- Did a server's call fail to store data?
local function loses(ev)
	if ev.kind ~= "server-error" or ev.place ~= "storage" or not changes_data(ev) or again[ev.error] then return false end
	return not ((syncs[ev.call] or ev.call == "fallocate") and unsupported[ev.error])
end

-- An application's call that can tell of data that was not stored.
local function can_tell(ev)
	return changes_data(ev) or ev.call == "close"
end

local function train(runs)
	local model = { normal = {}, told = {}, runs = #runs }
	for _, run in ipairs(runs) do
		for _, ev in ipairs(run.events) do
			if loses(ev) and ev.count > (ev.redone or 0) then
				model.normal[ev.error] = (model.normal[ev.error] or 0) + ev.count
			elseif ev.kind == "app-error" and can_tell(ev) then
				model.told[ev.error] = (model.told[ev.error] or 0) + ev.count
			end
		end
	end
	return model
end

-- The failures by server and errno, in the order of their first.
local function failures_of(run, normal)
	local groups, list, servers = {}, {}, {}
	for _, ev in ipairs(run.events) do
		local lost = loses(ev) and not normal[ev.error] and ev.count - (ev.redone or 0) or 0
		if lost > 0 then
			local key = ev.server .. " " .. ev.error
			local g = groups[key]
			if not g then
				g = { server = ev.server, error = ev.error, calls = 0, repeated = 0, bytes = 0, by_call = {},
					first_s = ev.time_s, last_s = ev.last_s }
				groups[key], list[#list + 1] = g, g
				servers[ev.error] = (servers[ev.error] or 0) + 1
			end
			g.calls = g.calls + lost
			g.repeated = g.repeated + (ev.redone or 0)
			g.bytes = g.bytes + (ev.bytes or 0)
			g.by_call[ev.call] = (g.by_call[ev.call] or 0) + lost
			g.last_s = math.max(g.last_s, ev.last_s)
		end
	end
	return list, servers
end

-- The application's failure by which somebody heard of 'g'.
local function heard(run, model, g)
	local means = {}
	for _, name in ipairs(run.file_system.errno_map[g.error] or { g.error }) do means[name] = true end
	for _, name in ipairs(run.file_system.lost_errnos) do means[name] = true end
	for _, ev in ipairs(run.events) do
		if ev.kind == "app-error" and ev.last_s >= g.first_s - SLACK_S and
			(means[ev.error] or (can_tell(ev) and not again[ev.error] and not model.told[ev.error])) then
			return ev
		end
	end
end

local function fail_stop(run, g)
	for _, ev in ipairs(run.events) do
		if ev.kind == "server-end" and ev.server == g.server and ev.time_s >= g.first_s - SLACK_S and
			ev.time_s <= g.first_s + FAIL_STOP_S then
			return true
		end
	end
	return false
end

-- How many clients were told that data is stored, and whether one has waited since before the failure.
local function told_success(run, g, listen)
	local clients, n, waits = {}, 0, false
	for _, ev in ipairs(run.events) do
		if ev.kind == "app-done" and changes_data(ev) and not clients[ev.client] and ev.last_s >= g.first_s - listen and
			ev.time_s <= g.last_s + listen then
			clients[ev.client], n = true, n + 1
		elseif ev.kind == "app-slow" and ev.open and ev.time_s <= g.first_s then
			waits = true
		end
	end
	return n, waits
end

-- Were an application's calls recorded at all?
local function sees_success(run)
	for _, ev in ipairs(run.events) do
		if ev.kind == "app-done" then return true end
	end
	return false
end

-- "silent", or why not: "heard", "unsettled" (cannot tell), "other".
local function weigh(run, model, g, params, common)
	if common * 2 > #run.servers and not refuses[g.error] then return "other", "the same on most servers" end
	if fail_stop(run, g) then return "other", "the server ended at once" end
	local app = heard(run, model, g)
	if app then
		g.application = { client = app.client, call = app.call, error = app.error, first_s = app.time_s, last_s = app.last_s }
		return "heard"
	end
	if not sees_success(run) then
		return "unsettled", "no application's call that changes or closes a file is known to have succeeded"
	end
	local n, waits = told_success(run, g, params.listen)
	g.clients_told_success = n
	if n == 0 then return "other", "no application was told success" end
	if waits then return "unsettled", "an application has waited for an answer since before the failure" end
	if g.listened_s < params.listen then return "unsettled", "the run ended before 'listen' was over" end
	return "silent"
end

local function diagnose(run, model, params)
	local list, servers = failures_of(run, model.normal or {})
	local kinds = { silent = {}, heard = {}, unsettled = {}, other = {} }
	local indicted, guilty, times, resource = {}, {}, {}, nil
	model.told = model.told or {}
	for _, g in ipairs(list) do
		g.listened_s = run.seconds - g.first_s
		local kind, why = weigh(run, model, g, params, servers[g.error])
		g.why = why
		if g.bytes == 0 then g.bytes = nil end -- only vectored writes, whose length is not recorded
		if #kinds[kind] < EVIDENCE_MAX then kinds[kind][#kinds[kind] + 1] = g end
		if kind == "silent" then
			local at_s = g.first_s + params.listen
			times[g.server] = math.min(times[g.server] or at_s, at_s)
			guilty[g.server] = true
			resource = resource or resources[g.error]
		end
	end
	for kind, found in pairs(kinds) do
		if #found == 0 then kinds[kind] = nil end
	end
	for _, server in ipairs(run.servers) do
		if guilty[server] then indicted[#indicted + 1] = server end
	end
	if #indicted == 0 and kinds.unsettled then
		return { { metric = "any", abstain = true, evidence = kinds, reason = "servers failed to store data, and " ..
			"whether applications hear of it is open: " .. kinds.unsettled[1].why } }
	end
	return { { metric = "any", indicted = indicted, time_s = times, resource = resource, evidence = kinds } }
end

---@type culprit.Detector
return {
	name = "errno-silent",
	summary = "servers fail to store data, and no application hears of it",
	events = true,
	params = {
		listen = { default = "30s", unit = "seconds", min = "1s", max = "600s",
			help = "time after a failure in which an application may hear of it" },
	},
	train = train,
	diagnose = diagnose,
}
