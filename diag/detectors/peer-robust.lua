-- peer-robust: indicts a server that differs from its peers for several seconds, and names the cause.
-- It needs no training.
--
-- Terms. Each server is measured by the same ratios, for example: seconds that its disk is busy per
-- request; share of seconds in which segments to it get lost; bytes on its network that do not belong
-- to the file system. Each is a rate: an *amount* (seconds, bytes) over an *exposure* (requests, bytes:
-- the work that the amount was spent on), so that a server with more work than its peers is not
-- thereby suspect. The usual rate is the median of the rates of the other servers. A server's expected
-- amount is its own exposure times the usual rate.
--
--   1. Time. Each second is judged by the last 'span' seconds. A fault must last: both the rate over the
--      whole span and the median of the rates of its single seconds must be high. Three bad seconds of
--      eight do not move the median.
--   2. Views. A cause has one view or more (ways to measure it), and a view may have several exposures.
--      All views that the run has data for must agree: the smallest score counts. Reason: if a request
--      costs a + b * bytes on every healthy disk, for any a and b, then a healthy server exceeds its
--      peers at most in one of time per request and time per byte, however their request sizes differ.
--      The same holds between a disk that serves one request at a time (its busy time is shared by the
--      requests) and one that serves many (each request has its own time in the queue).
--   3. Rates. The score is log((amount + floor) / (expected + floor)); 'floor' is an amount that is
--      harmless. A server is indicted if its score exceeds both log('least'), where 'least' is the
--      smallest ratio that is called a fault, and z times the noise. The noise is how far servers of
--      this run typically stand above their peers: of each server's scores the upper quartile over time,
--      then the median over the servers. Faulty servers cannot move it while they are a minority.
--   4. Loss. Here the share of seconds with loss is compared with that of the peers, not the number of
--      lost segments: a full queue loses hundreds of segments at once and then none for seconds, a bad
--      link loses some all the time. The score is that of a G test: the log likelihood if the server
--      has its own probability of loss, minus that if it has the same as its peers; peers with few
--      observed seconds therefore weigh little. A queue overflows where the link is full. So the
--      seconds are split in two classes with a probability each: full seconds, which together with the
--      second before carry as much as any server's busiest second, and all others, in which healthy
--      servers lose next to nothing. The scores of the two classes are added, each only if the server
--      has more loss than its peers. A sum above x then has a probability of at most
--      exp(-x) (1 + 1/sqrt(pi x)) / 4 (a quarter of chi-square with two degrees of freedom, half of
--      that with one), and this must be below 1/M. The peers' share is that of all other servers
--      together, because congestion may hit any few of them. Loss is rare where little is sent, so two
--      spans are looked at. Loss shows in segments that are sent again and in segments that never
--      arrive: either is enough, and M counts both.
--   5. Number of comparisons. M is servers times causes (that the run has data for) times spans in the run,
--      divided by 'alarm'; z is
--      the normal quantile of 1 - 1/M. These are the bounds for the largest of so many scores: more
--      servers, metrics and seconds raise the threshold and leave the rate of false alarms at 'alarm'
--      per run, by design.
--   6. Hold. A score counts once it has exceeded its limit for 'hold' seconds in a row. From one second
--      to the next a span changes by its first and its last second only; what depends on one of these
--      does not last.
--   7. Order. Causes are examined in the order below, and the first that indicts a server is the verdict.
--      An earlier cause explains the later ones (the traffic of a network hog makes segments get lost),
--      not the other way round.
--   8. For others. What a drive does for others than the servers is counted, not inferred: what it moved less
--      what the servers had asked for. A server is indicted if its drive is busy for others for more than a
--      tenth of the time, and three times as long as its peers' drives are. Others' reads are known at once,
--      so half a span is enough; of others' writes only those are known that cannot be the servers' own, or
--      their file system's, late.
--   9. Abstention. Peers cannot always tell. The detector abstains if it would indict several servers and
--      more than a third of all, or if the noise alone requires a ratio above 'BLUR': then the workload
--      shifted, or there is no healthy majority.

