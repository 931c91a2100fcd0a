-- peer-robust: names the server that has lately been unlike its peers, and what ails it, without training.
--
-- Each server is asked the same questions: how long is your disk busy for a request, how often do segments get lost on
-- the way to you, how much does your network carry that is none of the file system's? An answer is an *amount*
-- (seconds, bytes) over an *exposure* (requests, bytes: what it was earned with), so that a server that has more or
-- less to do than others is none the worse for it. What is usual is the median of the others' rates; what is expected of a
-- server is its own exposure at that rate.
--
--   1. Time: the last 'span' seconds. What is to be seen must last: the rate over the whole span must be high, and so must
--      the median of those of its seconds, which three bad seconds of eight do not move.
--   2. Views: a cause has one or more, and each may have several exposures. All that the run has must agree, the least
--      counts. Why that is right: if a request costs a + b * bytes on every healthy disk, whatever a and b, then a healthy
--      server's time per request or its time per byte is no more than its peers', however different their requests are. Likewise
--      for a disk between one head (the time in which it is busy is shared out) and many (each request's time in
--      the queue is its own).
--   3. Rates: log((amount + floor) / (expected + floor)); the floor is what harms nobody. It must exceed the log of
--      'least', the smallest ratio that is called a fault, and the noise times z. Noise is how far servers of this very run
--      stand above their peers, typically: the upper quartile over time, the median over servers, which the guilty
--      cannot move while they are a minority.
--   4. Counts: in k of n seconds there was loss, and its peers had it in a share of theirs. Not how much was lost: a queue
--      that runs over loses hundreds of segments at once and then none for seconds, a bad link loses some all the time. The
--      score is a G test's: the log likelihood with a chance of its own for the server, less that with one for all; peers that
--      were seen for few seconds say little. A queue runs over where the link is full, so there is one chance for seconds
--      that carry, with the one before, as much as the busiest second of any server, and another for the rest, in which healthy
--      servers lose next to nothing. The two scores are added, each if the server has more than its peers, so that a sum
--      above x has a chance of at most exp(-x) (1 + 1/sqrt(pi x)) / 4 (a quarter of chi-square with two degrees of
--      freedom, half of that with one), which must be below 1/M. The peers' share is that of all others, since what is congested
--      may be any few of them. Such seconds are rare where there is little to lose, so here twice the span is looked at. Loss
--      shows in what is sent again and in what never comes: the one or the other is enough, and M counts both.
--   5. M is servers times causes times stretches of the run, over 'alarm', and z the normal quantile of 1 - 1/M: the bounds
--      are those of the largest of so many. More servers, metrics and seconds raise the threshold, and not the
--      false alarms: by design 'alarm' a run.
--   6. A score counts once it has stood above its limit for 'hold' seconds in a row. From one second to the next a span
--      changes by its first and its last second only, and what hangs on one of these does not last.
--   7. Causes are looked at in the order below, and the first that indicts is the verdict: what comes first explains
--      what comes after it (a hog's traffic makes segments get lost), not the other way round.
--   8. Peers cannot always tell. If several, and more than a third of all, would be indicted, or if the noise alone asks for
--      more than a factor of 'BLUR', it is the workload that shifted, or there is no majority: abstention.

local nan = 0 / 0
local SHOWN = 5    -- servers in the evidence
local BLUR = 4
local NEVER = -1e300
local MERGED = 100 -- segments in a second of which more than half never came
local HEADERS = 66 -- bytes of Ethernet, IP and TCP with timestamps, a packet

-- What views are made of: functions of 'of', where of(name) is a metric's sum in every second, 0 where it has no
-- sample, and of(name, "count") and of(name, "bytes") likewise.
local function metric(name, field)
	return function(of) return of(name, field) end
end

local function plus(one, other)
	return function(of) return of(one) + of(other) end
end

-- Payload that the interfaces carried and the server's sockets did not. What is sent again, or dropped behind the interface,
-- is carried too: so the clients' word counts as well as the server's own.
local function foreign(way, other)
	local all, packets = "nic_" .. way .. "_bytes", "nic_" .. way .. "_packets"
	local own, theirs = "tcp_" .. way .. "_bytes", "client_tcp_" .. other .. "_bytes"
	return {
		says = "bytes " .. way .. " that are none of the file system's", needs = { all, packets, own },
		amount = function(of)
			local payload = of(all) - HEADERS * of(packets)
			return vec.least { payload - of(own), payload - of(theirs) }:clamp(0)
		end,
		per = { metric("seconds") }, floor = 0.05, of = { "nic_received_bytes", "nic_sent_bytes" },
	}
end

-- Seconds with loss, by what the sender sent again, and not in vain (a spurious timeout is told by the acknowledgement of
-- a duplicate). Requests and answers one at a time get lost without a gap, so the receiver is asked only if the sender cannot be.
local function lossy(from, to)
	local again, sent = from .. "tcp_retransmitted_segments", from .. "tcp_sent_bytes"
	local gaps, received = to .. "tcp_out_of_order_segments", to .. "tcp_received_bytes"
	return { { says = "segments sent again", needs = { again, sent }, lost = metric(again), load = metric(sent),
			needless = metric(from .. "tcp_duplicate_segments") } },
		{ { says = "segments beyond a gap", needs = { gaps, received }, lost = metric(gaps), load = metric(received) } }
end

-- What one end sent and the other never got: acknowledgements, too, which nobody sends again. Less than a fiftieth is not
-- told from what is under way.
local function unbalanced(from, to)
	local sent, got = from .. "tcp_sent_segments", to .. "tcp_received_segments"
	return { says = "segments that never came", needs = { sent, got }, load = metric(from .. "tcp_sent_bytes"), sent = sent,
		got = got, least = 0.02 }
end

local function loss(cause, from, to)
	local views, instead = lossy(from, to)
	return { cause = cause, views = views, instead = instead, also = unbalanced(from, to) }
end

-- Where there are no bytes (in a CSV file), that exposure has no rates and no say.
local function service(name, says, floor)
	return { says = says, needs = { name }, amount = metric(name), floor = floor or 0.05,
		per = { metric(name, "count"), metric(name, "bytes") } }
end

local requests, bytes = plus("disk_reads", "disk_writes"), plus("disk_read_bytes", "disk_written_bytes")

-- 'least' may be a parameter's name. 'instead': where the views need what the run does not have. Service times grow with
-- the queue, too, and a server may well have more to do than others: hence the larger 'least'.
local BY_SERVICE_TIME = 4
local known_times = { dread = true, dwrite = true, nsread = true, ncread = true }
local causes = {
	{ cause = "network/hog", what = "network/hog, received", least = 3, views = { foreign("received", "sent") } },
	{ cause = "network/hog", what = "network/hog, sent", least = 3, views = { foreign("sent", "received") } },
	loss("network/receive-loss", "client_", ""),
	loss("network/send-loss", "", "client_"),
	{
		cause = "disk", least = "disk",
		views = {
			{ says = "time that the disk is busy", needs = { "disk_busy_s" }, amount = metric("disk_busy_s"),
				per = { requests, bytes }, floor = 0.02 },
			{ says = "time in the disk's queue", needs = { "disk_queue_s" }, amount = plus("disk_read_time_s", "disk_write_time_s"),
				per = { requests, bytes }, floor = 0.02 },
		},
		instead = { least = BY_SERVICE_TIME, service("dread", "time of a read"), service("dwrite", "time of a write") },
	},
	{
		cause = "cpu", least = 3,
		views = { { says = "processor time that is none of the servers'", needs = { "cpu_busy_s", "process_cpu_s" },
			amount = function(of) return (of("cpu_busy_s") - of("process_cpu_s")):clamp(0) end,
			per = { plus("cpu_busy_s", "cpu_idle_s") }, floor = 0.1, of = { "cpu_busy_s", "cpu_idle_s" } } },
	},
	{
		cause = "network", least = BY_SERVICE_TIME, unless = "tcp_retransmitted_segments",
		views = { service("nsread", "time to receive a request"), service("ncread", "time to receive a response") },
	},
}

-- Those, and one for each metric that only the run knows (of a CSV file).
local function causes_of(run)
	local list = {}
	for _, cause in ipairs(causes) do
		if not run.series[cause.unless] then list[#list + 1] = cause end
	end
	for _, name in ipairs(run.service_times) do
		if not known_times[name] then
			list[#list + 1] = { what = name, least = BY_SERVICE_TIME, views = { service(name, name, 0) } }
		end
	end
	return list
end

local function sampled(run, name)
	for _, server in ipairs(run.series[name] and run.servers or {}) do
		if run.series[name][server].count:max() > 0 then return true end
	end
	return false
end

-- The views of a list that the run has samples for.
local function known(run, views)
	local list = {}
	for _, view in ipairs(views or {}) do
		local all = true
		for _, name in ipairs(view.needs) do all = all and sampled(run, name) end
		if all then list[#list + 1] = view end
	end
	return list
end

local function reader(run, server)
	return function(name, field)
		if name == "seconds" then return vec.new(run.seconds, 1) end
		if not run.series[name] then return vec.new(run.seconds, 0) end
		return run.series[name][server][field or "sum"]:fill(0)
	end
end

-- What a server's rate is to what its peers would have, as a logarithm; a vec a server.
local function log_ratios(run, view, span)
	local amounts, exposures, sizes, ratios = {}, {}, {}, {}
	for i, server in ipairs(run.servers) do
		local of = reader(run, server)
		amounts[i], exposures[i], ratios[i], sizes[i] = view.amount(of), {}, {}, 0
		for k, exposure in ipairs(view.per) do exposures[i][k] = exposure(of) end
		for _, name in ipairs(view.of or {}) do sizes[i] = math.max(sizes[i], of(name):mean()) end
	end
	local floor = view.floor * (view.of and vec.of(sizes):median() or 1)
	-- Of so many seconds at once, and the median of so many of these.
	local function compare(k, width, of)
		local rates, earned, compared = {}, {}, {}
		for i in ipairs(run.servers) do
			earned[i], rates[i] = exposures[i][k], amounts[i]
			if width > 1 then earned[i], rates[i] = earned[i]:rolling_sum(width), rates[i]:rolling_sum(width) end
			rates[i] = rates[i] / earned[i]
			if of > 1 then earned[i], rates[i] = earned[i]:rolling_median(of), rates[i]:rolling_median(of, of // 2) end
		end
		for i, usual in ipairs(vec.others(rates, 2)) do
			compared[i] = ((rates[i] * earned[i] + floor * width) / (usual * earned[i] + floor * width)):log()
		end
		return compared
	end
	for k in ipairs(view.per) do
		local whole, typical = compare(k, span, 1), compare(k, 1, span)
		for i in ipairs(run.servers) do
			-- Nothing before the first span is over.
			ratios[i][k] = vec.least { whole[i], typical[i] } + 0 * whole[i]
		end
	end
	for i in ipairs(run.servers) do ratios[i] = vec.least(ratios[i]) end
	return ratios, function(i, at)
		return ("%s: %.3g times what its peers would have"):format(view.says, math.exp(ratios[i][at]))
	end
end

-- 1 in seconds in which something was lost, and 1 where there was something to lose; told a second later, when what was sent
-- again in vain has been acknowledged.
local function sent_again(view, of, load)
	local k = view.lost(of):lag(1, 0)
	if view.needless then k = k - view.needless(of):rolling_sum(2, 1) end
	k = k:clamp(0, 1)
	return k, (load:lag(1, 0) + k):clamp(0, 1), load:rolling_sum(2, 1):lag(1, 0)
end

-- The same by what is missing for good: how far it has grown beyond all that was missing in the two seconds before, and
-- stays so in the two seconds after. What is under way comes and goes, and so does what one end counted before the other was
-- sampled: a second's growth must be more than it mostly goes down by. Told two seconds later, of seconds in which all
-- ends were sampled. An end that merges segments before it counts them, as some NICs do, gets a fraction of what is
-- sent, which no loss would leave: there this tells nothing.
local function never_came(view, of, load)
	local sent, ends = of(view.sent), vec.least { of(view.sent, "count"), of(view.got, "count") }
	local now = sent - of(view.got)
	local two, three = now:lag(2, 0), now:lag(3, 0)
	local two_or_three = two + now:lag(1, 0)
	local risen = vec.least { three, three + now:lag(4, 0) }:clamp(-1e300, 0)
	local for_good = vec.least { two, two_or_three, two_or_three + now } + risen
	local whole = ((ends - ends:max() + 1):clamp(0, 1):rolling_sum(5) - 4):clamp(0, 1)
	local then_sent, carried = sent:lag(2, 0), load:rolling_sum(2, 1):lag(2, 0)
	local n = then_sent:clamp(0, 1) * whole
	local most = for_good:max()
	if most < 1 then return 0 * n, n, carried end
	local falls = (-now * whole):clamp(0):quantile(0.9)
	local k = (for_good - (view.least * then_sent):clamp(falls > 1 and falls or 1) + 1):clamp(0, 1) * n
	if 2 * most > MERGED then
		local merged = (2 * for_good - then_sent):clamp(0, 1) * (then_sent - MERGED):clamp(0, 1) * n
		if merged:sum() > 0 then k, n = 0 * k, 0 * n end
	end
	return k, n, carried
end

-- What each server's seconds were, light and full ones apart: how many with loss, and how many with something to lose.
local function seconds_with_loss(run, view)
	local loads, most, lost, had = {}, 0, {}, {}
	for i, server in ipairs(run.servers) do
		loads[i] = view.load(reader(run, server))
		most = math.max(most, loads[i]:max())
	end
	for i, server in ipairs(run.servers) do
		local k, n, carried = (view.got and never_came or sent_again)(view, reader(run, server), loads[i])
		local full = (carried - most + 1):clamp(0, 1)
		lost[i], had[i] = { k - k * full, k * full }, { n - n * full, n * full }
	end
	return lost, had
end

-- What each server has lately and in all, and what all have, of one load.
local function pool(run, of, load, span)
	local each, own, all, total = {}, {}, 0, 0
	for i in ipairs(run.servers) do
		each[i], own[i] = of[i][load]:rolling_sum(2 * span, span), of[i][load]:sum()
		all, total = each[i] + all, total + own[i]
	end
	return { each = each, own = own, all = all, total = total }
end

-- How much likelier a server's seconds are with a share of loss of its own than with its peers': the logarithm.
local function surprises(run, view, span)
	local lost, had = seconds_with_loss(run, view)
	local ks, ns, surprise, count = {}, {}, {}, { k = {}, n = {} }
	for load = 1, 2 do ks[load], ns[load] = pool(run, lost, load, span), pool(run, had, load, span) end
	local peers = 0
	for i in ipairs(run.servers) do
		count.k[i], count.n[i] = ks[1].each[i] + ks[2].each[i], ns[1].each[i] + ns[2].each[i]
		if ns[1].own[i] + ns[2].own[i] > 0 then peers = peers + 1 end
	end
	for i in ipairs(run.servers) do
		local share = count.k[i] / count.n[i]
		surprise[i] = 0 * share
		for load = 1, ks[1].own[i] + ks[2].own[i] > 0 and 2 or 0 do
			local k, n = ks[load].each[i], ns[load].each[i]
			local others = ns[load].total - ns[load].own[i]
			local always = (ks[load].total - ks[load].own[i]) / math.max(others, 1)
			local lately = ((ks[load].all - k) / (ns[load].all - n)):fill(0)
			local theirs = lately + (always - lately):clamp(0)
			local more, k_of_others = share - theirs, theirs * others
			local fits = vec.likelihood(k, n, theirs + more:clamp(0)) + vec.likelihood(k_of_others, others, theirs)
				- vec.likelihood(k + k_of_others, n + others, (k + k_of_others) / (n + others))
			surprise[i] = surprise[i] + (fits * (more * 1e9):clamp(0, 1)):fill(0)
		end
		if peers < 3 then surprise[i] = vec.new(run.seconds) end
	end
	return surprise, function(i, at)
		return ("%s: in %d of %d seconds, exp(%.3g) times as likely as among its peers"):format(view.says, count.k[i][at] // 1,
			count.n[i][at] // 1, surprise[i][at])
	end
end

-- How far a server stands above its peers, typically, as a standard deviation.
local function noise_of(scores)
	local each = {}
	for _, of in ipairs(scores) do
		local quartile = of:quantile(0.75)
		if quartile == quartile then each[#each + 1] = math.max(quartile, 0) / 0.6745 end
	end
	return #each > 0 and vec.of(each):median() or nan
end

-- What it has had for so many seconds in a row; NEVER where it has none.
local function held(score, seconds)
	local all = { score:fill(NEVER) }
	for k = 1, seconds - 1 do all[k + 1] = all[1]:lag(k, NEVER) end
	return vec.least(all)
end

-- The few servers that stand highest, as name -> score.
local function highest(run, most, shape)
	local order, shown = {}, {}
	for i in ipairs(run.servers) do
		if most[i] > NEVER then order[#order + 1] = i end
	end
	table.sort(order, function(a, b) return most[a] > most[b] end)
	for k = 1, math.min(#order, SHOWN) do
		shown[run.servers[order[k]]] = shape(most[order[k]])
	end
	return shown
end

local function as_is(x) return x end

-- Whom a cause indicts, as a list, worst first; and what there was to see, nil if there was nothing.
local function look(run, cause, log_m, params)
	local views, least, span = known(run, cause.views), params[cause.least] or cause.least, params.span
	if #views == 0 and cause.instead then views, least = known(run, cause.instead), cause.instead.least end
	local by_view, tell, scores, most, found = {}, {}, {}, {}, {}
	for k, view in ipairs(views) do by_view[k], tell[k] = (view.load and surprises or log_ratios)(run, view, span) end
	for i in ipairs(#views > 0 and run.servers or {}) do
		local all = {}
		for k in ipairs(views) do all[k] = by_view[k][i] end
		scores[i] = vec.least(all)
	end
	local also = params.balance and scores[1] and known(run, { cause.also })[1]
	if also then -- the one or the other
		local k = #views + 1
		by_view[k], tell[k] = surprises(run, also, span)
		for i in ipairs(run.servers) do scores[i] = -vec.least { -scores[i], -by_view[k][i] } end
	end
	local noise = noise_of(scores)
	if noise ~= noise then return found, nil end
	local z = math.sqrt(2 * log_m - math.log(4 * math.pi * log_m)) -- the quantile, to a few per cent
	local limit = least and math.max(math.log(least), z * noise) or log_m + math.log((1 + 1 / math.sqrt(math.pi * log_m)) / 4)
	local shape = least and math.exp or as_is
	for i in ipairs(scores) do scores[i] = held(scores[i], params.hold) end
	for i, server in ipairs(run.servers) do
		local at
		most[i], at = scores[i]:max()
		if at and most[i] > limit then
			local first, shown = 1, {}
			while scores[i][first] <= limit do first = first + 1 end
			for k in ipairs(by_view) do
				local x = by_view[k][i][at]
				if x == x then shown[#shown + 1] = tell[k](i, at) end
			end
			found[#found + 1] = { server = server, score = shape(most[i]), first_s = first, worst_s = at,
				seconds = scores[i]:above(limit), views = shown }
		end
	end
	table.sort(found, function(a, b) return a.score > b.score end)
	return found, { limit = shape(limit), noise = least and math.exp(noise), highest = highest(run, most, shape),
		blurred = least and z * noise > math.log(BLUR) or nil }
end

local function diagnose(run, _, params)
	local guilty, seen, n, list = nil, {}, #run.servers, causes_of(run)
	local asked = #list
	for _, cause in ipairs(params.balance and list or {}) do asked = asked + (cause.also and 1 or 0) end
	local log_m = math.log(n * asked * math.max(1, run.seconds / params.span) / (params.alarm / 100))
	for _, cause in ipairs(list) do
		local found, what = look(run, cause, log_m, params)
		seen[cause.what or cause.cause] = what
		if found[1] and not guilty then guilty = { cause = cause.cause, found = found } end
	end
	if not next(seen) then
		return { { metric = "any", abstain = true, reason = "too few servers have anything to compare" } }
	end
	if not guilty then
		local blurred
		for _, what in pairs(seen) do blurred = blurred or what.blurred end
		return { { metric = "any", abstain = blurred, evidence = { causes = seen },
			reason = blurred and "the servers differ too much among themselves" or nil } }
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
		span = { default = 8, min = 4, max = 600, integer = true, help = "seconds that a server is compared over" },
		disk = { default = 1.25, min = 1.01, max = 1000,
			help = "a disk must be so many times as slow as its peers' (more, where disks are mixed)" },
		hold = { default = 2, min = 1, max = 60, integer = true, help = "seconds in a row for which a server must stand out" },
		alarm = { default = "0.1%", unit = "percent", min = "0.0001%", max = "50%", help = "false alarms a run, by design" },
		balance = { default = true, help = "loss also by what one end sent and the other never got" },
	},
	diagnose = diagnose,
}
