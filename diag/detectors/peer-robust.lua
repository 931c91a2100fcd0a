-- peer-robust: names the server that does not behave like its peers, and what ails it, without training.
--
-- Every second each server is asked the same questions: how long does your disk take for a request, how many of the
-- segments sent to you get lost, how much does your network carry that is not yours? An answer is an amount (seconds,
-- segments, bytes) over an exposure (requests, segments, bytes: what it was earned with), so that a server with more or
-- less to do than others is none the worse for it. What is expected of a server is its own exposure times the
-- rate that is usual among its peers, the median of the others'. The answer counts as the logarithm of amount over
-- expectation, both with a floor added: next to nothing is not infinitely more than nothing.
--
-- How a verdict comes about; the parameters are the same for all workloads, sizes and layouts:
--   1. Amounts and exposures are added up over the last 'window' seconds.
--   2. Log ratios of one cause become one: their median, so that no single metric decides where there are more.
--   3. Persistence: the median over the last 'persist' windows. Half of them must be high at the same time.
--   4. Noise: how far servers of this very run stand from their peers, typically: median over time of each server's
--      distance, then median over servers, which the guilty cannot move while they are a minority.
--   5. A server is indicted when its persistent log ratio exceeds both the cause's least ratio, below which a
--      difference is no fault, and the noise times sqrt(2 ln(m / alarm)): the bound on the largest of m normal
--      values, m being servers times causes times windows without overlap in the run. So more servers, metrics
--      and seconds raise the threshold and not the number of false alarms, which by design is 'alarm' a run.
--   6. If a third of the servers or more would be indicted, it is the workload that has shifted, and
--      peers cannot tell: abstention.

local nan = 0 / 0
local SHOWN = 5 -- servers in the evidence

-- What a server is asked. amount and exposure get 'of', which gives a metric's sum a second (0 where it has none), or
-- a metric's count; nil if the run does not have it. floor is in the amount's unit, a window.
local HEADERS = 66 -- Ethernet, IP and TCP with timestamps, bytes a segment

local causes = {
	{
		cause = "network/hog", name = "network/hog, received", least = 3,
		{
			says = "bytes received that belong to no client", floor = 0.05, relative = true,
			needs = { "nic_received_bytes", "tcp_received_bytes", "tcp_received_segments" },
			amount = function(of)
				return (of("nic_received_bytes") - of("tcp_received_bytes") - HEADERS * of("tcp_received_segments")):clamp(0)
			end,
			exposure = function(of) return of("nic_received_bytes") * 0 + 1 end,
		},
	},
	{
		cause = "network/hog", name = "network/hog, sent", least = 3,
		{
			says = "bytes sent that belong to no client", floor = 0.05, relative = true,
			needs = { "nic_sent_bytes", "tcp_sent_bytes", "tcp_sent_segments" },
			amount = function(of)
				return (of("nic_sent_bytes") - of("tcp_sent_bytes") - HEADERS * of("tcp_sent_segments")):clamp(0)
			end,
			exposure = function(of) return of("nic_sent_bytes") * 0 + 1 end,
		},
	},
	{
		cause = "network/receive-loss", least = 2.5,
		{
			says = "segments that clients sent it again", floor = 2,
			needs = { "client_tcp_retransmitted_segments", "client_tcp_sent_segments" },
			amount = function(of) return of("client_tcp_retransmitted_segments") end,
			exposure = function(of) return of("client_tcp_sent_segments") end,
		},
		{
			says = "segments that it received beyond a gap", floor = 2,
			needs = { "tcp_out_of_order_segments", "tcp_received_segments" },
			amount = function(of) return of("tcp_out_of_order_segments") end,
			exposure = function(of) return of("tcp_received_segments") end,
		},
	},
	{
		cause = "network/send-loss", least = 2.5,
		{
			says = "segments that it sent again", floor = 2,
			needs = { "tcp_retransmitted_segments", "tcp_sent_segments" },
			amount = function(of) return of("tcp_retransmitted_segments") end,
			exposure = function(of) return of("tcp_sent_segments") end,
		},
		{
			says = "segments that clients received beyond a gap", floor = 2,
			needs = { "client_tcp_out_of_order_segments", "client_tcp_received_segments" },
			amount = function(of) return of("client_tcp_out_of_order_segments") end,
			exposure = function(of) return of("client_tcp_received_segments") end,
		},
	},
	{
		cause = "disk", least = 2,
		{
			says = "time of a disk request", floor = 0,
			needs = { "disk_read_time_s", "disk_write_time_s", "disk_reads", "disk_writes" },
			amount = function(of) return of("disk_read_time_s") + of("disk_write_time_s") end,
			exposure = function(of) return of("disk_reads") + of("disk_writes") end,
		},
		{ says = "service time of a read", floor = 0, needs = { "dread" },
			amount = function(of) return of("dread") end, exposure = function(of) return of("dread", "count") end },
		{ says = "service time of a write", floor = 0, needs = { "dwrite" },
			amount = function(of) return of("dwrite") end, exposure = function(of) return of("dwrite", "count") end },
	},
}

-- Does any server have samples of all of them?
local function known(run, needs)
	for _, metric in ipairs(needs) do
		local any = false
		for _, server in ipairs(run.series[metric] and run.servers or {}) do
			if run.series[metric][server].count:max() > 0 then any = true break end
		end
		if not any then return false end
	end
	return true