local nan = 0 / 0
local SHOWN = 5    -- servers per cause in the evidence
local SHORTEST = 4 -- seconds of a span
local BLUR = 4     -- largest ratio that the noise may require (rule 9)
local NEVER = -1e300 -- a score below every limit
local MERGED = 100 -- if more segments than this are sent in a second and over half are not received, the receiver merges them
local LATE = 3     -- seconds after which a drive has moved what a server asked it for, but for writes that memory holds
local HEADERS = 66 -- bytes of Ethernet, IP and TCP with timestamps, a packet

-- Amounts and exposures of views are functions of 'of'. of(name) is the vec of a metric's sums, second by
-- second, and 0 where there is no sample; of(name, "count") and of(name, "bytes") are its counts and bytes.
local function metric(name, field)
	return function(of) return of(name, field) end
end

local function plus(one, other)
	return function(of) return of(one) + of(other) end
end

-- Payload that the interfaces carried and that does not belong to the file system. Interfaces also count
-- segments that are sent again, or dropped behind the interface, and the server's sockets do not. So the
-- bytes that the clients' sockets report are subtracted as an alternative, and the smaller difference
-- counts.
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

-- Seconds with loss, by the segments that the sender sent again. Needless ones are subtracted: after a
-- spurious timeout the receiver acknowledges a duplicate. The receiver's counts (segments beyond a gap) are
-- used only if the run has none of the sender: single requests and answers that get lost leave no gap.
local function lossy(from, to)
	local again, sent = from .. "tcp_retransmitted_segments", from .. "tcp_sent_bytes"
	local gaps, received = to .. "tcp_out_of_order_segments", to .. "tcp_received_bytes"
	return { { says = "segments sent again", needs = { again, sent }, lost = metric(again), load = metric(sent),
			needless = metric(from .. "tcp_duplicate_segments") } },
		{ { says = "segments beyond a gap", needs = { gaps, received }, lost = metric(gaps), load = metric(received) } }
end

-- Segments that one end sent and the other never received. This includes acknowledgements, which are never
-- sent again. Less than a fiftieth cannot be distinguished from segments that are still on their way.
local function unbalanced(from, to)
	local sent, got = from .. "tcp_sent_segments", to .. "tcp_received_segments"
	return { says = "segments that never came", needs = { sent, got }, load = metric(from .. "tcp_sent_bytes"), sent = sent,
		got = got, least = 0.02 }
end

local function loss(cause, from, to)
	local views, instead = lossy(from, to)
	return { cause = cause, views = views, instead = instead, also = unbalanced(from, to) }
end

-- Mean time per request and per byte. Where bytes are not known (in a CSV file), only the first has values.
local function service(name, says, floor)
	return { says = says, needs = { name }, amount = metric(name), floor = floor or 0.05,
		per = { metric(name, "count"), metric(name, "bytes") } }
end

-- Bytes that others than the servers had the drive move. A request that the servers have made reaches the drive
-- later: a read within seconds, a write when the kernel sees fit. Whatever can still be one of theirs is taken
-- for one: all that they have asked for and the drive has not yet moved, but for no more than they asked for in
-- the last seconds and, of writes, than the memory holds of what is not yet written.
local function of_others(of, moved, asked, unwritten)
	local list, waiting = {}, math.huge
	local all, own = of(moved), of(asked)
	local known = vec.least { of(moved, "count"), of(asked, "count") }
	local most = own:rolling_sum(LATE, 1) + (unwritten and of(unwritten) or 0)
	for t = 1, #all do
		local mine = waiting + own[t]
		list[t] = known[t] > 0 and math.max(0, all[t] - mine) or 0
		waiting = math.min(math.max(0, mine - all[t]), most[t])
	end
	return vec.of(list)
end

-- What a drive reads for nobody that is known shows at once, so half a span is enough. It writes for its file system,
-- too, in bursts: a journal, for example. That grows with the requests, so it is also compared per segment that clients
-- sent.
local function for_others(way, quick, bytes)
	return {
		cause = "disk", what = "disk, " .. way .. " for others", least = 3, quick = quick,
		views = { { says = ("time that the drive is busy with what is %s for others than the servers"):format(way),
			needs = { "drive_busy_s", "drive_read_bytes", "drive_written_bytes", table.unpack(bytes) },
			amount = function(of)
				local others = of_others(of, table.unpack(bytes))
				return (of("drive_busy_s") * others / (of("drive_read_bytes") + of("drive_written_bytes"))):fill(0)
			end,
			per = { metric("seconds"), function(of) return of("tcp_received_segments") + 1 end }, floor = 0.05 } },
	}
