-- PostMark (Kasick et al. 2009, section 5): many small files are created, read, appended to and removed, as
-- on a mail server. Metadata-heavy; no write is above 64 kB, so each goes to one server. Settings that are
-- not parameters are PostMark's defaults: equal biases, blocks of 512 bytes, buffered I/O, seed 42. The
-- paper: transactions = 9000, files = 500.

local function folder(ctx, client)
	return ("%s/%s/postmark.%s"):format(client.mount, ctx.run, client.name)
end

local scale = { bytes = 1, kilobytes = 1024, megabytes = 1024 * 1024, gigabytes = 1024 * 1024 * 1024 }

---@type culprit.Workload
return {
	summary = "PostMark: small files made, read, appended to and removed",
	params  = {
		-- Below ten PostMark divides by zero.
		transactions = { default = 400, unit = "number", min = 10, max = 100000000, integer = true,
		                 help = "per pass; each reads or appends, and creates or deletes" },
		files        = { default = 100, unit = "number", min = 1, max = 1000000, integer = true,
		                 help = "files made before the transactions; those left after them are removed" },
		smallest     = { default = "500B", unit = "bytes", min = "1B", max = "64kB", integer = true,
		                 help = "least size of a file" },
		largest      = { default = "10kB", unit = "bytes", min = "1B", max = "64kB", integer = true,
		                 help = "largest size of a file" },
	},
	needs = { "postmark", "find" },
	packages = { postmark = "postmark", find = "findutils" },

	prepare = function(ctx, client)
		return { { "mkdir", "-p", folder(ctx, client) } }
	end,

	command = function(ctx, client)
		local p = ctx.params
		return {
			argv = { "postmark" },
			stdin = ("set location %s\nset number %d\nset transactions %d\nset size %d %d\nrun\nquit\n"):format(
				folder(ctx, client), p.files, p.transactions, p.smallest, math.max(p.smallest, p.largest)),
			loop = not ctx.once,
		}
	end,

	-- An interrupted pass leaves files behind.
	cleanup = function(ctx, client)
		return { "find", folder(ctx, client), "-mindepth", "1", "-delete" }
	end,

	-- PostMark prints one report per pass. It counts whole seconds, at least one.
	result = function(output)
		local sum = { passes = 0, seconds = 0, transaction_seconds = 0, created_files = 0, deleted_files = 0,
		              read_files = 0, appended_files = 0, read_bytes = 0, written_bytes = 0 }
		local transactions = 0
		local function add(key, value) sum[key] = sum[key] + value end
		for report in output:gmatch("\nTime:\n(.-written %([%d.]+ %a+ per second%)\n)") do
			local total = report:match("(%d+) seconds total")
			local part, rate = report:match("(%d+) seconds of transactions %((%d+) per second%)")
			local read, read_unit = report:match("([%d.]+) (%a+) read %(")
			local written, written_unit = report:match("([%d.]+) (%a+) written %(")
			if total and part and scale[read_unit] and scale[written_unit] then
				add("passes", 1)
				add("seconds", tonumber(total))
				add("transaction_seconds", tonumber(part))
				transactions = transactions + part * rate
				for _, what in ipairs { "created", "deleted", "read", "appended" } do
					add(what .. "_files", tonumber(report:match("\n%s*(%d+) " .. what .. " %(") or 0))
				end
				add("read_bytes", read * scale[read_unit])
				add("written_bytes", written * scale[written_unit])
			end
		end
		if not output:find("Creating files", 1, true) then return nil, "postmark did not begin" end
		if sum.passes > 0 then sum.transactions_per_second = transactions / sum.transaction_seconds end
		sum.errors = select(2, output:gsub("Error: ", ""))
		sum.bytes = sum.read_bytes + sum.written_bytes
		return sum
	end,
}