end

-- The log ratio of what each server has lately had to what its peers would have had with its exposure, a vec a server.
local function log_ratios(run, signal, params)
	local exposures, rates, ratios, typical, least = {}, {}, {}, {}, params.persist // 2
	for i, server in ipairs(run.servers) do
		local function of(metric, field)
			return run.series[metric][server][field or "sum"]:fill(0)
		end
		local exposure = signal.exposure(of):rolling_sum(params.window)
		rates[i] = (signal.amount(of):rolling_sum(params.window) / exposure):rolling_median(params.persist, least)
		exposures[i] = exposure:rolling_median(params.persist, least)
		typical[i] = signal.relative and of(signal.needs[1]):mean() * params.window or 1
	end
	local floor = signal.floor * (signal.relative and math.max(vec.of(typical):median(), 1) or 1)
	for i, usual in ipairs(vec.others(rates, 2)) do
		ratios[i] = ((rates[i] * exposures[i] + floor) / (usual * exposures[i] + floor)):log()
	end
	return ratios
end

-- A cause's persistent log ratios, a vec a server, and its signals' own; nil where nothing is known.
local function judge(run, cause, params)
	local signals, persistent = {}, {}
	for _, signal in ipairs(cause) do
		if known(run, signal.needs) then
			signals[#signals + 1] = { says = signal.says, ratios = log_ratios(run, signal, params) }
		end
	end
	if #signals == 0 then return nil end
	for i in ipairs(run.servers) do
		local list = {}
		for k, signal in ipairs(signals) do list[k] = signal.ratios[i] end
		persistent[i] = vec.median(list)
	end
	return persistent, signals
end

-- Typical distance of a server from its peers, as a standard deviation.
local function noise_of(persistent)
	local each = {}
	for _, ratios in ipairs(persistent) do
		local distance = ratios:abs():median()
		if distance == distance then each[#each + 1] = distance end
	end
	return #each > 0 and 1.4826 * vec.of(each):median() or nan
end

-- The few servers that stand highest, as name -> ratio.
local function highest(run, most)
	local order, shown = {}, {}
	for i in ipairs(run.servers) do
		if most[i] == most[i] then order[#order + 1] = i end
	end
	table.sort(order, function(a, b) return most[a] > most[b] end)
	for k = 1, math.min(#order, SHOWN) do
		shown[run.servers[order[k]]] = math.exp(most[order[k]])
	end
	return shown
end

-- What is found of one cause, appended to 'found'; what it looked like, or nil where nothing is known.
local function look(run, cause, bound, params, found)
	local persistent, signals = judge(run, cause, params)
	local noise = persistent and noise_of(persistent) or nan
	if noise ~= noise then return nil end
	local limit, most = math.max(math.log(cause.least), bound * noise), {}
	for i, server in ipairs(run.servers) do
		local at
		most[i], at = persistent[i]:max()
		if at and most[i] > limit then
			local first, shown = 1, {}
			while persistent[i][first] ~= persistent[i][first] or persistent[i][first] <= limit do first = first + 1 end
			for _, signal in ipairs(signals) do
				local x = signal.ratios[i][at]
				if x == x then shown[signal.says] = ("%.3g times what its peers would have"):format(math.exp(x)) end
			end
			found[#found + 1] = { server = server, cause = cause.cause, excess = most[i] / limit, times = math.exp(most[i]),
				from_s = first, worst_s = at, over_s = persistent[i]:above(limit), signals = shown }
		end
	end
	return { limit = math.exp(limit), noise = math.exp(noise), highest = highest(run, most) }
end

local function diagnose(run, _, params)
	local found, causes_seen = {}, {}
	local windows = math.max(1, run.seconds / (params.window + params.persist - 1))
	local bound = math.sqrt(2 * math.log(#run.servers * #causes * windows / (params.alarm / 100)))
	for _, cause in ipairs(causes) do
		causes_seen[cause.name or cause.cause] = look(run, cause, bound, params, found)
	end
	if not next(causes_seen) then
		return { { metric = "any", abstain = true, reason = "too few servers have anything to compare" } }
	end
	table.sort(found, function(a, b) return a.excess > b.excess end)
	local indicted, times, seen = {}, {}, {}
	for _, f in ipairs(found) do
		if f.cause == found[1].cause and not seen[f.server] then
			indicted[#indicted + 1], seen[f.server], times[f.server] = f.server, true, f.from_s
		end
	end
	local evidence = { causes = causes_seen, found = table.move(found, 1, math.min(#found, SHOWN), 1, {}) }
	if #indicted * 3 > #run.servers and #indicted > 1 then
		return { { metric = "any", abstain = true, reason = "too many servers differ from the others", evidence = evidence } }
	end
	return { { metric = "any", indicted = indicted, time_s = times, resource = found[1] and found[1].cause, evidence = evidence } }
end

---@type culprit.Detector
return {
	name = "peer-robust",
	summary = "unlike its peers for long, by device, socket and service times; names the cause; needs no training",
	params = {
		window = { default = 3, min = 1, max = 600, integer = true, help = "seconds that amounts are added up over" },
		persist = { default = 6, min = 1, max = 600, integer = true, help = "windows that a median is taken over" },
		alarm = { default = "1%", unit = "percent", min = "0.0001%", max = "50%", help = "false alarms a run, by design" },
	},
	diagnose = diagnose,
}
