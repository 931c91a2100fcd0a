-- peer-robust: names the server that has lately been unlike its peers, and what ails it, without training.
--
-- Each server is asked the same questions: how long is your disk busy for a request, how many segments on the way to you
-- get lost, how much does your network carry that no client knows of? An answer is an *amount* (seconds, segments, bytes)
-- over an *exposure* (requests, segments, bytes: what it was earned with), so that a server that has more or less to
-- do than others is none the worse for it. What is expected of a server is its own exposure times the rate that is
-- usual among the others, their median; the answer counts as log(amount / expected), with a floor added to both, for
-- next to nothing is not infinitely more than nothing.
--
--   1. Rates are of the last 'window' seconds, and then the median of the last 'persist' such windows: what is to be
--      seen must last for more than half of them, and one burst is none.
--   2. One cause has several views, and each view may have several exposures. All that the run has must agree: the
--      least log ratio is what counts. Why that is right for exposures: if a request costs a + b * bytes on every healthy
--      disk, whatever a and b, then a healthy server's time per request or its time per byte is no more than its
--      peers', however different their requests are. Likewise for a disk between one head (the time in which it is busy
--      is shared out) and many (each request's time in the queue is its own).
--   3. Noise: how far servers of this very run stand above their peers, typically: the upper quartile over time, the
--      median over servers, which the guilty cannot move while they are a minority.
--   4. A server is indicted when its log ratio exceeds both the cause's 'least' ratio, below which a difference is no
--      fault, and the noise times sqrt(2 ln(m / alarm)), which bounds the largest of m normal values; m is
--      servers times causes times stretches of the run. More servers, metrics and seconds raise the threshold and not
--      the number of false alarms: by design 'alarm' a run.
--   5. Causes are looked at in the order below, and the first that indicts is the verdict: what comes first explains
--      what comes after it (a hog's traffic makes others' segments get lost), not the other way round.
--   6. If several, and more than a third of all, would be indicted, it is the workload that shifted, and peers cannot
--      tell: abstention.

local nan = 0 / 0
local SHOWN = 5    -- servers in the evidence
local HEADERS = 66 -- bytes of Ethernet, IP and TCP with timestamps, a packet

-- of(metric) is its sum in every second, 0 without a sample; of(metric, "count"), of(metric, "bytes").
local function metric(name, field)
	return function(of) return of(name, field) end
end

local function plus(one, other)
	return function(of) return of(one) + of(other) end
end

local function seconds(of) return of() + 1 end

-- Payload that the interfaces carried and the server's sockets did not. Sent again is carried again.
local function foreign(way)
	local bytes, packets, own = "nic_" .. way .. "_bytes", "nic_" .. way .. "_packets", "tcp_" .. way .. "_bytes"
	return {
		says = "bytes " .. way .. " that belong to no client", needs = { bytes, packets, own }, per = { seconds },
		amount = function(of) return (of(bytes) - HEADERS * of(packets) - of(own)):clamp(0) end,
		floor = 0.05, of = { "nic_received_bytes", "nic_sent_bytes" },
	}
end

-- Seconds in which segments got lost on the way between two ends. Not how many: a queue that runs over loses hundreds at
-- once, and then none for seconds; a bad link loses some all the time. At the sender: sent again, and not in vain
-- (a spurious timeout is told by a duplicate's acknowledgement). At the receiver: a gap.
local function lossy(from, to)
	local again, needless = from .. "tcp_retransmitted_segments", from .. "tcp_duplicate_segments"
	local gaps = to .. "tcp_out_of_order_segments"
	return {
		{
			says = "seconds with segments sent again", needs = { again, needless }, per = { seconds }, long = true,
			amount = function(of) return (of(again) - of(needless)):clamp(0, 1) end,
		},
		{
			says = "seconds with segments beyond a gap", needs = { gaps }, per = { seconds }, long = true,
			amount = function(of) return of(gaps):clamp(0, 1) end,
		},
	}
end

local function service(name, says)
	return {
		says = says, needs = { name }, amount = metric(name), per = { metric(name, "count"), metric(name, "bytes") },
		floor = 0.05,
	}
end

local requests, bytes = plus("disk_reads", "disk_writes"), plus("disk_read_bytes", "disk_written_bytes")

local causes = {
	{ cause = "network/hog", way = "received", least = 3, views = { foreign("received") } },
	{ cause = "network/hog", way = "sent", least = 3, views = { foreign("sent") } },
	{ cause = "network/receive-loss", least = 2.5, views = lossy("client_", "") },
	{ cause = "network/send-loss", least = 2.5, views = lossy("", "client_") },
	{
		cause = "disk", least = 1.5,
		views = {
			{ says = "time that the disk is busy", needs = { "disk_busy_s", "disk_reads" }, amount = metric("disk_busy_s"),
				per = { requests, bytes }, floor = 0.02 },
			{ says = "time in the disk's queue", needs = { "disk_read_time_s", "disk_reads" },
				amount = plus("disk_read_time_s", "disk_write_time_s"), per = { requests, bytes }, floor = 0.02 },
		},
		-- Without the device's readings: these grow with the queue, too, and a server may well have more to do than others.
		instead = { least = 4, service("dread", "time of a read"), service("dwrite", "time of a write") },
	},
}

-- The views of a list that the run has samples for.
local function known(run, views)
	local list = {}
	for _, view in ipairs(views or {}) do
		local all = true
		for _, name in ipairs(view.needs) do
			local any = false
			for _, server in ipairs(run.series[name] and run.servers or {}) do
				any = any or run.series[name][server].count:max() > 0
			end
			all = all and any
		end
		if all then list[#list + 1] = view end
	end
	return list
end

-- The least log ratio over the view's exposures, a vec a server.
local function log_ratios(run, view, params)
	local amounts, per, sizes, ratios, persist = {}, {}, {}, {}, params.persist
	local window, floor = params.window, nil
	if view.long then window, persist = window + persist - 1, 1 end
	local least = math.max(1, persist // 2)
	for i, server in ipairs(run.servers) do
		local function of(name, field)
			if not name then return vec.new(run.seconds, 0) end
			return run.series[name][server][field or "sum"]:fill(0)
		end
		amounts[i], per[i], ratios[i] = view.amount(of):rolling_sum(window), {}, {}
		for k, exposure in ipairs(view.per) do per[i][k] = exposure(of):rolling_sum(window) end
		for _, name in ipairs(view.of or {}) do sizes[i] = math.max(sizes[i] or 0, of(name):mean()) end
	end
	if view.long then
		floor = params.persist / 2
	else
		floor = view.floor * window * (view.of and math.max(vec.of(sizes):median(), 1) or 1)
	end
	for k in ipairs(view.per) do
		local rates = {}
		for i in ipairs(run.servers) do rates[i] = (amounts[i] / per[i][k]):rolling_median(persist, least) end
		for i, usual in ipairs(vec.others(rates, 2)) do
			local exposure = per[i][k]:rolling_median(persist, least)
			ratios[i][k] = ((rates[i] * exposure + floor) / (usual * exposure + floor)):log()
		end
	end
	for i in ipairs(run.servers) do ratios[i] = vec.least(ratios[i]) end
	return ratios
end

-- How far a server stands above its peers, typically, as a standard deviation.
local function noise_of(ratios)
	local each = {}
	for _, of in ipairs(ratios) do
		local quartile = of:quantile(0.75)
		if quartile == quartile then each[#each + 1] = math.max(quartile, 0) / 0.6745 end
	end
	return #each > 0 and vec.of(each):median() or nan
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

-- Whom a cause indicts, as a list, worst first; and what there was to see, nil if there was nothing.
local function look(run, cause, bound, params)
	local views, least = known(run, cause.views), cause.least
	if #views == 0 and cause.instead then views, least = known(run, cause.instead), cause.instead.least end
	local by_view, ratios, most, found = {}, {}, {}, {}
	for k, view in ipairs(views) do by_view[k] = log_ratios(run, view, params) end
	for i in ipairs(#views > 0 and run.servers or {}) do
		local all = {}
		for k in ipairs(views) do all[k] = by_view[k][i] end
		ratios[i] = vec.least(all)
	end
	local noise = noise_of(ratios)
	if noise ~= noise then return found, nil end
	local limit = math.max(math.log(least), bound * noise)
	for i, server in ipairs(run.servers) do
		local at
		most[i], at = ratios[i]:max()
		if at and most[i] > limit then
			local first, shown = 1, {}
			while ratios[i][first] ~= ratios[i][first] or ratios[i][first] <= limit do first = first + 1 end
			for k, view in ipairs(views) do
				shown[k] = ("%s: %.3g times what its peers would have"):format(view.says, math.exp(by_view[k][i][at]))
			end
			found[#found + 1] = { server = server, times = math.exp(most[i]), first_s = first, worst_s = at,
				seconds = ratios[i]:above(limit), views = shown }
		end
	end
	table.sort(found, function(a, b) return a.times > b.times end)
	return found, { limit = math.exp(limit), noise = math.exp(noise), highest = highest(run, most) }
end

local function diagnose(run, _, params)
	local guilty, seen, n = nil, {}, #run.servers
	local stretches = math.max(1, run.seconds / (params.window + params.persist - 1))
	local bound = math.sqrt(2 * math.log(n * #causes * stretches / (params.alarm / 100)))
	for _, cause in ipairs(causes) do
		local found, what = look(run, cause, bound, params)
		if what then seen[cause.cause .. (cause.way and ", " .. cause.way or "")] = what end
		if found[1] and not guilty then guilty = { cause = cause.cause, found = found } end
	end
	if not next(seen) then
		return { { metric = "any", abstain = true, reason = "too few servers have anything to compare" } }
	end
	if not guilty then
		return { { metric = "any", evidence = { causes = seen } } }
	end
	local found, indicted, times = guilty.found, {}, {}
	local evidence = { causes = seen, found = table.move(found, 1, math.min(#found, SHOWN), 1, {}) }
	for k, f in ipairs(found) do indicted[k], times[f.server] = f.server, f.first_s end
	if #found > 1 and #found * 3 > n then
		return { { metric = "any", abstain = true, reason = "too many servers differ from the others", evidence = evidence } }
	end
	return { { metric = "any", indicted = indicted, time_s = times, resource = guilty.cause, evidence = evidence } }
end

---@type culprit.Detector
return {
	name = "peer-robust",
	summary = "unlike its peers for long, by device, socket and service times; names the cause; needs no training",
	params = {
		window = { default = 3, min = 1, max = 600, integer = true, help = "seconds that amounts are added up over" },
		persist = { default = 6, min = 2, max = 600, integer = true, help = "windows that a median is taken over" },
		alarm = { default = "1%", unit = "percent", min = "0.0001%", max = "50%", help = "false alarms a run, by design" },
	},
	diagnose = diagnose,
}
