-- The pattern of ROMIO's mpi-io-test, with which Dinh 2009 loads PVFS (section 6.3: nine processes on five
-- clients write ten times 10 MB each, without collective calls). Process r runs on client r modulo the
-- number of clients; its k-th block lies in a shared file at block k * processes + r. There is no MPI: the
-- processes of a client start together, and nothing waits for another client's.
--
-- Through the mount each block is one write(2), which the kernel cuts into requests of the mount's size. On
-- OrangeFS with 'orangefs' its own library moves each block as a whole, as ROMIO's driver for PVFS does;
-- then each process has a file of its own, which it makes anew in each pass: that program writes new files
-- only, from their beginning.

local culprit = require "culprit"

-- $1 blocks a process, $2 bytes of a block, $3 processes in all, $4 file, $5 library, $6 mount; then the
-- ranks of this client. Each process's words come in one piece; the script ends when its last process has
-- ended.
local SCRIPT = [[
count=$1 block=$2 all=$3 file=$4 library=$5 mount=$6
shift 6
through_mount() {
	k=0
	while [ "$k" -lt "$count" ]; do
		said=$(dd if=/dev/zero of="$file" bs="$block" count=1 seek=$((k * all + $1)) conv=notrunc 2>&1) || {
			code=$?
			printf '%s\n' "$said"
			return $code
		}
		printf '%s\n' "$said"
		k=$((k + 1))
	done
}
through_library() {
	rm -f "$file.$1" || return
	said=$("$library" -t -b "$block" "$zeros" "$file.$1" 2>&1)
	code=$?
	printf '%s\n' "$said"
	return $code
}
way=through_mount
if [ -n "$library" ]; then
	way=through_library
	own=$(mktemp -d) || exit
	trap 'rm -rf "$own"' EXIT
	trap 'exit 130' INT TERM
	zeros=$own/zeros
	truncate -s $((count * block)) "$zeros" || exit
	volume=
	while read -r source point rest; do
		case $source in *tcp://*) [ "$point" != "$mount" ] || volume=tcp://${source##*tcp://} ;; esac
	done </proc/mounts
	[ -n "$volume" ] || { echo "mpi-io: $mount is no mount of OrangeFS"; exit 1; }
	echo "$volume $mount pvfs2 defaults 0 0" >"$own/pvfs2tab" || exit
	export PVFS2TAB_FILE="$own/pvfs2tab"
fi
echo "$# processes at a time"
pids=
for rank; do
	$way "$rank" &
	pids="$pids $!"
done
code=0
for pid in $pids; do wait "$pid" || code=$?; done
exit $code
]]

-- The processes of a client, by number.
local function ranks(ctx, client)
	local mine = {}
	for i, c in ipairs(ctx.clients) do
		if c.name == client.name then
			for r = i - 1, ctx.params.processes - 1, #ctx.clients do mine[#mine + 1] = ("%d"):format(r) end
		end
	end
	return mine
end

local function library(ctx)
	return ctx.file_system.type == "orangefs" and ctx.params.orangefs or ""
end

local function file(ctx, client)
	return ("%s/%s/mpi-io"):format(client.mount, ctx.run)
end

---@type culprit.Workload
return {
	summary = "processes on all clients write one shared file block by block, as mpi-io-test does",
	params  = {
		processes = { default = 9, unit = "number", min = 1, max = 10000, integer = true,
		              help = "on all clients together" },
		block     = { default = "10MiB", unit = "bytes", min = "4KiB", max = "1GiB", integer = true,
		              help = "bytes that a process writes at once" },
		blocks    = { default = 10, unit = "number", min = 1, max = 1000000, integer = true,
		              help = "blocks of a process, a pass; then it writes over them" },
		orangefs  = { default = "", help = "path of OrangeFS's pvfs2-cp, which writes the blocks there; '', or another "
		              .. "file system: through the mount" },
	},
	needs = { "sh", "dd", "mktemp", "truncate" },

	prepare = function(ctx, client)
		return { culprit.make_folder(ctx, client) }
	end,

	command = function(ctx, client)
		local p, mine = ctx.params, ranks(ctx, client)
		if #mine == 0 then return { argv = { "sleep", ctx.once and "0" or "infinity" } } end
		return { argv = { "sh", "-c", SCRIPT, "mpi-io", ("%d"):format(p.blocks), ("%d"):format(p.block),
		                  ("%d"):format(p.processes), file(ctx, client), library(ctx), client.mount,
		                  table.unpack(mine) }, loop = not ctx.once }
	end,

	-- Every attempt begins with new files: writing over a file is less work than making it.
	cleanup = function(ctx, client)
		local files = { library(ctx) == "" and file(ctx, client) or nil }
		for _, rank in ipairs(library(ctx) ~= "" and ranks(ctx, client) or {}) do
			files[#files + 1] = file(ctx, client) .. "." .. rank
		end
		if #files > 0 then return { "rm", "-f", table.unpack(files) } end
	end,

	-- dd: "10485760 bytes (10 MB, 10 MiB) copied, 2.1 s, 5 MB/s", a block; pvfs2-cp: "Wrote 104857600 bytes in
	-- 21.3 seconds. 4.9 MB/seconds", a pass. Seconds of processes that run at a time pass together.
	result = function(output)
		local bytes, seconds = 0, 0
		local jobs = tonumber(output:match("^(%d+) processes at a time\n"))
		if not jobs then return nil, "no process began" end
		for _, pattern in ipairs { "(%d+) bytes[^\n]- copied, ([%d.e-]+) s", "Wrote (%d+) bytes in ([%d.]+) seconds" } do
			for b, s in output:gmatch(pattern) do
				bytes, seconds = bytes + tonumber(b), seconds + tonumber(s) / jobs
			end
		end
		return { processes = jobs, bytes = bytes, seconds = seconds,
		         bytes_per_second = seconds > 0 and bytes / seconds or nil }
	end,
}
