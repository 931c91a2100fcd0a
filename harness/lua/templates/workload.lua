-- What this workload stands for.

---@type culprit.Workload
return {
	summary = "every client writes small files, one after the other",

	params = {
		size = { default = "64KiB", unit = "bytes", min = "1B", max = "64MiB", help = "bytes in a file" },
	},

	-- Programs that every client must have, and the Debian packages that bring those that may be missing.
	needs = { "dd", "mkdir" },
	packages = { dd = "coreutils", mkdir = "coreutils" },

	-- Once a run, before the first cell: commands for a client, one after the other.
	prepare = function(ctx, client)
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run } }
	end,

	-- What runs on a client for the length of a cell: again and again, or (ctx.once: the cell ends with the work) a
	-- single time. No shell is involved; 'stdin' may give the program a text to read.
	command = function(ctx, client)
		return {
			argv = { "dd", "if=/dev/zero", "of=" .. client.mount .. "/" .. ctx.run .. "/small." .. client.name,
			         "bs=" .. ctx.params.size, "count=1", "conv=fsync" },
			loop = not ctx.once,
		}
	end,

	-- What the program printed -> figures that are kept with the run.
	result = function(output)
		local files = select(2, output:gsub("copied", ""))
		if files == 0 then return nil, "no file was written" end
		return { files = files }
	end,
}
