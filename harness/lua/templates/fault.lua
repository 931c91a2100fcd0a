-- Describe the fault here, and where it occurs in practice.

---@type culprit.Fault
return {
	summary  = "a log that nobody rotates: a process writes to the victim's storage",
	resource = "disk", -- what a detector should name: "disk", "network/hog", "cpu", "memory", "process"

	-- What it needs of the servers' storage, if anything: "folder", or "empty" (a server that can start without
	-- its files). On a file system that has none its cells are skipped.
	storage = "folder",

	-- Parameters and their defaults. A scenario sets others by { "./my-fault.lua", block = "4MiB" }. In ctx.params
	-- they are numbers in the base unit (here bytes).
	params = {
		block = { default = "1MiB", unit = "bytes", min = "4KiB", max = "64MiB", help = "bytes written at once" },
	},

	-- Returns true if the fault can run on this victim, or nil and the reason: its cells are then skipped.
	check = function(ctx)
		local probe = ctx.victim:run { argv = { "test", "-w", ctx.victim.storage } }
		if probe.exit ~= 0 then return nil, ctx.victim.name .. ": cannot write to " .. ctx.victim.storage end
		return true
	end,

	-- Starts the fault. It needs no undo: the node's guard undoes what these methods do (node:process,
	-- node:drop_packets, ...). For anything else, use a command with its inverse:
	--   ctx.victim:command { argv = {...}, inverse = {...}, check = {...} }
	-- Here such a command creates the file, so that it is removed afterwards, and a process writes to it.
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

	-- Checks that the fault has an effect: measure the effect, not the request. Called every 0.2 s until it
	-- returns a true value, and once more when the fault's phase ends. The value is kept as evidence.
	verify = function(ctx)
		local now, before = ctx.state.writer:status(), ctx.state.write_bytes or 0
		ctx.state.write_bytes = now.write_bytes
		if now.write_bytes <= before then return nil, "nothing written since the last look" end
		return { write_bytes = now.write_bytes }
	end,
}
