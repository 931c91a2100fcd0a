-- dd reads back one file a client that was written before (001, section 5). A record spans all
-- servers, 4 MiB for each, as in 001 (40 MB for ten). Direct I/O keeps the page caches out of the
-- way, on clients and servers.

-- The same file serves ddw and ddr; whichever is prepared first writes it (through the page cache: see ddw.lua).
local function path(ctx, client)
	return ("%s/%s/dd.%s"):format(client.mount, ctx.run, client.name)
end

local function write_all(ctx, client)
	return { "dd", "if=/dev/zero", "of=" .. path(ctx, client), "bs=" .. ctx.params.per_server * #ctx.servers,
	         "count=" .. ctx.params.records, "conv=notrunc,fsync" }
end

---@type culprit.Workload
return {
	summary = "dd reads one prepared file a client, in records that span all servers",
	params  = {
		per_server = { default = "4MiB", unit = "bytes", min = "4KiB", max = "64MiB",
		               help = "share of a record for each server" },
		records    = { default = 8, unit = "number", min = 1, max = 1000000, integer = true,
		               help = "records in the file, a pass; then it is read again" },
	},
	needs = { "dd" },

	prepare = function(ctx, client)
		local key = path(ctx, client) .. ctx.params.per_server * ctx.params.records
		if ctx.shared[key] then return {} end
		ctx.shared[key] = true
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run }, write_all(ctx, client) }
	end,

	command = function(ctx, client)
		return {
			argv = { "dd", "if=" .. path(ctx, client), "of=/dev/null",
			         "bs=" .. ctx.params.per_server * #ctx.servers, "iflag=direct" },
			loop = not ctx.once,
		}
	end,

	-- dd's own figures, one line a pass: "33554432 bytes (34 MB, 32 MiB) copied, 2.1 s, 16 MB/s"
	result = function(output)
		local bytes, seconds = 0, 0
		for b, s in output:gmatch("(%d+) bytes[^\n]- copied, ([%d.e-]+) s") do
			bytes, seconds = bytes + tonumber(b), seconds + tonumber(s)
		end
		if seconds == 0 then return nil, "dd reported no figures" end
		return { bytes = bytes, seconds = seconds, bytes_per_second = bytes / seconds }
	end,
}
