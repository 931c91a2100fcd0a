-- A look-alike: one client makes and removes empty files as fast as it can, as a build or an unpacked archive does. All
-- servers have more to do, some of them more than others, and all are healthy.

local culprit = require "culprit"

-- A byte for each file goes to /dev/null, so that the progress can be seen.
local STORM = [[
mkdir "$1" || exit
while :; do
	i=0
	while [ $i -lt 50 ]; do : >"$1/$i" && printf . >/dev/null || exit; i=$((i + 1)); done
	rm -f "$1"/* || exit
done
]]

---@type culprit.Fault
return {
	summary   = "a client makes and removes empty files as fast as it can",
	resource  = "cpu",
	lookalike = true,
	params    = {
		processes = { default = 1, integer = true, min = 1, max = 64, help = "processes that do so, each in its own folder" },
	},

	check     = culprit.is_mounted,

	inject = function(ctx)
		local folder = culprit.folder_of_client(ctx, "culprit-storm-" .. ctx.run)
		ctx.state.storms = {}
		for i = 1, ctx.params.processes do
			ctx.state.storms["process " .. i] = ctx.clients[1]:process { argv = { "sh", "-c", STORM, "sh", folder .. "/" .. i } }
		end
	end,

	-- By effect: each has made files since the last look.
	verify = function(ctx)
		local files, why = culprit.all_grow(ctx, ctx.state.storms, "wchar")
		return files and { files = files }, why
	end,
}
