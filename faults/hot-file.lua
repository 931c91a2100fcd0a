-- A look-alike: one file that everybody reads. The server that holds it has more work than its peers, and is
-- healthy. A detector that names it mistakes load for a fault.

local culprit = require "culprit"

-- Eight more empty files, and which of the folder's files lie on a server.
local CREATE = 'for i in 1 2 3 4 5 6 7 8; do : >"$1/$2.$i" || exit; done'
local HERE = 'find "$1" -path "*/$2/*" -type f ! -perm -1000'

-- A name that the victim holds. With ten servers, one of them has none of 64 names in one case of a thousand.
local function name_on_victim(ctx, folder, name)
	for batch = 1, 8 do
		local made = ctx.clients[1]:run { argv = { "sh", "-c", CREATE, "sh", folder, tostring(batch) } }
		assert(made.exit == 0, "cannot write to " .. folder)
		local here = ctx.victim:run { argv = { "sh", "-c", HERE, "sh", ctx.victim.storage, name } }
		local file = here.output:match("/(%d%.%d)\n")
		if file then return file end
	end
	error("none of 64 files in " .. folder .. " is on " .. ctx.victim.name)
end

---@type culprit.Fault
return {
	summary   = "a client reads one file that is on one server, again and again",
	resource  = "network",
	lookalike = true,
	needs     = "a file system that keeps a small file on one server",
	storage   = "folder",
	params    = {
		readers = { default = 2, integer = true, min = 1, max = 64, help = "processes that read it" },
	},

	check = function(ctx)
		if ctx.file_system.layout == "disperse" then return nil, "every file is on all servers (layout 'disperse')" end
		return culprit.is_mounted(ctx)
	end,

	inject = function(ctx)
		local client, name = ctx.clients[1], "culprit-hot-" .. ctx.run
		local folder = culprit.folder_of_client(ctx, name)
		local file = folder .. "/" .. name_on_victim(ctx, folder, name)
		local fill = { argv = { "dd", "if=/dev/urandom", "of=" .. file, "bs=1M", "count=1", "conv=fsync" }, timeout_s = 30 }
		assert(client:run(fill).exit == 0, "cannot write to " .. file)
		ctx.state.readers = {}
		for i = 1, ctx.params.readers do
			local argv = { "dd", "if=" .. file, "of=/dev/null", "bs=256K", "iflag=direct" }
			ctx.state.readers["reader " .. i] = client:process { argv = argv, loop = true }
		end
	end,

	-- By effect: each has read since the last look.
	verify = function(ctx)
		local bytes, why = culprit.all_grow(ctx, ctx.state.readers, "rchar", 65536)
		return bytes and { read_bytes = bytes }, why
	end,
}
