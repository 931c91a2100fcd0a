-- crash-hang: Kasick et al. 2009, section 7. When an application's call fails because a server is lost, or
-- takes too long, the server whose connection to the client daemons differs from the others is indicted.
--
-- The paper's algorithm. An application's I/O call that fails with a connection error means that a server
-- crashed; one that exceeds a timeout of 30 s means that a server hangs. For each server, the last call
-- that the client daemon completed on its socket until that moment is looked at. The server for which
-- it differs from the others is indicted: the client has no answer to its last request.
--
-- The paper leaves the following open. The rules were derived from logs of GlusterFS 10.3 recorded by hand:
-- with one brick killed, stopped, out of memory, and healthy.
--
-- Errnos. Which errnos mean a lost server depends on the file system; its adapter lists them
-- ('lost_errnos'). Calls. Calls on descriptors below the mount, and calls on paths. A log does not say
-- where a path led, but
--   only a path on the file system can wait that long or fail as 'not connected'.
-- Moments. For a failed call, its end (for a burst, the ends of its first and last call). For a long call,
-- the
--   timeout after its start and every further timeout until its end: the server may have hung in the
--   middle of the call.
-- Links. The link between a client and a server is 'ended' (end of stream, reset, refused, closed),
-- 'waiting'
--   (requests have no answer) or 'answered'. The last call alone cannot tell the last two apart if a client
--   sends several requests at once: when a brick was stopped under dd, the last call of both clients read
--   the answer to one request, and 45 and 49 others were open. Counts of requests and answers cannot either,
--   where one call carries several, as in Ceph. diag/derive/events.h has the rule, which uses both, and the
--   next call. An ended or waiting link accuses its server; an answered one never does, even if it is the
--   only one that is answered.
-- Closing. A client that closes a connection on which no request is open has finished with it: that says
--   nothing of the server. A client that gives up an open request closes a link that was waiting.
-- Silence. A waiting link accuses only after nothing moved on it for 'silence': a busy server has open
--   requests, too.
-- Majority. A moment counts if fewer than half of the servers are accused. If all links wait, the cause is
--   the client, the network, or something else that they share.
-- Keep-alives need no rule: GlusterFS pings a server every 42 s and gets answers; Ceph's clients ping an OSD
-- that owes an answer for 10 s, and nothing answers that.
-- Votes. A client accuses the servers that are accused in more than half of its moments that count. A
-- server
--   is indicted if more than half of the clients that accuse any server accuse it. So clients whose files
--   are on other servers do not outvote those that wait, and of five servers two dead ones are both found.

local EVIDENCE_MAX = 20

local function set_of(list)
	local set = {}
	for _, name in ipairs(list) do set[name] = true end
	return set
end

-- Returns a list of { client, at_s, call, and error or took_s and unfinished }.
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

-- Returns client -> server -> list of 'link-quiet' events.
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

local SAME_S = 0.01 -- a stretch that ends when another begins, after rounding

-- Did the client close this connection without waiting for anything?
local function closed_at_rest(ended, stretches)
	if ended.call ~= "close" or ended.error or (ended.waiting or 0) > 0 then return false end
	for _, ev in ipairs(stretches) do
		if ev.state == "waiting" and ev.time_s < ended.time_s and ev.last_s >= ended.time_s - SAME_S then
			return false
		end
	end
	return true
end

-- The 'link-quiet' event that accuses the server at this moment, or nil.
local function accusation(stretches, at_s, silence)
	for _, ev in ipairs(stretches or {}) do
		if ev.time_s <= at_s and (at_s <= ev.last_s or ev.open) then
			if (ev.state == "ended" and not closed_at_rest(ev, stretches)) or
				(ev.state == "waiting" and at_s - ev.time_s >= silence) then
				return ev
			end
		end
	end
	return nil
end

-- Adds the state of the client's links to the moment. Returns accused server -> true, or nil if the moment
-- does not count.
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

-- Returns name -> true for those with more than half of 'total' votes.
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
	summary = "applications lose a server whose connection differs from the others (Kasick et al. 2009, section 7)",
	events = true,
	params = {
		timeout = { default = "30s", unit = "seconds", min = "1s", max = "3600s", help = "a call that takes longer counts as hung" },
		silence = { default = "1s", unit = "seconds", min = "0.5s", max = "600s",
			help = "a link with open requests accuses its server after so long without traffic" },
	},
	diagnose = diagnose,
}
