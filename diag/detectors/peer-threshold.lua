-- peer-threshold: Kasick et al. 2009, section 6. Indicts a server whose mean service time exceeds that of
-- its peers by more than it did in fault-free training.
--
-- The paper's algorithm. For each server, metric and second there is one mean service time. The
-- representative is the median over the servers that are not saturated. A server's deviation is its mean
-- minus the representative. Its threshold comes from its largest deviation in fault-free ddw and ddr
-- runs. Saturated servers are found in training; they are left out of the representative and have their
-- own, larger threshold. Every server above its threshold is indicted.
--
-- With 'published' it is the algorithm of the paper and nothing else: single seconds, each server's own
-- largest deviation as its threshold, and shorter times count as well as longer ones ("differs by more than"
-- a threshold). Kept of what follows are "Number of peers" and "Saturated servers", without which a median
-- means nothing and which the paper has, but does not describe. By the argument under "Margin" this alarms in
-- most fault-free runs that are like the training: of n servers of which each has its own threshold from k
-- runs, none exceeds it with probability (k / (k + 1))^n if they are independent, 0.39 for n = 10 and k = 10.
--
-- The paper leaves the following open. All of it was decided before any scored run was looked at: from
-- the paper's hypotheses, from statistics, and from synthetic series (ci/bench/metrics_peer.c).
--
-- Smoothing. In a small cluster a second holds few calls, and their times have heavy tails. The largest
--   of n new seconds exceeds the largest of N training seconds with probability n / (n + N), for any
--   distribution: single seconds would certainly give false alarms. So each server's means are first
--   replaced by their median over the last 'window' seconds, in training and in diagnosis. A fault is
--   seen once it has lasted for more than half a window.
--   That hides rare events: one message in a thousand that waits 200 ms for a lost packet. With 'mean' a window
--   is the mean of all its calls, the paper's statistic over a longer interval. It shows them, is as sensitive
--   to rare events in training, and single seconds can move it.
-- Gaps. A window needs samples in half of its seconds ('least'); the median of fewer too often is an
--   outlier. Smoothing comes before the comparison, so servers need not have samples in the same
--   second: a slow server answers rarely. A server without samples is not judged; servers that do not
--   answer at all are left to crash-hang.
-- Number of peers. The representative needs windows of at least 3 servers that are not saturated, and of
--   more than half of all servers, since the paper assumes a healthy majority: if two servers differ,
--   nothing shows which one is slow. The judged server is among them, as in the paper.
-- Direction. Only longer times count. A faulty server is expected to be slower (Kasick et al. 2009,
--   section 2). Where clients wait for all servers, a slow server leaves its peers idle, and their times
--   become shorter.
-- Margin. The largest deviation in a new fault-free run exceeds the largest in k training runs with
--   probability 1 / (k + 1), again for any distribution. Smoothing does not change that; it only makes
--   the excess small. So the threshold is 'margin' times the largest deviation. The paper's first aim is
--   few false alarms. On synthetic series (4 servers, heavy tails, correlated, one training run of 30 s)
--   3 is the smallest margin with false alarms in fewer than one cell of ten: in 5 % of the clean cells.
--   With it, 66 %, 97 % and 100 % of the faults that lengthen times 3, 5 and 10 times were found.
--   Windows and margins were selected on these same series, so these figures are likely better than
--   those of a real cluster; the controls of its own runs give the true ones.
-- Common threshold. With few training windows a server's own maximum may be small by chance. By hypothesis
--   fault-free servers behave alike, so no threshold is below that of the worst server that is not
--   saturated.
-- Differences, not ratios, as in the paper. The times of tiny requests vary tenfold without a fault, which
--   would make ratios useless for large requests, too.
-- Saturated servers. A server is saturated if the median of its windows exceeds 'saturation' times the
--   representative of all servers, in most of the training runs that have the metric. The worst come
--   first; at least 3 servers and a majority always remain unsaturated.
-- No training. The detector abstains from a metric, and does not judge a server, for which no training run
--   has a window.

