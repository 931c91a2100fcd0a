-- The file system under the server's storage turns read-only, as ext4 does after a disk error (Kasick et
-- al. 2009, section 5, which uses sysrq and so hits every file system of the host). Only the victim's
-- storage is hit: through ext4's trigger_fs_error if the kernel has it, else by a remount, which a server
-- with files open for writing prevents. The undo checks the file system while the server is stopped.
--
-- GlusterFS 10.3: mknodat, pwrite64 and fsetxattr in the server fail with EROFS. The client's open of a new
-- file on the victim fails with EROFS (sometimes EIO), its write with EROFS. The brick's health check
-- (every 30 s) fails too: the brick goes offline, clients get ENOTCONN, and 30 s later it ends itself. The
-- undo takes 1 to 7 s on the lab's 1 GiB at 8 MB/s.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "the victim's storage turns read-only",
	resource = "storage",
	needs    = "e2fsprogs",
	storage  = "folder",
	workload_may_fail = true,

	check = function(ctx)
		return culprit.one_server(ctx, "fs.readonly", { path = ctx.victim.storage })
	end,

	inject = function(ctx)
		ctx.victim:make_readonly { path = ctx.victim.storage, pid = ctx.victim.pids[1] }
	end,

	-- By effect: a file cannot be made.
	verify = function(ctx)
		local probe = ctx.victim.storage .. "/.culprit-probe"
		local made = ctx.victim:run { argv = { "env", "LC_ALL=C", "touch", probe } }
		if made.exit == 0 then
			ctx.victim:run { argv = { "rm", "-f", probe } }
			return nil, "a file could be made in " .. ctx.victim.storage
		end
		if not made.output:find("Read-only file system", 1, true) then return nil, made.output end
		return { probe = made.output:match("[^\n]*"), readonly = ctx.victim:fs_info(ctx.victim.storage).readonly }
	end,
}
