-- Indicts a server whose mean over the whole run is a multiple of its peers' median: of call times in a recorded run, of
-- every metric in your own series. Try it:
--
--     culprit diagnose runs/NAME --detector ./my-detector.lua --evidence
--     culprit diagnose --csv FILE --detector ./my-detector.lua --evidence
--     culprit rescore runs/NAME --detector ./my-detector.lua         scored against the injected faults
--
-- In a scenario: detectors = { "./my-detector.lua", { "./my-detector.lua", factor = 5 } }.
-- diag/detectors/detector.meta.lua documents runs, vectors and verdicts.

return {
	name    = "my-detector",
	summary = "a mean far above the peers' median",
	params  = { factor = { default = 3, min = 1, help = "ratio to the median above which a server is indicted" } },

	diagnose = function(run, model, params)
		local verdicts = {}
		for _, metric in ipairs(#run.service_times > 0 and run.service_times or run.metrics) do
			local means, sorted, guilty = {}, {}, {}
			for _, server in ipairs(run.servers) do
				local mean = run.series[metric][server].mean:mean()
				if mean == mean then -- not NaN: there were samples
					means[server] = mean
					sorted[#sorted + 1] = mean
				end
			end
			table.sort(sorted)
			local median = sorted[(#sorted + 1) // 2]
			for _, server in ipairs(run.servers) do
				if #sorted >= 3 and means[server] and means[server] > params.factor * median then
					guilty[#guilty + 1] = server
				end
			end
			verdicts[#verdicts + 1] = #sorted < 3
				and { metric = metric, abstain = true, reason = "fewer than 3 servers have samples" }
				or { metric = metric, indicted = guilty, evidence = { median = median, means = means } }
		end
		return verdicts
	end,
}
