-- dd reads back one file a client that was written before (001, section 5), past the page cache.
-- A record spans all servers: 4 MB for each, as in 001 (40 MB for ten).

---@type culprit.Workload
return {
	summary = "dd reads one prepared file a client, in records that span all servers",
	params  = {
		per_server = { default = "4MiB", unit = "bytes", min = "4KiB", max = "64MiB", help = "share of a record for each server" },
		records    = { default = 8, unit = "number", min = 1, max = 1000000, integer = true, help = "records in the file; it is then read again" },
	},
	needs = { "dd" },

	prepare = function(ctx, client)
		local record = ctx.params.per_server * #ctx.servers
		return {
			{ "mkdir", "-p", client.mount .. "/" .. ctx.run },
			{ "dd", "if=/dev/zero", "of=" .. client.mount .. "/" .. ctx.run .. "/ddr." .. client.name,
			  "bs=" .. record, "count=" .. ctx.params.records, "oflag=direct", "conv=notrunc" },
		}
	end,

	command = function(ctx, client)
		local record = ctx.params.per_server * #ctx.servers
		return {
			argv = { "dd", "if=" .. client.mount .. "/" .. ctx.run .. "/ddr." .. client.name, "of=/dev/null",
			         "bs=" .. record, "iflag=direct" },
			loop = true,
		}
	end,

	result = function(output)
		local bytes, seconds = 0, 0
		for b, s in output:gmatch("(%d+) bytes[^\n]- copied, ([%d.e-]+) s") do
			bytes, seconds = bytes + tonumber(b), seconds + tonumber(s)
		end
		if seconds == 0 then return nil, "dd reported no figures" end
		return { bytes = bytes, seconds = seconds, bytes_per_second = bytes / seconds }
	end,
}
