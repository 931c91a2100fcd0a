-- peer-threshold: Kasick et al. 2009, section 6. A server whose mean service time is longer than that of its
-- peers by more than it ever was in fault-free training is the culprit.
--
-- From the paper: one mean a server, metric and second; the representative is the median over the servers
-- that are not saturated; a server's deviation is its value minus the representative; its threshold
-- comes from the largest deviation that it had in fault-free ddw and ddr; saturated servers are found in
-- training, kept out of the representative, and judged by their own, larger threshold. Every server
-- above its threshold is indicted.
--
-- The paper leaves the following open. All of it was chosen before any scored run was looked at, from
-- the paper's hypotheses, from statistics, and from made-up series (ci/bench/metrics_peer.c).
--
-- Smoothing. A second of a small cluster holds few calls, with heavy tails, and the largest of
--   n fresh seconds exceeds the largest of N trained ones with probability n / (n + N), whatever
--   their distribution: with single seconds false alarms are certain. So each server's means are
--   first replaced by their median over the last 'window' seconds, in training and in diagnosis
--   alike. A fault is seen once it has lasted for more than half a window.
-- Gaps. A window needs samples in half of its seconds ('least'): the median of fewer is too easily
--   a tail. Smoothing comes before the comparison, so that servers need not have samples in the
--   same second: a slow server answers seldom. A server without samples is not judged: absence is the
--   business of crash-hang, not of service times.
-- How many peers. The representative needs windows of 3 servers that are not saturated, and
--   of more than half of all servers, since the paper assumes that a majority is healthy; of two that
--   differ, nobody can tell which is slow. The judged server is one of them, as in the paper.
-- Sides. Longer times only: a faulty server is expected to be slower (Kasick et al. 2009, section 2), and with
--   clients that wait for all servers, a slow one starves its peers, whose times then shrink.
-- Margin. The largest deviation in a new fault-free run exceeds the largest in k training runs with
--   probability 1 / (k + 1), again whatever the distribution, and smoothing does not change that,
--   it only makes the excess small. So the threshold is 'margin' times the largest deviation. the paper
--   wants few false alarms above all; 3 is the least margin that kept them under one in ten cells
--   on made-up series (4 servers, heavy tails, correlated, one training run of 30 s): 5 % of clean
--   cells; 66 %, 97 %, 100 % of the faults that lengthen times 3, 5 and 10 times were found.
--   Windows and margins were compared on those same series, so these are design figures, and likely
--   better than what a cluster will show: only its own controls can say.
-- Lucky servers. With few training windows, a server's own maximum may be small by chance. Fault-free
--   servers behave alike by hypothesis, so no threshold is below that of the worst server that is
--   not saturated.
-- Differences, not ratios: as the paper says; and the times of tiny requests vary tenfold without meaning
--   anything, which would spoil the ratios of the metric for the large ones.
-- Saturated. In training the server's windows are typically (median) above 'saturation' times the
--   representative of all servers, in most of the runs in which the metric occurs; the worst first, and
--   never so many that fewer than 3 or no majority remain.
-- No training. A metric, or a server, for which no training run has a window is abstained
--   from: a threshold of nothing would indict everybody.