end

local requests, bytes = plus("disk_reads", "disk_writes"), plus("disk_read_bytes", "disk_written_bytes")

-- 'least' may be the name of a parameter. 'instead' holds the views for runs that lack the metrics of
-- 'views'. 'unless' names a metric: runs that have it skip the cause; 'only' names one that a run must have.
-- Service times also grow with the length of the queue, and a healthy server may have more work than others:
-- hence their larger 'least'.
local BY_SERVICE_TIME = 4
local known_times = { dread = true, dwrite = true, nsread = true, ncread = true, nsbulk = true, ncbulk = true }
local causes = {
	{ cause = "network/hog", what = "network/hog, received", least = 3, views = { foreign("received", "sent") } },
	{ cause = "network/hog", what = "network/hog, sent", least = 3, views = { foreign("sent", "received") } },
	loss("network/receive-loss", "client_", ""),
	loss("network/send-loss", "", "client_"),
	for_others("read", 2, { "drive_read_bytes", "process_read_bytes" }),
	for_others("written", 1, { "drive_written_bytes", "process_written_bytes", "memory_unwritten_bytes" }),
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
		-- Peers are taken to hold alike shares of memory that is none of the servers': a host with a large
		-- service of another kind differs, whether it is short of memory or not.
		cause = "memory", least = 3, only = "memory_total_bytes",
		views = { { says = "memory in use that is none of the servers'",
			needs = { "memory_total_bytes", "memory_available_bytes", "process_memory_bytes" },
			amount = function(of)
				return (of("memory_total_bytes") - of("memory_available_bytes") - of("process_memory_bytes")):clamp(0)
			end,
			per = { metric("memory_total_bytes") }, floor = 0.1, of = { "memory_total_bytes" } } },
	},
	{
		cause = "network", least = BY_SERVICE_TIME, unless = "tcp_retransmitted_segments",
		views = { service("nsread", "time to receive a request"), service("ncread", "time to receive a response") },
	},
	{
		-- Not a view of the cause above: bulk data moves one way at a time, so the two need not agree.
		cause = "network", what = "network, bulk data", least = BY_SERVICE_TIME, unless = "tcp_retransmitted_segments",
		views = { service("nsbulk", "time to receive bulk data"), service("ncbulk", "time to receive bulk data, by clients") },
	},
}

