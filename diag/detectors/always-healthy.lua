-- always-healthy: the null detector that never indicts. No detector with any false positive is
-- better than it on the controls, and it bounds what a TP of 0 means.

---@type culprit.Detector
return {
	name = "always-healthy",
	summary = "null detector: nobody is ever guilty",
	diagnose = function()
		return { { metric = "any", indicted = {} } }
	end,
}
