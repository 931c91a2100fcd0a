-- crash-hang: Kasick et al. 2009, section 7. When an application's call fails because a server is lost, or takes too long, the
-- server whose connection to the client daemons differs from the others' is the culprit.
--
-- From the paper: an application's I/O call that fails with a connection error says that a server crashed, one that
-- exceeds a timeout of 30 s that one hangs; of the client daemon's calls to each server's socket the last
-- completed one until that moment is looked at, and the culprit is the server where it differs from the
-- others': the client has had no answer to its last request.
--
-- The paper leaves the following open. These rules were derived from logs of GlusterFS
-- 10.3 with one brick killed, stopped, out of memory, and healthy, all recorded by hand.
--
-- Which errnos mean a lost server depends on the file system: its adapter lists them ('lost_errnos').
-- Which calls: those on a descriptor below the mount, and those on paths, of which a log does not say
--   where they led; of the latter none but a file system's own can wait that long or be 'not connected'.
-- Moments: of a failed call, its end (of a burst, the first's and the last's). Of a long one, the timeout
--   after its start, and again every timeout until it ends: the server may have hung in the middle of a call.
-- What differs. A link is 'ended' (end of stream, reset, refused, closed), 'waiting' (requests have no
--   answer) or 'answered'. The last call alone does not tell the last two apart when a client sends requests
--   ahead: of the two clients of a stopped brick that ran dd, both read the answer to one request last, with
--   45 and 49 others open. So requests and answers are counted (diag/derive/events.h). An ended
--   or waiting link accuses; an answered one never does, even if it is the only one of its kind.
-- Patience. A link waits only if nothing moved on it for 'silence': a busy server has open requests, too.
-- The majority. A moment counts if fewer than half of the servers are accused; if all wait, it is the client,
--   the network, or the wrong question.
-- Keep-alives need no rule: GlusterFS pings a server every 42 s, and the answer to a ping is one like any other.
-- Votes. A client accuses the servers that differed in more than half of its moments that count; indicted is
--   who is accused by more than half of the clients that accuse anybody. So clients whose files
--   are elsewhere do not outvote those that wait, and two dead servers of five are both found.

local EVIDENCE_MAX = 20

local function set_of(list)
	local set = {}
	for _, name in ipairs(list) do set[name] = true end
	return set
end

-- List of { client, at_s, call, error or nil, took_s }.
local function find_moments(run, params)
	local lost, moments = set_of(run.file_system.lost_errnos), {}
	for _, ev in ipairs(run.events) do
		if ev.kind == "app-error" and lost[ev.error] then
			for _, at in ipairs { ev.time_s, ev.last_s > ev.time_s and ev.last_s or nil } do
				moments[#moments + 1] = { client = ev.client, at_s = at, call = ev.call, error = ev.error }
			end
		elseif ev.kind == "app-slow" then
			for at = ev.time_s + params.timeout, ev.last_s, params.timeout do
				moments[#moments + 1] = { client = ev.client, at_s = at, call = ev.call, took_s = ev.last_s - ev.time_s,
					unfinished = ev.open }
			end
		end
	end
	return moments
end

-- client -> server -> its stretches of quiet.
local function find_links(run)
	local links = {}
	for _, ev in ipairs(run.events) do
		if ev.kind == "link-quiet" then
			links[ev.client] = links[ev.client] or {}
			links[ev.client][ev.server] = links[ev.client][ev.server] or {}
			table.insert(links[ev.client][ev.server], ev)
		end
	end
	return links
end

-- The stretch of a link that accuses the server at this moment, or nil.
local function accusation(stretches, at_s, silence)
	for _, ev in ipairs(stretches or {}) do
		if ev.time_s <= at_s and (at_s <= ev.last_s or ev.open) then
			if ev.state == "ended" or (ev.state == "waiting" and at_s - ev.time_s >= silence) then
				return ev
			end
		end
	end
	return nil
end

-- Adds what the links of its client said at that moment; server -> true, or nil if it does not count.
local function judge_moment(run, moment, links, params)
	local accused, n = {}, 0
	moment.links = {}
	for _, server in ipairs(run.servers) do
		local ev = accusation(links[server], moment.at_s, params.silence)
		if ev then
			accused[server], n = true, n + 1
			moment.links[server] = { state = ev.state, call = ev.call, error = ev.error, waiting = ev.waiting,
				since_s = ev.time_s }
		end
	end
	moment.counts = n > 0 and n * 2 < #run.servers
	return moment.counts and accused or nil
end

-- name -> true for those with more than half of 'total'.
local function majority(votes, total)
	local winners = {}
	for name, n in pairs(votes) do
		winners[name] = n * 2 > total or nil
	end
	return winners
end

local function diagnose(run, _, params)
	if #run.events == 0 then
		return { { metric = "any", abstain = true, reason = "the run has no events" } }
	end
	local links, moments, by_client, counting, first = find_links(run), find_moments(run, params), {}, {}, {}
	for _, moment in ipairs(moments) do
		local accused = judge_moment(run, moment, links[moment.client] or {}, params)
		if accused then
			local votes = by_client[moment.client] or {}
			by_client[moment.client] = votes
			counting[moment.client] = (counting[moment.client] or 0) + 1
			for server in pairs(accused) do
				votes[server] = (votes[server] or 0) + 1
				first[server] = math.min(first[server] or moment.at_s, moment.at_s)
			end
		end
	end
	local votes, clients, indicted, times = {}, 0, {}, {}
	for client, of in pairs(by_client) do
		local winners = majority(of, counting[client])
		if next(winners) then clients = clients + 1 end
		for server in pairs(winners) do votes[server] = (votes[server] or 0) + 1 end
	end
	local winners = majority(votes, clients)
	for _, server in ipairs(run.servers) do
		if winners[server] then
			indicted[#indicted + 1] = server
			times[server] = first[server]
		end
	end
	local shown = table.move(moments, 1, math.min(#moments, EVIDENCE_MAX), 1, {})
	return { { metric = "any", indicted = indicted, time_s = times, resource = "service",
		evidence = { moments = #moments, shown = shown, votes = votes, clients = clients } } }
end

---@type culprit.Detector
return {
	name = "crash-hang",
	summary = "applications lose a server, and one connection differs from the others (Kasick et al. 2009, section 7)",
	events = true,
	params = {
		timeout = { default = "30s", unit = "seconds", min = "1s", max = "3600s", help = "a call that takes longer hangs" },
		silence = { default = "1s", unit = "seconds", min = "0.5s", max = "600s",
			help = "a server with open requests is silent after so long" },
	},
	diagnose = diagnose,
}
