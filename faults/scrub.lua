-- A look-alike: all servers read their whole storage, as a scrub, a rebuild of an array or a backup does. Every disk is busy
-- with something else, and all are equally busy.

local culprit = require "culprit"

-- Reads bypass the page cache. A file may vanish before it is read, and a storage may still be empty.
local SCRUB = [[
while :; do
	find "$1" -xdev -type f -size +0 -exec dd if={} of=/dev/null bs=1M iflag=direct status=none \; \
		-exec sleep "$2" \; 2>/dev/null
	sleep 0.1
done
]]

---@type culprit.Fault
return {
	summary   = "every server reads its whole storage again and again",
	resource  = "disk",
	lookalike = true,
	storage   = "folder",
	params    = {
		pause = { default = "0s", unit = "seconds", min = "0s", max = "10s", help = "after each file" },
	},

	check = function(ctx)
		for _, server in ipairs(ctx.servers) do
			if server:run { argv = { "test", "-r", server.storage } }.exit ~= 0 then
				return nil, server.name .. ": cannot read " .. server.storage
			end
		end
		return true
	end,

	inject = function(ctx)
		ctx.state.readers = {}
		for _, server in ipairs(ctx.servers) do
			local argv = { "sh", "-c", SCRUB, "sh", server.storage, tostring(ctx.params.pause) }
			ctx.state.readers[server.name] = server:process { argv = argv }
		end
	end,

	-- By effect: bytes have come off every server's disk since the last look.
	verify = function(ctx)
		local bytes, why = culprit.all_grow(ctx, ctx.state.readers, "read_bytes")
		return bytes and { read_bytes = bytes }, why
	end,

	verify_timeout = "15s",
}
