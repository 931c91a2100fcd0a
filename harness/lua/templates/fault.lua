-- Describe the fault here, and where it occurs in practice.

---@type culprit.Fault
return {
	summary  = "a log without rotation: a process keeps writing to the victim's storage",
	resource = "disk", -- the resource that a detector should name: "disk", "network/hog", "cpu", "memory", "process"

	-- Requirement on the servers' storage, if any: "folder", or "empty" (a server that can start without its
	-- files). On a file system that does not meet it, the cells are skipped.
	storage = "folder",

	-- Parameters and their defaults. A scenario overrides them: { "./my-fault.lua", block = "4MiB" }. In
	-- ctx.params they are numbers in the base unit (here bytes).
	params = {
		block = { default = "1MiB", unit = "bytes", min = "4KiB", max = "64MiB", help = "bytes per write" },
	},

	-- Returns true if the fault can run on this victim, or nil and the reason: its cells are then skipped.
	check = function(ctx)
		local probe = ctx.victim:run { argv = { "test", "-w", ctx.victim.storage } }
		if probe.exit ~= 0 then return nil, ctx.victim.name .. ": cannot write to " .. ctx.victim.storage end
		return true
	end,

	-- Starts the fault. It needs no undo: the node's guard undoes the effects of these methods
	-- (node:process, node:drop_packets, ...). For anything else, use a command with its inverse:
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
			loop = true, -- repeat until the fault ends
		}
	end,

	-- Checks that the fault has an effect: measure the effect, not the request. Called every 0.2 s until it
	-- returns a true value, and once more at the end of the fault's phase. The value is kept as evidence.
	verify = function(ctx)
		local now, before = ctx.state.writer:status(), ctx.state.write_bytes or 0
		ctx.state.write_bytes = now.write_bytes
		if now.write_bytes <= before then return nil, "nothing written since the previous check" end
		return { write_bytes = now.write_bytes }
	end,
}
