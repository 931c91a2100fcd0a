-- Describe here which application this workload represents.

---@type culprit.Workload
return {
	summary = "every client writes small files one by one",

	params = {
		size = { default = "64KiB", unit = "bytes", min = "1B", max = "64MiB", help = "bytes in a file" },
	},

	-- Programs that every client must have, and the Debian packages that contain them.
	needs = { "dd", "mkdir" },
	packages = { dd = "coreutils", mkdir = "coreutils" },

	-- Returns commands that run in order on each client, once, before the first cell.
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

	-- Extracts figures from the program's output; they are kept with the run.
	result = function(output)
		local files = select(2, output:gsub("copied", ""))
		if files == 0 then return nil, "no files were written" end
		return { files = files }
	end,
}
