-- The client workload of 'culprit doctor --learn-errnos': small loops in parallel, so that a waiting loop does
-- not keep the others from calling. Each continues after failures. They write less than a slow disk can take, so
-- that no sync waits for a backlog and the workload ends on request.

-- $1: the client's folder; $2: the file that it reads.
local script = [[
# Only the main shell gets the signal that ends a workload: the loops look whether it is still their parent.
goes_on() { sleep 0.3; read -r _ _ _ parent _ </proc/self/stat && [ "$parent" = $$ ]; }
writes() { # new files, each written and synced
	i=0
	while goes_on; do i=$((i + 1)); dd if=/dev/zero of="$1/w$i" bs=64k count=8 conv=fsync status=none; done
}
rewrites() { # existing files: creates none
	while goes_on; do
		for k in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of="$1/r$k" bs=32k count=1 conv=notrunc status=none; done
	done
}
reads() {
	while goes_on; do dd if="$2" of=/dev/null bs=64k iflag=nocache status=none; done
}
names() { # folders and empty files, some of which are removed again
	i=0
	while goes_on; do
		i=$((i + 1))
		mkdir "$1/d$i" && : >"$1/d$i/a" && mv "$1/d$i/a" "$1/d$i/b" && ls -l "$1/d$i" >/dev/null && rm "$1/d$i/b"
		: >"$1/e$i"
	done
}
mkdir -p "$1"
for k in 1 2 3 4 5 6 7 8; do : >"$1/r$k"; done
writes "$@" & rewrites "$@" & reads "$@" & names "$@" &
wait
]]

---@type culprit.Workload
return {
	summary = "files written, synced, written again, read, listed and renamed, by four loops",
	needs   = { "sh", "dd", "sleep", "ls", "mv", "rm", "mkdir" },

	prepare = function(ctx, client)
		local folder = client.mount .. "/" .. ctx.run
		return {
			{ "mkdir", "-p", folder },
			{ "dd", "if=/dev/zero", ("of=%s/%s"):format(folder, client.name), "bs=256k", "count=32", "conv=fsync" },
		}
	end,

	command = function(ctx, client)
		local folder = client.mount .. "/" .. ctx.run
		return { argv = { "sh", "-c", script, "calls", ("%s/%s.%s"):format(folder, client.name, ctx.attempt),
		                  ("%s/%s"):format(folder, client.name) } }
	end,

	-- Frees the space for the next attempt.
	cleanup = function(ctx, client)
		return { "rm", "-rf", ("%s/%s/%s.%s"):format(client.mount, ctx.run, client.name, ctx.attempt) }
	end,

	result = function() return { loops = 4 } end,
}
