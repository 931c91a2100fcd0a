-- 'culprit doctor --learn-errnos', first: what fails without a fault. Without it the faults' cells tell nothing.

---@type culprit.Scenario
return {
	name      = "learn-errnos-control",
	summary   = "what applications see while nothing is wrong",
	workloads = { "./calls.lua" },
	faults    = { "none" },
	detectors = { "crash-hang" },
	phases    = { before = "3s", fault = "15s", after = "4s" },
	gates     = { wait = "30s" },
	attempts  = 2,
}
