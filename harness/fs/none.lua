-- No file system: the lab's nodes and disks only, to start one by hand. A server's storage is an empty ext4 on
-- /srv/storage. An inventory of such a lab serves for 'culprit lab exec' and 'culprit doctor', not for cells.

---@type culprit.FileSystem
return {
	summary     = "none: nodes and disks only",
	server_pids = function() return {} end,
	client_pids = function() return {} end,
	lost_errnos = {},

	lab = {
		programs = {},
		layouts  = { { name = "none", summary = "empty storage on each server" } },
	},
}
