-- Describe here which application this workload stands for.

---@type culprit.Workload
return {
	summary = "every client writes small files, one after the other",

	params = {
		size = { default = "64KiB", unit = "bytes", min = "1B", max = "64MiB", help = "bytes in a file" },
	},

	-- Programs that every client must have, and the Debian packages that contain them.
	needs = { "dd", "mkdir" },
	packages = { dd = "coreutils", mkdir = "coreutils" },

	-- Returns commands that run on a client once, in order, before the first cell.
	prepare = function(ctx, client)
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run } }
	end,

	-- Returns the program that runs on a client during a cell: repeatedly, or once if ctx.once is set (the
	-- cell then ends with the program). It is started without a shell; 'stdin' may give it a text to read.
	command = function(ctx, client)
		return {
			argv = { "dd", "if=/dev/zero", "of=" .. client.mount .. "/" .. ctx.run .. "/small." .. client.name,
			         "bs=" .. ctx.params.size, "count=1", "conv=fsync" },
			loop = not ctx.once,
		}
	end,

	-- Turns the program's output into figures, which are kept with the run.
	result = function(output)
		local files = select(2, output:gsub("copied", ""))
		if files == 0 then return nil, "no file was written" end
		return { files = files }
	end,
}
