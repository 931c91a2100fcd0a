-- The custom workload of Kasick et al. 2009, section 5: open a new file, write one null byte, wait half a
-- second, and repeat. So the next operation after a fault is an open, not a write. One shell does it with
-- built-ins, so that one process makes every call; it prints failures and goes on.

local script = [[
i=0
while [ $i -ne "$3" ]; do
	i=$((i + 1))
	if printf '\0' 2>&1 >"$1.$i"; then echo "ok"; else echo "failed"; fi
	sleep "$2"
done
]]

---@type culprit.Workload
return {
	summary = "a new file with one null byte every half second",
	params  = {
		pause = { default = "0.5s", unit = "seconds", min = "0.01s", max = "60s", help = "pause between two files" },
		files = { default = 20, unit = "number", min = 1, max = 1000000, integer = true,
		          help = "files per client, in cells without a fixed length" },
	},
	needs = { "sh", "sleep" },

	prepare = function(ctx, client)
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run .. "/create" } }
	end,

	-- Every start uses new names, so every open creates a file.
	command = function(ctx, client)
		ctx.shared.create = (ctx.shared.create or 0) + 1
		local files = ("%s/%s/create/%s.%d"):format(client.mount, ctx.run, client.name, ctx.shared.create)
		return { argv = { "sh", "-c", script, "create", files, tostring(ctx.params.pause),
		                  tostring(ctx.once and ctx.params.files or -1) } }
	end,

	result = function(output)
		local made, failed = select(2, output:gsub("ok\n", "")), select(2, output:gsub("failed\n", ""))
		if made + failed == 0 then return nil, "the program tried no file" end
		return { files = made, failed = failed }
	end,
}
