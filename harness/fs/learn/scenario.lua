-- 'culprit doctor --learn-errnos': each fault that makes calls fail or wait, once, on one server. crash-hang is
-- here since it needs events, which the tracer must then record; what it says is not shown.

---@type culprit.Scenario
return {
	name      = "learn-errnos",
	summary   = "what applications see of lost and limited servers",
	workloads = { "./calls.lua" },
	faults    = {
		"none", "kill", "hang",
		"err-files", { "err-fsize", limit = "64KiB" }, "err-vmsize", "err-remount",
		{ "err-space", size = "4MiB" }, { "err-inodes", spare = 30 },
	},
	detectors = { "crash-hang" },
	phases    = { before = "3s", fault = "15s", after = "4s" },
	attempts  = 2,
}
