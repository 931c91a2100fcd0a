-- The first step of 'culprit doctor --learn-errnos': calls that fail without a fault. The faults' cells are
-- meaningless without it.

---@type culprit.Scenario
return {
	name      = "learn-errnos-control",
	summary   = "what applications see without a fault",
	workloads = { "./calls.lua" },
	faults    = { "none" },
	detectors = { "crash-hang" },
	phases    = { before = "3s", fault = "15s", after = "4s" },
	gates     = { wait = "30s" },
	attempts  = 2,
}