local function sorted_copy(list)
	local copy = table.move(list, 1, #list, 1, {})
	table.sort(copy)
	return copy
end

-- Median of a list of numbers, which is not empty.
local function median(list)
	local s = sorted_copy(list)
	local half = #s // 2
	return #s % 2 == 1 and s[half + 1] or (s[half] + s[half + 1]) / 2
end

-- How many servers a representative needs, of n.
local function quorum(n)
	return math.max(3, n // 2 + 1)
end

-- server -> smoothed series of a metric.
local function smooth(run, metric, params)
	local smoothed, least = {}, math.max(1, math.ceil(params.window * params.least / 100))
	for _, server in ipairs(run.servers) do
		smoothed[server] = run.series[metric][server].mean:rolling_median(params.window, least)
	end
	return smoothed
end

-- The median over the servers that are not saturated, second by second; nil if too few are left.
local function representative(run, smoothed, saturated)
	local peers = {}
	for _, server in ipairs(run.servers) do
		if not saturated[server] then
			peers[#peers + 1] = smoothed[server]
		end
	end
	local least = quorum(#run.servers)
	if #peers < least then
		return nil
	end
	return vec.median(peers, least)
end

-- server -> true for those that are saturated in most of the runs.
local function find_saturated(runs, metric, params)
	local ratios = {} -- server -> one typical ratio a run
	for _, run in ipairs(runs) do
		local smoothed = smooth(run, metric, params)
		local rep = representative(run, smoothed, {})
		for _, server in ipairs(run.servers) do
			local typical = rep and (smoothed[server] / rep):median() or 0 / 0
			if typical == typical then
				ratios[server] = ratios[server] or {}
				table.insert(ratios[server], typical)
			end
		end
	end
	local candidates, n = {}, #runs[1].servers
	for _, server in ipairs(runs[1].servers) do
		local ratio = ratios[server] and median(ratios[server])
		if ratio and ratio > params.saturation then
			candidates[#candidates + 1] = { server = server, ratio = ratio }
		end
	end
	table.sort(candidates, function(a, b)
		return a.ratio > b.ratio or (a.ratio == b.ratio and a.server < b.server)
	end)
	local saturated = {}
	for i = 1, math.min(#candidates, n - quorum(n)) do
		saturated[candidates[i].server] = true
	end
	return saturated
end

local function train_metric(runs, metric, params)
	local saturated = find_saturated(runs, metric, params)
	local largest, windows = {}, 0
	for _, run in ipairs(runs) do
		local smoothed = smooth(run, metric, params)
		local rep = representative(run, smoothed, saturated)
		for _, server in ipairs(rep and run.servers or {}) do
			local deviation = smoothed[server] - rep
			local most = deviation:max()
			if most == most then
				largest[server] = math.max(largest[server] or 0, most)
				windows = windows + deviation:count()
			end
		end
	end
	local common
	for server, most in pairs(largest) do
		if not saturated[server] then
			common = math.max(common or 0, most)
		end
	end
	if not common then
		return nil
	end
	local thresholds = {}
	for server, most in pairs(largest) do
		thresholds[server] = params.margin * math.max(most, common)
	end
	return { thresholds = thresholds, largest = largest, saturated = saturated, windows = windows }
end

local function train(runs, params)
	local model = { metrics = {}, runs = #runs }
	for _, metric in ipairs(#runs > 0 and runs[1].service_times or {}) do
		model.metrics[metric] = train_metric(runs, metric, params)
	end
	return model
end

local function abstain(metric, reason)
	return { metric = metric, indicted = {}, abstain = true, reason = reason }
end

-- What a metric's slowness speaks of: the paper has storage metrics and network metrics. A verdict on "any" names the
-- first that indicts, storage before network: a slow disk also delays what the network waits for.
local resources = { dread = "disk", dwrite = "disk", nsread = "network", ncread = "network" }

-- The first second above the threshold, counted at its end.
local function first_above(deviation, threshold)
	for second = 1, #deviation do
		if deviation[second] > threshold then return second end
	end
end

local function diagnose_metric(run, metric, trained, params)
	local smoothed = smooth(run, metric, params)
	local rep = representative(run, smoothed, trained.saturated)
	if not rep or rep:count() == 0 then
		return abstain(metric, "too few servers have samples")
	end
	local indicted, times, servers, judged = {}, {}, {}, 0
	for _, server in ipairs(run.servers) do
		local threshold = trained.thresholds[server]
		local deviation = smoothed[server] - rep
		local most, at = deviation:max()
		if threshold and at then
			judged = judged + 1
			servers[server] = {
				deviation_s = most, threshold_s = threshold, worst_second = at - 1,
				representative_s = rep[at], windows = deviation:count(), over = deviation:above(threshold),
				saturated = trained.saturated[server] or false,
			}
			if most > threshold then
				indicted[#indicted + 1] = server
				times[server] = first_above(deviation, threshold)
			end
		else
			servers[server] = { judged = false, reason = threshold and "no samples" or "not trained" }
		end
	end
	if judged == 0 then
		return abstain(metric, "no server has both samples and a threshold")
	end
	return { metric = metric, indicted = indicted, abstain = false, time_s = times, resource = resources[metric],
		evidence = { seconds = run.seconds, windows = rep:count(), servers = servers } }
end

local function diagnose(run, model, params)
	local verdicts = {}
	for _, metric in ipairs(run.service_times) do
		local trained = model.metrics and model.metrics[metric]
		verdicts[#verdicts + 1] = trained and diagnose_metric(run, metric, trained, params)
			or abstain(metric, "no training samples")
	end
	return verdicts
end

---@type culprit.Detector
return {
	name = "peer-threshold",
	summary = "slower than its peers by more than in fault-free training (Kasick et al. 2009, section 6)",
	params = {
		window = { default = 10, min = 1, max = 600, integer = true, help = "seconds that a median is taken over" },
		least = { default = "50%", unit = "percent", min = 0, max = "100%", help = "seconds of a window that need samples" },
		margin = { default = 3, min = 1, max = 100, help = "threshold over the largest deviation in training" },
		saturation = { default = 1.5, min = 1, max = 100, help = "ratio to the peers above which a server is saturated" },
	},
	train = train,
	diagnose = diagnose,
}
