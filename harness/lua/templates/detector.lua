-- Indicts a server whose mean read time over the whole run is a multiple of its peers' median.
-- diag/detectors/detector.meta.lua documents runs, vectors and verdicts.

return {
	name    = "many-times-slower",
	summary = "mean disk read time far above the peers' median",
	params  = { factor = { default = 3, help = "ratio to the median above which a server is indicted" } },

	diagnose = function(run, model, params)
		local means, sorted = {}, {}
		for _, server in ipairs(run.servers) do
			local mean = run.series.dread[server].mean:mean()
			if mean == mean then -- not NaN: it was read from
				means[server] = mean
				sorted[#sorted + 1] = mean
			end
		end
		if #sorted < 3 then
			return { { metric = "any", indicted = {}, abstain = true, reason = "fewer than 3 servers were read from" } }
		end
		table.sort(sorted)
		local median, guilty = sorted[(#sorted + 1) // 2], {}
		for server, mean in pairs(means) do
			if mean > params.factor * median then guilty[#guilty + 1] = server end
		end
		return { { metric = "any", indicted = guilty, evidence = { median_s = median, mean_s = means } } }
	end,
}
