-- dd writes zeros into one file a client (001, section 5): constant data-write rate, as HPC
-- checkpoints have. A record spans all servers, 4 MiB for each, as in 001 (40 MB for ten). Direct I/O
-- keeps the page caches out of the way, on clients and servers.

-- The same file serves ddw and ddr. It is written before the run, so that every pass does the
-- same work: it overwrites and never allocates.
local function path(ctx, client)
	return ("%s/%s/dd.%s"):format(client.mount, ctx.run, client.name)
end

-- With 'fresh', every attempt writes a new file, and allocates.
local function fresh_path(ctx, client)
	return ("%s/%s/fresh.%s.%s"):format(client.mount, ctx.run, client.name, ctx.attempt)
end

local function write_all(ctx, client, file, flags)
	return { "dd", "if=/dev/zero", "of=" .. file, "bs=" .. ctx.params.per_server * #ctx.servers,
	         "count=" .. ctx.params.records, table.unpack(flags) }
end

---@type culprit.Workload
return {
	summary = "dd writes zeros to one file a client, in records that span all servers",
	params  = {
		per_server = { default = "4MiB", unit = "bytes", min = "4KiB", max = "64MiB",
		               help = "share of a record for each server" },
		records    = { default = 8, unit = "number", min = 1, max = 1000000, integer = true,
		               help = "records in the file, a pass; then it is written again" },
		fresh      = { default = 0, unit = "number", min = 0, max = 1, integer = true,
		               help = "1: a new file in every attempt (001's way; it allocates), 0: the prepared one" },
	},
	needs = { "dd" },

	-- Through the page cache, one request after the other: under direct I/O many pieces of a record are made at once, and
	-- GlusterFS 10.3, which looks a new shard up before its brick has named it, may then ask for it for ever.
	prepare = function(ctx, client)
		if ctx.params.fresh == 1 then return { { "mkdir", "-p", client.mount .. "/" .. ctx.run } } end
		local key = path(ctx, client) .. ctx.params.per_server * ctx.params.records
		if ctx.shared[key] then return {} end
		ctx.shared[key] = true
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run },
		         write_all(ctx, client, path(ctx, client), { "conv=notrunc,fsync" }) }
	end,

	command = function(ctx, client)
		local file = ctx.params.fresh == 1 and fresh_path(ctx, client) or path(ctx, client)
		return { argv = write_all(ctx, client, file, { "oflag=direct", "conv=notrunc" }), loop = not ctx.once }
	end,

	cleanup = function(ctx, client)
		if ctx.params.fresh == 1 then return { "rm", "-f", fresh_path(ctx, client) } end
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
