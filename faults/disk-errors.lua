-- A disk that cannot read some of its sectors: the kernel gives up and the server's call fails with EIO. Writes
-- succeed, as on a drive that still has spare sectors. Where ext4 meets such an error in its own data it turns
-- read-only; the undo then checks the file system while the server is stopped (as that of err-remount does).

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "a share of the reads of the victim's storage disk fails",
	resource = "storage",
	needs    = "a disk of the lab",
	storage  = "folder",
	workload_may_fail = true,
	params   = {
		share = { default = "10%", unit = "percent", min = "0.01%", max = "100%", help = "share of reads that fail" },
	},

	check = function(ctx)
		return culprit.one_server(ctx, "disk.fail", { path = ctx.victim.storage, errors_pct = ctx.params.share })
	end,

	inject = function(ctx)
		ctx.state.disk = ctx.victim:fail_disk {
			path = ctx.victim.storage, errors_pct = ctx.params.share, pid = ctx.victim.pids[1],
		}
	end,

	-- By effect: reads have failed since the injection. A server that has given up reads no more.
	verify = function(ctx)
		local now = ctx.state.disk:disk_counters()
		if now.failed == 0 then return nil, ("no read failed; %d are in flight"):format(now.in_flight) end
		return { backend = now.backend, failed = now.failed, requests = now.requests }
	end,
}
