-- always-healthy: a null detector that never indicts. Its TP and FP are 0. A detector that indicts
-- anybody on controls is worse than this one there.

---@type culprit.Detector
return {
	name = "always-healthy",
	summary = "null detector: never indicts",
	diagnose = function()
		return { { metric = "any", indicted = {} } }
	end,
}
