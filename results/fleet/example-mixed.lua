-- A mixed workload for a long recording: each client reads and writes pieces of its own file at random
-- places, and pauses in between. Load rises and falls over some minutes. The places and pauses of a client
-- are the same in each run.

local culprit = require "culprit"

local script = [[
i=0
while i=$((i + 1)); do
	set -- "$1" "$2" "$3" $(awk -v seed="$2" -v pieces="$3" -v i="$i" 'BEGIN {
		srand(1000003 * seed + 7919 * i)
		rand()
		print (rand() < 0.7 ? "read" : "write"), 32 * int(rand() * pieces), rand() * (1.2 + sin(i / 90))
	}')
	case $4 in
	read) dd if="$1" of=/dev/null bs=128k count=32 skip="$5" iflag=direct 2>/dev/null ;;
	write) dd if=/dev/zero of="$1" bs=128k count=32 seek="$5" oflag=direct conv=notrunc 2>/dev/null ;;
	esac || exit
	echo "$4"
	sleep "$6"
done
]]

---@type culprit.Workload
return {
	summary = "clients read and write pieces of 4 MiB at random places, with pauses",
	params  = {
		pieces = { default = 20, unit = "number", min = 1, max = 10000, integer = true, help = "pieces of a client's file" },
	},
	needs = { "sh", "awk", "dd", "sleep" },

	-- Through the page cache: new files must not be written with O_DIRECT (harness/lab/README.md).
	prepare = function(ctx, client)
		local file = culprit.file(ctx, client, "mixed")
		return {
			culprit.make_folder(ctx, client),
			{ "dd", "if=/dev/zero", "of=" .. file, "bs=1M", ("count=%d"):format(4 * ctx.params.pieces), "conv=fsync" },
		}
	end,

	command = function(ctx, client)
		local seed = client.name:match("%d+$") or "1"
		return { argv = { "sh", "-c", script, "mixed", culprit.file(ctx, client, "mixed"), seed,
		                  ("%d"):format(ctx.params.pieces) } }
	end,

	result = function(output)
		local n = select(2, output:gsub("\n", ""))
		if n == 0 then return nil, "no piece was read or written" end
		return { pieces = n }
	end,
}
