-- IOzone in write/rewrite mode, one file a client (001, section 5): large sequential I/O with few metadata operations,
-- an fsync after each half, and a change of work half-way, from a new file to one that is there.
-- 001: 8 GB a client in records of 16 MB, the most that IOzone takes: file = "8GiB". The default is for the lab.

local function path(ctx, client)
	return ("%s/%s/iozonew.%s"):format(client.mount, ctx.run, client.name)
end

---@type culprit.Workload
return {
	summary = "IOzone writes and rewrites a file a client, in large records",
	params  = {
		file   = { default = "32MiB", unit = "bytes", min = "64KiB", max = "1TiB", integer = true,
		           help = "size of the file; a multiple of the record" },
		record = { default = "16MiB", unit = "bytes", min = "4KiB", max = "16MiB", integer = true,
		           help = "size of a record; a power of two" },
		direct = { default = 1, unit = "number", min = 0, max = 1, integer = true,
		           help = "1: O_DIRECT, which keeps the client's page cache out; 0: for mounts that refuse it" },
	},
	needs = { "iozone" },
	packages = { iozone = "iozone3, from non-free" },

	prepare = function(ctx, client)
		if ctx.params.file % ctx.params.record ~= 0 then error("iozonew: 'file' must be a multiple of 'record'", 0) end
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run } }
	end,

	-- The file stays (-w) and is truncated by the next pass, so that each pass writes it anew but to the same
	-- servers: a file system that places by name or number would put a new file elsewhere each time.
	command = function(ctx, client)
		local p = ctx.params
		local argv = { "iozone", "-i", "0", "-w", "-s", p.file // 1024 .. "k", "-r", p.record // 1024 .. "k", "-f", path(ctx, client) }
		if p.direct == 1 then argv[#argv + 1] = "-I" end
		return { argv = argv, loop = not ctx.once }
	end,

	-- The line below the titles, one a pass: kB, record's kB, then kB/s of write and rewrite. What was cut short has fewer.
	result = function(output)
		local n, bytes, write_s, rewrite_s = 0, 0, 0, 0
		for kb, w, r in output:gmatch("\n%s+(%d+)%s+%d+%s+(%d+)%s+(%d+)%s*\n") do
			n, bytes = n + 1, bytes + 1024 * kb
			write_s, rewrite_s = write_s + kb / w, rewrite_s + kb / r
		end
		if n == 0 then -- cut short in its first pass, or never begun
			if output:find("\n%s+%d+%s+%d+%s") then return { passes = 0, bytes = 0 } end
			return nil, "iozone did not write"
		end
		return { passes = n, bytes = 2 * bytes, seconds = write_s + rewrite_s, write_bytes_per_second = bytes / write_s,
		         rewrite_bytes_per_second = bytes / rewrite_s }
	end,
}