-- The causes above, and one for each service time with another name (from a CSV file).
local function causes_of(run)
	local list = {}
	for _, cause in ipairs(causes) do
		if not run.series[cause.unless] and (not cause.only or run.series[cause.only]) then list[#list + 1] = cause end
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

-- The views in a list for which the run has samples.
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

-- Rule 3's score: log of (amount / expected amount). Returns one vec per server, and a function that
-- describes one score.
local function log_ratios(run, view, span)
	local amounts, exposures, sizes, ratios = {}, {}, {}, {}
	for i, server in ipairs(run.servers) do
		local of = reader(run, server)
		amounts[i], exposures[i], ratios[i], sizes[i] = view.amount(of), {}, {}, 0
		for k, exposure in ipairs(view.per) do exposures[i][k] = exposure(of) end
		for _, name in ipairs(view.of or {}) do sizes[i] = math.max(sizes[i], of(name):mean()) end
	end
	local floor = view.floor * (view.of and vec.of(sizes):median() or 1)
	-- Scores by the k-th exposure: rates over windows of 'width' seconds, then the median of 'of' such
	-- windows.
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
			-- NaN until the first span is complete.
			ratios[i][k] = vec.least { whole[i], typical[i] } + 0 * whole[i]
		end
	end
	for i in ipairs(run.servers) do ratios[i] = vec.least(ratios[i]) end
	return ratios, function(i, at)
		return ("%s: %.3g times what its peers would have"):format(view.says, math.exp(ratios[i][at]))
	end
end

-- Returns three vecs: 1 in seconds with loss; 1 in seconds in which something was sent; load of a second
-- and the one before. All are shifted by one second, since needless segments are acknowledged up to a
-- second later.
local function sent_again(view, of, load)
	local k = view.lost(of):lag(1, 0)
	if view.needless then k = k - view.needless(of):rolling_sum(2, 1) end
	k = k:clamp(0, 1)
	return k, (load:lag(1, 0) + k):clamp(0, 1), load:rolling_sum(2, 1):lag(1, 0)
end

-- The same by segments that never arrived. The number missing (sent - received, cumulated) must grow beyond
-- its largest value of the two seconds before, and stay there for the two seconds after: segments on their
-- way, and those that one end counted before the other end was sampled, make it rise and fall again. A
-- second's growth must also exceed what it usually falls by (the 0.9 quantile of its falls). All is shifted
-- by two seconds, and only seconds in which every end was sampled count. An end that merges segments before
-- it counts them, as some NICs do, counts fewer than were sent, by more than any loss explains: then this
-- view gives no loss.
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

-- For each server, two pairs of vecs { other seconds, full seconds }: 1 in seconds with loss; 1 in seconds
-- with anything sent.
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

-- Counts of seconds of one class ('load': 1 other, 2 full): each server's over the last two spans and over
-- the run, and the sums of both over all servers.
local function pool(run, of, load, span)
	local each, own, all, total = {}, {}, 0, 0
	for i in ipairs(run.servers) do
		each[i], own[i] = of[i][load]:rolling_sum(2 * span, span), of[i][load]:sum()
		all, total = each[i] + all, total + own[i]
	end
	return { each = each, own = own, all = all, total = total }
end

-- Rule 4's score: log likelihood with the server's own share of loss, minus that with its peers'. Returned
-- as log_ratios does.
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

-- Rule 3's noise, as a standard deviation (0.6745 is the upper quartile of a standard normal distribution).
local function noise_of(scores)
	local each = {}
	for _, of in ipairs(scores) do
		local quartile = of:quantile(0.75)
		if quartile == quartile then each[#each + 1] = math.max(quartile, 0) / 0.6745 end
	end
	return #each > 0 and vec.of(each):median() or nan
end

-- Rule 6: the smallest score of the last 'seconds' seconds; NEVER where one of them has none.
local function held(score, seconds)
	local all = { score:fill(NEVER) }
	for k = 1, seconds - 1 do all[k + 1] = all[1]:lag(k, NEVER) end
	return vec.least(all)
end

-- The SHOWN servers with the highest scores, as name -> score.
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

-- Each server's score second by second, to be drawn: false where it has none. Few digits are enough.
local function drawn(run, scores, shape)
	local servers = {}
	for i, server in ipairs(run.servers) do
		servers[server] = {}
		for second = 1, run.seconds do
			local x = scores[i][second]
			servers[server][second] = x > NEVER and tonumber(("%.3g"):format(shape(x))) or false
		end
	end
	return servers
end

-- The metrics of views, each once.
local function metrics_of(views)
	local list, seen = {}, {}
	for _, view in ipairs(views) do
		for _, name in ipairs(view.needs) do
			if not seen[name] then list[#list + 1] = name end
			seen[name] = true
		end
	end
	return list
end

-- Examines one cause. Returns the servers that it indicts, highest score first, the evidence (nil if the
-- run has no data), each server's largest score divided by the limit, and a function that makes the scores
-- to be drawn.
local function look(run, cause, log_m, params)
	local views, least = known(run, cause.views), params[cause.least] or cause.least
	local span = math.max(SHORTEST, params.span // (cause.quick or 1))
	if #views == 0 and cause.instead then views, least = known(run, cause.instead), cause.instead.least end
	local by_view, tell, scores, most, found = {}, {}, {}, {}, {}
	for k, view in ipairs(views) do by_view[k], tell[k] = (view.load and surprises or log_ratios)(run, view, span) end
	for i in ipairs(#views > 0 and run.servers or {}) do
		local all = {}
		for k in ipairs(views) do all[k] = by_view[k][i] end
		scores[i] = vec.least(all)
	end
	local also = params.balance and scores[1] and known(run, { cause.also })[1]
	if also then -- either is enough: the larger score counts
		local k = #views + 1
		by_view[k], tell[k] = surprises(run, also, span)
		for i in ipairs(run.servers) do scores[i] = -vec.least { -scores[i], -by_view[k][i] } end
	end
	local noise = noise_of(scores)
	if noise ~= noise then return found, nil end
	local z = math.sqrt(2 * log_m - math.log(4 * math.pi * log_m)) -- the normal quantile, within a few per cent
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
	local severity = {}
	for i, server in ipairs(run.servers) do
		if most[i] > NEVER then severity[server] = math.max(0, most[i] / limit) end
	end
	local function curves()
		if also then views[#views + 1] = also end
		return { what = cause.what or cause.cause, limit = shape(limit), logarithmic = least and true,
			metrics = metrics_of(views), servers = drawn(run, scores, shape) }
	end
	return found, { limit = shape(limit), noise = least and math.exp(noise), highest = highest(run, most, shape),
		blurred = least and z * noise > math.log(BLUR) or nil }, severity, curves
end

-- Adds one cause's severities to those of the causes before it. Returns the largest of this cause.
local function worsen(all, severity)
	local most = -1
	for server, x in pairs(severity or {}) do
		all[server] = math.max(all[server] or 0, tonumber(("%.4g"):format(x)))
		most = math.max(most, x)
	end
	return most
end

local function diagnose(run, _, params)
	local guilty, seen, n, list = nil, {}, #run.servers, causes_of(run)
	local severity, closest, shown = {}, -1, nil -- up to the cause that is indicted; and the closest one
	local asked = 0
	for _, cause in ipairs(list) do
		local data = known(run, cause.views)[1] or known(run, cause.instead)[1]
		asked = asked + (data and (cause.quick or 1) or 0) + (params.balance and cause.also and 1 or 0)
	end
	local log_m = math.log(n * asked * math.max(1, run.seconds / params.span) / (params.alarm / 100))
	for _, cause in ipairs(list) do
		local found, what, of, curves = look(run, cause, log_m, params)
		seen[cause.what or cause.cause] = what
		if not guilty then
			local most = worsen(severity, of)
			if most > closest then closest, shown = most, curves end
			if found[1] then guilty, shown = { cause = cause.cause, found = found }, curves end
		end
	end
	if not next(seen) then
		return { { metric = "any", abstain = true, reason = "too few servers have anything to compare" } }
	end
	if not guilty then
		local blurred
		for _, what in pairs(seen) do blurred = blurred or what.blurred end
		return { { metric = "any", abstain = blurred,
			evidence = { causes = seen, severity = severity, scores = shown and shown() },
			reason = blurred and "the servers differ too much among themselves" or nil } }
	end
	local found, indicted, times = guilty.found, {}, {}
	local evidence = { causes = seen, found = table.move(found, 1, math.min(#found, SHOWN), 1, {}),
		severity = severity, scores = shown() }
	for k, f in ipairs(found) do indicted[k], times[f.server] = f.server, f.first_s end
	if #found > 1 and #found * 3 > n then
		return { { metric = "any", abstain = true, reason = "too many servers differ from the others", evidence = evidence } }
	end
	return { { metric = "any", indicted = indicted, time_s = times, resource = guilty.cause, evidence = evidence } }
end

---@type culprit.Detector
return {
	name = "peer-robust",
	summary = "differs from its peers for seconds, by device, socket and service times; names the cause; needs no training",
	params = {
		span = { default = 8, min = 4, max = 600, integer = true, help = "seconds over which servers are compared" },
		disk = { default = 1.25, min = 1.01, max = 1000,
			help = "least ratio at which a disk is called slow (raise it where disks differ)" },
		hold = { default = 2, min = 1, max = 60, integer = true, help = "seconds in a row for which a score must exceed its limit" },
		alarm = { default = "0.1%", unit = "percent", min = "0.0001%", max = "50%", help = "false alarms per run, by design" },
		balance = { default = true, help = "also detect loss by segments that one end sent and the other never received" },
	},
	diagnose = diagnose,
}
