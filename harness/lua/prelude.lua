-- Functions that several faults and workloads share: local culprit = require "culprit". Typed in
-- culprit.meta.lua.

local culprit = {}

-- The arguments of an act on 'pid', plus others.
local function on(pid, others)
	local all = { pid = pid }
	for key, value in pairs(others or {}) do all[key] = value end
	return all
end

-- For check: the victim's agent can do 'what', with further arguments 'with', to each of its server processes.
function culprit.each_server(ctx, what, with)
	for _, pid in ipairs(ctx.victim.pids) do
		local able, why = ctx.victim:can(what, on(pid, with))
		if not able then return nil, why end
	end
	return true
end

-- For check: the victim has one server process, and its agent can do 'what' to it, with further arguments
-- 'with'.
function culprit.one_server(ctx, what, with)
	local victim = ctx.victim
	if #victim.pids ~= 1 then
		return nil, ("%s: %d server processes share the storage, but the fault needs one"):format(victim.name, #victim.pids)
	end
	return victim:can(what, on(victim.pids[1], with))
end

-- For restart_service: a small storage of this size for a server to start on. 'more': further fields.
function culprit.small_storage(ctx, size_bytes, more)
	local empty = ctx.file_system.empty_storage
	local storage = { path = ctx.victim.storage, size_bytes = size_bytes, prune = empty.prune, keep = empty.keep }
	for key, value in pairs(more or {}) do storage[key] = value end
	return storage
end

-- Does the file system lack a step ("hard link", "symbolic link", "truncate", "direct I/O")?
function culprit.lacks(ctx, step)
	for _, missing in ipairs(ctx.file_system.missing) do
		if missing == step then return true end
	end
	return false
end

-- For inject: sets a soft limit ("nofile", "fsize", "as") of each of the victim's server processes; verified
-- by limit_holds.
function culprit.limit_server(ctx, resource, value)
	local state = ctx.state
	state.pids, state.resource, state.limit = ctx.victim.pids, resource, value
	for _, pid in ipairs(state.pids) do
		ctx.victim:limit_service { pid = pid, limits = { [resource] = value } }
	end
end

-- For verify: the limit is in force. A server may die of it later; that is one of the fault's effects.
function culprit.limit_holds(ctx)
	local state, lives, died = ctx.state, {}, 0
	for _, p in ipairs(ctx.victim:processes()) do lives[p.pid] = p.state ~= "Z" end
	for _, pid in ipairs(state.pids) do
		local soft = lives[pid] and ctx.victim:limits(pid)[state.resource].soft
		if soft and soft ~= state.limit then return nil, ("the limit is %d, not %d"):format(soft, state.limit) end
		if not soft then died = died + 1 end
	end
	if died > 0 and not state.acted then return nil, "a server ended before it reached its limit" end
	state.acted = true
	return { pids = state.pids, soft_limit = state.limit, died = died }
end

-- For verify: 'handle' runs, and its counter 'field' has grown by at least 'least' (default 1) since the last
-- call. Returns the counter, or nil and the reason. 'key': in ctx.state, where there are several such handles.
function culprit.growth(ctx, handle, field, least, key)
	local now = handle:status()
	local value, before = now[field], ctx.state[key or field] or 0
	ctx.state[key or field] = value
	if not now.running then return nil, "the process has ended (exit " .. tostring(now.exit) .. ")" end
	if value < before + (least or 1) then
		return nil, ("%s is %s, and was %s at the previous check"):format(field, value, before)
	end
	return value
end

-- The same of several handles, { NAME = handle }, all of which must have grown. Returns the sum.
function culprit.all_grow(ctx, handles, field, least)
	local sum = 0
	for name, handle in pairs(handles) do
		local value, why = culprit.growth(ctx, handle, field, least, field .. " of " .. name)
		if not value then return nil, name .. ": " .. why end
		sum = sum + value
	end
	return sum
end

-- For a look-alike's check: the file system is mounted on the first client, which is to work on it.
function culprit.is_mounted(ctx)
	local client = ctx.clients[1]
	if client:run { argv = { "mountpoint", "-q", client.mount } }.exit == 0 then return true end
	return nil, ("%s: nothing is mounted on %s"):format(client.name, client.mount)
end

-- For its inject: a new folder there, which is removed with all that is in it.
function culprit.folder_of_client(ctx, name)
	local folder = ctx.clients[1].mount .. "/" .. name
	ctx.clients[1]:command { argv = { "mkdir", folder }, inverse = { "rm", "-rf", folder }, check = { "test", "-d", folder } }
	return folder
end

-- For inject: busy threads on the victim (0: one per processor); verified by processors_taken.
function culprit.take_processors(ctx, threads)
	local argv = { "cpu" }
	if threads > 0 then argv = { "cpu", "--threads", ("%d"):format(threads) } end
	ctx.state.threads, ctx.state.machine = threads, ctx.victim:machine()
	ctx.state.cpu_hog = ctx.victim:process { self = true, argv = argv }
end

-- For verify, by effect: the threads used 50 ms of processor time since the last call; if the victim has a
-- processor-time limit below their demand, that limit has throttled it since the injection.
function culprit.processors_taken(ctx)
	local cpu_s, why = culprit.growth(ctx, ctx.state.cpu_hog, "cpu_s", 0.05)
	if not cpu_s then return nil, why end
	local now, before, n = ctx.victim:machine(), ctx.state.machine, ctx.state.threads
	if not before.throttled_s or not now.throttled_s then return { cpu_s = cpu_s } end
	local throttled_s = now.throttled_s - before.throttled_s
	if throttled_s <= 0 and (n > 0 and n or now.online) > now.processors then
		return nil, ("the victim's %g processors are not used up"):format(now.processors)
	end
	return { cpu_s = cpu_s, throttled_s = throttled_s }
end

-- Parameters of faults that take memory.
culprit.memory_params = {
	bytes = { default = "0B", unit = "bytes", min = "0B", max = "1TiB",
	          help = "memory to take; 0: all except 'leave', as in Dinh 2009" },
	leave = { default = "200MB", unit = "bytes", min = "20MB", max = "1TiB", help = "minimum memory to leave free" },
}

local FLOOR = 100e6 -- bytes that must stay available on a machine

-- The number of bytes to take from the node's current memory.
local function bytes_to_take(ctx, machine)
	local p = ctx.params
	return math.max(p.bytes > 0 and p.bytes or machine.available_bytes - p.leave, 0) // 1
end

-- For check: the node has this much memory, and no other node needs it. If nodes share a machine's memory, as
-- in a lab without --memory, only an explicit 'bytes' is allowed.
function culprit.can_take_memory(ctx)
	local p, name, machine = ctx.params, ctx.victim.name, ctx.victim:machine()
	if p.bytes == 0 and not machine.own_memory then
		return nil, ("%s: shares its memory with other nodes: set 'bytes', or limit its memory "
			.. "('culprit lab up --memory')"):format(name)
	end
	local bytes = bytes_to_take(ctx, machine)
	if bytes < 1e6 or machine.available_bytes < bytes + p.leave then
		return nil, ("%s: has %d MB of memory available, not enough to take %s and leave %d MB"):format(name,
			machine.available_bytes // 1e6, p.bytes > 0 and ("%d MB"):format(p.bytes // 1e6) or "some", p.leave // 1e6)
	end
	if machine.host_available_bytes < bytes + FLOOR then
		return nil, ("%s: its machine has %d MB available and must keep %d MB"):format(name,
			machine.host_available_bytes // 1e6, FLOOR // 1e6)
	end
	return true
end

-- For inject: takes the memory; verified by memory_taken. The OOM killer picks the hog first if memory runs
-- out.
function culprit.take_memory(ctx)
	local machine = ctx.victim:machine()
	local bytes = math.max(bytes_to_take(ctx, machine), 1)
	ctx.state.memory = { bytes = bytes, available = machine.available_bytes }
	ctx.state.memory_hog = ctx.victim:process { self = true, argv = { "memory", "--bytes", ("%d"):format(bytes) } }
end

-- For verify, by effect: the hog holds the memory, within 2 %, and the victim's available memory has shrunk
-- by nearly as much; servers may have released some since.
function culprit.memory_taken(ctx)
	local now, memory = ctx.state.memory_hog:status(), ctx.state.memory
	if not now.running then return nil, "the hog has ended (exit " .. tostring(now.exit) .. ")" end
	if now.rss_bytes < memory.bytes * 0.98 then
		return nil, ("the hog holds %d of %d bytes"):format(now.rss_bytes, memory.bytes)
	end
	local available = ctx.victim:machine().available_bytes
	if available > memory.available - memory.bytes * 0.8 then
		return nil, ("%d MB are still available"):format(available // 1e6)
	end
	return { rss_bytes = now.rss_bytes, available_bytes = available }
end

-- For check: the inventory names a spare device on the victim's storage disk.
function culprit.has_spare(ctx)
	if ctx.victim.spare then return true end
	return nil, ctx.victim.name .. ": the inventory names no 'spare' device on its storage disk"
end

-- Reads the spare device for a share of the time with the agent's reader: direct reads of 'block' bytes.
function culprit.read_spare(ctx, block)
	return ctx.victim:process {
		self = true,
		argv = { "read", "--share", ctx.params.share .. "%", "--block", ("%d"):format(block // 4096 * 4096),
		         ctx.victim.spare },
	}
end

-- The nodes that the victim has to do with: "servers", "clients", or "all" of them.
function culprit.peers(ctx, which)
	local list = {}
	for _, role in ipairs { "servers", "clients" } do
		for _, node in ipairs((which == "all" or which == role) and ctx[role] or {}) do
			if node.name ~= ctx.victim.name then list[#list + 1] = node end
		end
	end
	return list
end

-- Slow links, between the victim and all its peers. Each is { node, rule }. Latency is added where packets arrive: on their way
-- out they would still count against what the sender's TCP lets its host hold, about a millisecond's worth, and be slow for that.
-- A rate is that of the victim's own link, which all its peers share.
local function slow_rules(ctx, how)
	local peers, addresses, links = culprit.peers(ctx, "all"), {}, {}
	local function add(direction, node, side, list)
		if ctx.params.direction ~= "both" and ctx.params.direction ~= direction then return end
		local rule = { direction = side == "to" and "out" or "in", [side] = list }
		for name, value in pairs(how) do rule[name] = value end
		links[#links + 1] = { direction = direction, node = node, rule = rule }
	end
	for i, node in ipairs(peers) do addresses[i] = node.address end
	if how.rate then add("out", ctx.victim, "to", addresses) end
	for _, node in ipairs(how.rate and {} or peers) do add("out", node, "from", { ctx.victim.address }) end
	add("in", ctx.victim, "from", addresses)
	return links, #peers
end

function culprit.can_slow_link(ctx, how)
	local links, peers = slow_rules(ctx, how)
	if peers == 0 then return nil, ctx.victim.name .. ": there are no other nodes" end
	for _, link in ipairs(links) do
		local able, why = link.node:can("packets.delay", link.rule)
		if not able then return nil, why end
	end
	return true
end

function culprit.slow_link(ctx, how)
	ctx.state.links = slow_rules(ctx, how)
	for _, link in ipairs(ctx.state.links) do
		link.handle = link.node:delay_packets(link.rule)
		link.was = link.handle:delays()
	end
end

-- What has passed in one direction since the last success; nil and a reason where a program has ended.
local function passed_since(links, direction, seen)
	local sum = { packets = 0, bytes = 0, waited_s = 0, dropped = 0, seconds = 0 }
	for i, link in ipairs(links) do
		if link.direction == direction then
			local now = link.handle:delays()
			if not now.running then return nil, link.node.name .. ": the program that delays packets has ended" end
			for name, value in pairs(sum) do
				local more = now[name] - link.was[name]
				sum[name] = name == "seconds" and math.max(value, more) or value + more
			end
			seen[i] = now
		end
	end
	return sum
end

-- By effect: it has waited, and is no more than the rate lets pass. 64 KiB may have passed before the first reading.
local function is_slow(sum, how)
	if sum.packets == 0 then return nil, "no packets were delayed since the last look" end
	local mean_s, least_s = sum.waited_s / sum.packets, how.least_s or 0
	if how.rate then
		least_s = least_s + sum.bytes / sum.packets / how.rate
		if sum.bytes > 1.1 * how.rate * sum.seconds + 65536 then
			return nil, ("%d bytes a second passed, %d are the limit"):format(sum.bytes / sum.seconds // 1, how.rate // 1)
		end
	end
	if mean_s < 0.99 * least_s then
		return nil, ("%d packets waited %.6f s on average, not %.6f s"):format(sum.packets, mean_s, least_s)
	end
	return { packets = sum.packets, mean_s = mean_s, bytes_per_second = sum.bytes / sum.seconds, dropped = sum.dropped }
end

function culprit.link_is_slow(ctx, how)
	local evidence, seen, links = {}, {}, ctx.state.links
	for _, direction in ipairs { "out", "in" } do
		if ctx.params.direction == direction or ctx.params.direction == "both" then
			local sum, why = passed_since(links, direction, seen)
			if sum then evidence[direction], why = is_slow(sum, how) end
			if why then return nil, ("direction '%s': %s"):format(direction, why) end
		end
	end
	for i, link in ipairs(links) do link.was = seen[i] end
	return evidence
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

-- For verify: zeros have arrived since the last call. Reads of the taker's own start-up do not count.
function culprit.zeros_arrive(ctx)
	local first = not ctx.state.rchar
	local arrived, why = culprit.growth(ctx, ctx.state.taker, "rchar", 65536)
	if not arrived then return nil, why .. "; its port may be in use" end
	if first then return nil, "seen once" end
	return { received_bytes = arrived }
end

-- For check: the inventory has a host that is neither server nor client.
function culprit.has_outsider(ctx)
	if ctx.outsiders[1] then return true end
	return nil, "the inventory names no outsider, a host that is neither server nor client"
end

-- A client's file in the run's folder, and the command that makes that folder.
function culprit.file(ctx, client, what)
	return ("%s/%s/%s.%s"):format(client.mount, ctx.run, what, client.name)
end

function culprit.make_folder(ctx, client)
	return { "mkdir", "-p", client.mount .. "/" .. ctx.run }
end

-- Parameters of the dd workloads.
culprit.dd_params = {
	per_server = { default = "4MiB", unit = "bytes", min = "4KiB", max = "64MiB",
	               help = "bytes of a record for each server" },
	records    = { default = 8, unit = "number", min = 1, max = 1000000, integer = true,
	               help = "records per file and pass; then it starts again" },
	direct     = { default = 1, unit = "number", min = 0, max = 1, integer = true,
	               help = "1: O_DIRECT, which bypasses the client's page cache; 0: use the cache" },
	jobs       = { default = 1, unit = "number", min = 1, max = 64, integer = true,
	               help = "parallel dd programs on a client, each with a separate file" },
}

local function direct(ctx)
	return ctx.params.direct ~= 0 and not culprit.lacks(ctx, "direct I/O")
end

-- Runs one dd per file and prints each one's output in one piece. Ends when the last dd has ended.
local PARALLEL = [[
side=$1 file=$2 jobs=$3
shift 3
echo "$jobs programs at a time"
pids=
while [ "$jobs" -gt 0 ]; do
	{ said=$(dd "$side=$file.$jobs" "$@" 2>&1); code=$?; printf '%s\n' "$said"; exit $code; } &
	pids="$pids $!"
	jobs=$((jobs - 1))
done
code=0
for pid in $pids; do wait "$pid" || code=$?; done
exit $code
]]

-- dd, in records that span all servers: reads ("if") or writes ("of") one file, or several in parallel.
function culprit.dd(ctx, side, file, ...)
	local jobs, size = ctx.params.jobs or 1, "bs=" .. ctx.params.per_server * #ctx.servers
	local other = side == "if" and "of=/dev/null" or "if=/dev/zero"
	if jobs == 1 then return { "dd", side .. "=" .. file, other, size, ... } end
	return { "sh", "-c", PARALLEL, "sh", side, file, ("%d"):format(jobs), other, size, ... }
end

-- dd's operand ("iflag", "oflag") for direct I/O, or for I/O that leaves no pages in the client's cache.
function culprit.dd_flag(ctx, side)
	return side .. (direct(ctx) and "=direct" or "=nocache")
end

-- dd's operand for writing without truncating. Without direct I/O, a pass ends when its data has left the
-- client.
function culprit.dd_conversion(ctx)
	return direct(ctx) and "conv=notrunc" or "conv=notrunc,fsync"
end

-- The files of a dd workload, one per job.
function culprit.dd_files(ctx, file)
	local files = {}
	if (ctx.params.jobs or 1) == 1 then return { file } end
	for i = 1, ctx.params.jobs do files[i] = ("%s.%d"):format(file, i) end
	return files
end

-- dd's own figures, one line per pass: "33554432 bytes (34 MB, 32 MiB) copied, 2.1 s, 16 MB/s". The seconds
-- of parallel programs overlap.
function culprit.dd_result(output)
	local bytes, seconds = 0, 0
	local jobs = tonumber(output:match("^(%d+) programs at a time\n") or 1)
	for b, s in output:gmatch("(%d+) bytes[^\n]- copied, ([%d.e-]+) s") do
		bytes, seconds = bytes + tonumber(b), seconds + tonumber(s) / jobs
	end
	if seconds == 0 then return nil, "dd reported no figures" end
	return { bytes = bytes, seconds = seconds, bytes_per_second = bytes / seconds }
end

-- The file that ddw and ddr share: the first of them to be prepared writes it. Written through the page
-- cache, one request at a time: under direct I/O, GlusterFS 10.3 may look up a new shard before its brick has
-- named it, and then retries forever.
function culprit.dd_prepare(ctx, client)
	local file = culprit.file(ctx, client, "dd")
	local key = ("%s %d %d"):format(file, ctx.params.per_server * ctx.params.records, ctx.params.jobs or 1)
	if ctx.shared[key] then return {} end
	ctx.shared[key] = true
	return { culprit.make_folder(ctx, client),
	         culprit.dd(ctx, "of", file, "count=" .. ctx.params.records, "conv=notrunc,fsync") }
end

-- Parameters of the IOzone workloads.
culprit.iozone_params = {
	file   = { default = "32MiB", unit = "bytes", min = "64KiB", max = "1TiB", integer = true,
	           help = "size of the file; a multiple of 'record'" },
	record = { default = "16MiB", unit = "bytes", min = "4KiB", max = "16MiB", integer = true,
	           help = "size of a record; a power of two" },
	direct = { default = 1, unit = "number", min = 0, max = 1, integer = true,
	           help = "1: O_DIRECT, which bypasses the client's page cache; 0: for mounts that refuse it" },
}

-- IOzone's command for one of its tests ("0": write and rewrite, "1": read and reread); keeps the file (-w).
function culprit.iozone(ctx, file, test)
	local p = ctx.params
	local argv = { "iozone", "-i", test, "-w", "-s", p.file // 1024 .. "k", "-r", p.record // 1024 .. "k", "-f", file }
	if direct(ctx) then argv[#argv + 1] = "-I" end
	return argv
end

-- For prepare: makes the run's folder, then runs the given commands.
function culprit.iozone_prepare(ctx, client, ...)
	if ctx.params.file % ctx.params.record ~= 0 then error("iozone: 'file' must be a multiple of 'record'", 0) end
	return { culprit.make_folder(ctx, client), ... }
end

-- IOzone's report, one line per pass: kB, record size in kB, then kB/s of the first and the second half of
-- the test. An interrupted pass has fewer columns. 'verb' is "read" or "write".
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
