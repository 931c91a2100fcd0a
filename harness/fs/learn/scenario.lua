-- 'culprit doctor --learn-errnos': each fault that makes calls fail or wait, once, on one server. crash-hang is
-- listed because it makes the tracer record events; its verdicts are not shown. control.lua runs first.

---@type culprit.Scenario
return {
	name      = "learn-errnos",
	summary   = "what applications see of lost and limited servers",
	workloads = { "./calls.lua" },
	faults    = {
		"kill", "hang",
		"err-files", { "err-fsize", limit = "64KiB" }, "err-vmsize", "err-remount",
		{ "err-space", size = "4MiB" }, { "err-inodes", spare = 30 },
	},
	detectors = { "crash-hang" },
	phases    = { before = "3s", fault = "15s", after = "4s" },
	gates     = { wait = "30s" }, -- a node broken by a fault does not recover within minutes
	attempts  = 2,
}