local function sorted_copy(list)
	local copy = table.move(list, 1, #list, 1, {})
	table.sort(copy)
	return copy
end

-- Median of a list of numbers; the list is not empty.
local function median(list)
	local s = sorted_copy(list)
	local half = #s // 2
	return #s % 2 == 1 and s[half + 1] or (s[half] + s[half + 1]) / 2
end

-- How many of n servers a representative needs.
local function quorum(n)
	return math.max(3, n // 2 + 1)
end

-- The parameters that are in force.
local function in_force(params)
	if not params.published then return params end
	return { published = true, window = 1, least = 100, margin = 1, mean = false, saturation = params.saturation }
end

-- How far a server is from the representative, in the direction that counts.
local function deviation_from(representative, smoothed, params)
	local deviation = smoothed - representative
	return params.published and deviation:abs() or deviation
end

-- Returns server -> smoothed series of the metric.
local function smooth(run, metric, params)
	local smoothed, least = {}, math.max(1, math.ceil(params.window * params.least / 100))
	for _, server in ipairs(run.servers) do
		local series = run.series[metric][server]
		smoothed[server] = params.mean
			and series.sum:rolling_sum(params.window, least) / series.count:rolling_sum(params.window, least)
			or series.mean:rolling_median(params.window, least)
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

-- Returns server -> true for the servers that are saturated in most of the runs.
local function find_saturated(runs, metric, params)
	local ratios = {} -- server -> list with its median ratio in each run
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
			local deviation = deviation_from(rep, smoothed[server], params)
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
		thresholds[server] = params.margin * (params.published and most or math.max(most, common))
	end
	return { thresholds = thresholds, largest = largest, saturated = saturated, windows = windows }
end

local function train(runs, params)
	params = in_force(params)
	local model = { metrics = {}, runs = #runs }
	for _, metric in ipairs(#runs > 0 and runs[1].service_times or {}) do
		model.metrics[metric] = train_metric(runs, metric, params)
	end
	return model
end

local function abstain(metric, reason)
	return { metric = metric, indicted = {}, abstain = true, reason = reason }
end

-- The resource that a slow metric points to: the paper has storage metrics and network metrics. A verdict
-- on "any" takes the first that indicts, storage before network, because a slow disk also delays the
-- answers on the network.
local resources = { dread = "disk", dwrite = "disk", nsread = "network", ncread = "network" }

-- The end of the first second above the threshold.
local function first_above(deviation, threshold)
	for second = 1, #deviation do
		if deviation[second] > threshold then return second end
	end
end

-- A deviation as a share of its threshold, not below 0; false where there is none.
local function share(deviation, threshold)
	if deviation ~= deviation then return false end
	return threshold > 0 and tonumber(("%.4g"):format(math.max(0, deviation / threshold))) or deviation > 0 and 1e9 or 0
end

local function diagnose_metric(run, metric, trained, params)
	local smoothed = smooth(run, metric, params)
	local rep = representative(run, smoothed, trained.saturated)
	if not rep or rep:count() == 0 then
		return abstain(metric, "too few servers have samples")
	end
	local indicted, times, servers, judged, severity, scores = {}, {}, {}, 0, {}, {}
	for _, server in ipairs(run.servers) do
		local threshold = trained.thresholds[server]
		local deviation = deviation_from(rep, smoothed[server], params)
		local most, at = deviation:max()
		if threshold and at then
			judged = judged + 1
			severity[server], scores[server] = share(most, threshold), {}
			for second = 1, run.seconds do scores[server][second] = share(deviation[second], threshold) end
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
		evidence = { seconds = run.seconds, windows = rep:count(), servers = servers, severity = severity,
			scores = #indicted > 0 and { what = metric .. ", deviation as a share of the threshold", limit = 1,
				metrics = { metric }, servers = scores } or nil } }
end

local function diagnose(run, model, params)
	local verdicts = {}
	params = in_force(params)
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
		window = { default = 10, min = 1, max = 600, integer = true, help = "seconds over which the median, or mean, is taken" },
		mean = { default = false, help = "the mean of all calls in the window, in place of the median of its seconds" },
		least = { default = "50%", unit = "percent", min = 0, max = "100%", help = "share of seconds that must have samples" },
		margin = { default = 3, min = 1, max = 100, help = "ratio of the threshold to the largest deviation in training" },
		published = { default = false, help = "the paper's algorithm unchanged; window, mean, least and margin are not used then" },
		saturation = { default = 1.5, min = 1, max = 100, help = "ratio to its peers above which a server is saturated" },
	},
	train = train,
	diagnose = diagnose,
}
