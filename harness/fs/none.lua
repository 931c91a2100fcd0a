-- No file system: only the lab's nodes and disks, for starting a file system by hand. A server's storage is an
-- empty ext4 on /srv/storage. The inventory of such a lab works with 'culprit lab exec' and 'culprit doctor',
-- but cannot run cells.

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
