-- always-same: a null detector that always indicts the same server. Its TP is the share of cells in
-- which that server happens to be the victim; its FP on the controls is 1.

---@type culprit.Detector
return {
	name = "always-same",
	summary = "null detector: always indicts the same server",
	params = {
		server = { default = 1, min = 1, max = 10000, integer = true, help = "which server, in the order of the run" },
	},
	diagnose = function(run, _, params)
		local server = run.servers[(params.server - 1) % #run.servers + 1]
		return { { metric = "any", indicted = { server } } }
	end,
}
