-- What several faults and workloads share: local culprit = require "culprit". Typed in culprit.meta.lua.

local culprit = {}

-- For a fault's check: the victim has one server process, and its agent can do 'what' with it.
function culprit.one_server(ctx, what)
	local victim = ctx.victim
	if #victim.pids ~= 1 then
		return nil, ("%s: %d server processes, there must be one"):format(victim.name, #victim.pids)
	end
	return victim:can(what)
end

-- For inject: sets a soft limit ("nofile", "fsize", "as") of the victim's server, for limit_holds.
function culprit.limit_server(ctx, resource, value)
	local state = ctx.state
	state.pid, state.resource, state.limit = ctx.victim.pids[1], resource, value
	ctx.victim:limit_service { pid = state.pid, limits = { [resource] = value } }
end

-- For verify: that limit is in force. The server may die of it later; that is one of the fault's effects.
function culprit.limit_holds(ctx)
	local state = ctx.state
	local now, why = ctx.victim:limits(state.pid)
	if not now and state.acted then return { server = "has died" } end
	if not now then return nil, why end
	local soft = now[state.resource].soft
	if soft ~= state.limit then return nil, ("the limit is %d, not %d"):format(soft, state.limit) end
	state.acted = true
	return { pid = state.pid, soft_limit = soft }
end

-- For verify: 'handle' runs, and its counter 'field' has grown by 'least' (default 1) since the last look.
-- Returns the counter, or nil and the reason.
function culprit.growth(ctx, handle, field, least)
	local now = handle:status()
	local value, before = now[field], ctx.state[field] or 0
	ctx.state[field] = value
	if not now.running then return nil, "the process has ended (exit " .. tostring(now.exit) .. ")" end
	if value < before + (least or 1) then
		return nil, ("%s is %s, and was %s at the last look"):format(field, value, before)
	end
	return value
end

-- For check: the inventory names a spare device on the victim's storage disk.
function culprit.has_spare(ctx)
	if ctx.victim.spare then return true end
	return nil, ctx.victim.name .. ": the inventory names no 'spare' device on its storage disk"
end

-- Reads the spare device for a share of the time: the agent's own reader, with direct reads of 'block'
-- bytes.
function culprit.read_spare(ctx, block)
	return ctx.victim:process {
		self = true,
		argv = { "read", "--share", ctx.params.share .. "%", "--block", ("%d"):format(block // 4096 * 4096),
		         ctx.victim.spare },
	}
end

-- Network hogs: 'sender' sends zeros to a port of 'taker' over ctx.params.senders connections.
function culprit.send_zeros(ctx, sender, taker, port)
	local at = (taker.address:find(":") and "[%s]:%d" or "%s:%d"):format(taker.address, port)
	ctx.state.taker = taker:process { self = true, argv = { "sink", "--listen", at, "--from", sender.address } }
	local argv = ctx.params.share < 100 and { "send", "--share", ctx.params.share .. "%", at } or { "send", at }
	ctx.state.senders = {}
	for i = 1, ctx.params.senders do
		ctx.state.senders[i] = sender:process { self = true, argv = argv }
	end
end

-- For verify: zeros have arrived since the last look. What the taker read to start itself does not count.
function culprit.zeros_arrive(ctx)
	local first = not ctx.state.rchar
	local arrived, why = culprit.growth(ctx, ctx.state.taker, "rchar", 65536)
	if not arrived then return nil, why .. "; its port may be in use" end
	if first then return nil, "seen once" end
	return { received_bytes = arrived }
end

-- For check: the inventory names a host that is neither server nor client.
function culprit.has_outsider(ctx)
	if ctx.outsiders[1] then return true end
	return nil, "the inventory names no outsider, a host that is neither server nor client"
end

-- A client's file in the run's own folder; and the command that makes that folder.
function culprit.file(ctx, client, what)
	return ("%s/%s/%s.%s"):format(client.mount, ctx.run, what, client.name)
end

function culprit.make_folder(ctx, client)
	return { "mkdir", "-p", client.mount .. "/" .. ctx.run }
end

-- dd, in records that span all servers.
function culprit.dd(ctx, from, to, ...)
	return { "dd", "if=" .. from, "of=" .. to, "bs=" .. ctx.params.per_server * #ctx.servers, ... }
end

-- dd's own figures, one line a pass: "33554432 bytes (34 MB, 32 MiB) copied, 2.1 s, 16 MB/s"
function culprit.dd_result(output)
	local bytes, seconds = 0, 0
	for b, s in output:gmatch("(%d+) bytes[^\n]- copied, ([%d.e-]+) s") do
		bytes, seconds = bytes + tonumber(b), seconds + tonumber(s)
	end
	if seconds == 0 then return nil, "dd reported no figures" end
	return { bytes = bytes, seconds = seconds, bytes_per_second = bytes / seconds }
end

-- The file that ddw and ddr share: whichever is prepared first writes it. Through the page cache, one
-- request after the other: under direct I/O GlusterFS 10.3 may look a new shard up before its brick has
-- named it, and then asks for ever.
function culprit.dd_prepare(ctx, client)
	local file = culprit.file(ctx, client, "dd")
	local key = file .. ctx.params.per_server * ctx.params.records
	if ctx.shared[key] then return {} end
	ctx.shared[key] = true
	return { culprit.make_folder(ctx, client),
	         culprit.dd(ctx, "/dev/zero", file, "count=" .. ctx.params.records, "conv=notrunc,fsync") }
end

-- Parameters of the IOzone workloads.
culprit.iozone_params = {
	file   = { default = "32MiB", unit = "bytes", min = "64KiB", max = "1TiB", integer = true,
	           help = "size of the file; a multiple of the record" },
	record = { default = "16MiB", unit = "bytes", min = "4KiB", max = "16MiB", integer = true,
	           help = "size of a record; a power of two" },
	direct = { default = 1, unit = "number", min = 0, max = 1, integer = true,
	           help = "1: O_DIRECT, which bypasses the client's page cache; 0: for mounts that refuse it" },
}

-- IOzone's command for one of its tests ("0": write and rewrite, "1": read and reread) on a file that is
-- kept (-w).
function culprit.iozone(ctx, file, test)
	local p = ctx.params
	local argv = { "iozone", "-i", test, "-w", "-s", p.file // 1024 .. "k", "-r", p.record // 1024 .. "k", "-f", file }
	if p.direct == 1 then argv[#argv + 1] = "-I" end
	return argv
end

-- For prepare: the run's folder, then the given commands.
function culprit.iozone_prepare(ctx, client, ...)
	if ctx.params.file % ctx.params.record ~= 0 then error("iozone: 'file' must be a multiple of 'record'", 0) end
	return { culprit.make_folder(ctx, client), ... }
end

-- IOzone's report, one line a pass: kB, record's kB, then kB/s of the first and the second half of the
-- test. A pass that was cut short has fewer columns. 'verb' is "read" or "write".
function culprit.iozone_result(output, verb)
	local n, bytes, first_s, second_s = 0, 0, 0, 0
	for kb, first, second in output:gmatch("\n%s+(%d+)%s+%d+%s+(%d+)%s+(%d+)%s*\n") do
		n, bytes = n + 1, bytes + 1024 * kb
		first_s, second_s = first_s + kb / first, second_s + kb / second
	end
	if n == 0 then
		if output:find("\n%s+%d+%s+%d+%s") then return { passes = 0, bytes = 0 } end
		return nil, "iozone did not " .. verb
	end
	return { passes = n, bytes = 2 * bytes, seconds = first_s + second_s, [verb .. "_bytes_per_second"] = bytes / first_s,
	         ["re" .. verb .. "_bytes_per_second"] = bytes / second_s }
end

return culprit
