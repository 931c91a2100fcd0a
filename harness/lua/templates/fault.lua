-- What goes wrong, and where one sees it in the field.

---@type culprit.Fault
return {
	summary  = "a log that nobody rotates: a process writes to the victim's storage",
	resource = "disk", -- what a diagnoser should name: "disk", "network/hog", "cpu", "memory", "process"

	-- Parameters: the scenario may give others, { "./NAME.lua", block = "4MiB" }. In ctx.params they are
	-- numbers in the base unit (here bytes).
	params = {
		block = { default = "1MiB", unit = "bytes", min = "4KiB", max = "64MiB", help = "bytes written at once" },
	},

	-- Can it run with this victim? true, or nil and why not: its cells are then skipped, with that reason.
	check = function(ctx)
		local probe = ctx.victim:run { argv = { "test", "-w", ctx.victim.storage } }
		if probe.exit ~= 0 then return nil, ctx.victim.name .. ": cannot write to " .. ctx.victim.storage end
		return true
	end,

	-- Begins it. No undo is written here: the node's guard knows how to take back what these methods do
	-- (node:process, node:drop_packets, ...). Anything else is a command that comes with its inverse:
	--   ctx.victim:command { argv = {...}, inverse = {...}, check = {...} }
	-- Here the file is made by such a command, so that it is gone afterwards, and written by a process.
	inject = function(ctx)
		local file = ctx.victim.storage .. "/culprit-log"
		ctx.victim:command {
			argv    = { "touch", file },
			inverse = { "rm", "-f", file },
			check   = { "test", "-e", file },
		}
		ctx.state.writer = ctx.victim:process {
			argv = { "dd", "if=/dev/zero", "of=" .. file, "bs=" .. ctx.params.block, "count=16", "oflag=direct" },
			loop = true, -- again and again, until the fault ends
		}
	end,

	-- Does it act? Look at its effect, not at what was asked for. Asked every 0.2 s until it is true, then
	-- once more when the fault's phase ends. What you return is kept as evidence.
	verify = function(ctx)
		local now, before = ctx.state.writer:status(), ctx.state.write_bytes or 0
		ctx.state.write_bytes = now.write_bytes
		if now.write_bytes <= before then return nil, "nothing written since the last look" end
		return { write_bytes = now.write_bytes }
	end,
}
