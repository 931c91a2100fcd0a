-- A captured application, done again on dummy files: its calls in their order, what it computed between them,
-- and who waited for whom (Mesnier et al. 2007). 'culprit capture' makes the trace. The application's ranks are
-- dealt to the clients in blocks; each client has one process with a thread for each of theirs. Between clients
-- progress travels over the harness's own SSH connections.

---@param ctx culprit.Context
---@param client culprit.Node
local function words(ctx, client, what)
	local p = ctx.params
	return { "replay", "--root", ("%s/%s/replay-%s"):format(client.mount, ctx.run, ctx.files.trace), "--do", what,
	         "--mode", p.mode, "--speed", ("%g"):format(p.speed), "--cpu", ("%g"):format(p.cpu / 100),
	         "--stall", ("%g"):format(p.stall), "--linked", what == "prepare" and "no" or "yes",
	         client.folder .. "/" .. ctx.files.trace }
end

---@type culprit.Workload
return {
	summary = "a captured application done again: its calls, computing and waiting",
	params  = {
		trace = { default = "pseudo", help = "file of 'culprit capture', relative to the scenario, or the name of a trace of "
		          .. "culprit's own (workloads/traces)" },
		mode  = { default = "causal", help = "causal; afap: without computing and waiting; think: pauses as long as "
		          .. "captured; wall: calls at the times as captured" },
		speed = { default = 1, unit = "number", min = 0.001, max = 1000000,
		          help = "computing and pauses are divided by it" },
		cpu   = { default = "100%", unit = "percent", min = "0%", max = "100%",
		          help = "this share of the computing keeps a processor busy, the rest sleeps" },
		stall = { default = "60s", unit = "seconds", min = "1s", max = "1h",
		          help = "a replay in which nothing goes on for so long ends with an error" },
	},

	files = function(params)
		if params.trace == "" then error("the workload 'replay' needs a trace: { \"replay\", trace = \"FILE\" }", 0) end
		local modes = { causal = true, afap = true, think = true, wall = true }
		if not modes[params.mode] then
			error(("the mode of a replay is causal, afap, think or wall, not '%s'"):format(params.mode), 0)
		end
		return { trace = params.trace }
	end,

	-- One client makes all files.
	prepare = function(ctx, client)
		if client.name ~= ctx.clients[1].name then return {} end
		return { { argv = words(ctx, client, "prepare"), self = true } }
	end,

	command = function(ctx, client)
		return { argv = words(ctx, client, ctx.once and "1" or "loop"), self = true, link = true }
	end,

	-- A line for each pass. The last pass of a cell is cut short: its bytes count, its time does not.
	result = function(output)
		if not output:find('{"replay":', 1, true) then return nil, "the replay did not begin" end
		local sum = { passes = 0, seconds = 0, bytes = 0, ops = 0, waited_seconds = 0, errors = 0, short = 0 }
		for line in output:gmatch('{"pass":[^\n]*') do
			local function number(key) return tonumber(line:match('"' .. key .. '":([%d.eE+-]+)')) or 0 end
			if line:find('"whole":true', 1, true) then
				sum.passes = sum.passes + 1
				sum.seconds = sum.seconds + number("seconds")
			end
			sum.bytes = sum.bytes + number("read_bytes") + number("written_bytes")
			sum.ops = sum.ops + number("ops")
			sum.waited_seconds = sum.waited_seconds + number("waited_s")
			sum.short = sum.short + number("short")
			for n in (line:match('"errors":(%b{})') or ""):gmatch(":(%d+)") do sum.errors = sum.errors + tonumber(n) end
		end
		if sum.passes > 0 then sum.seconds_per_pass = sum.seconds / sum.passes end
		return sum
	end,
}
