-- A whole client session, like pvfs2-ping, with which Kasick et al. 2009 train (section 7): every kind of
-- operation that an application may ask of the file system, by standard programs, repeatedly. It is meant
-- for training: it shows which calls fail on servers when nothing is wrong.

local culprit = require "culprit"

-- In order: the step's name; its command, in the folder $1; what a file system must not lack for it; and what
-- is done in its place on one that does, so that the later steps find what they need.
local steps = {
	{ "make a folder", 'mkdir "$1"' },
	{ "list it", 'ls -la "$1" >/dev/null' },
	{ "write a small file", [[printf 'hello\n' >"$1/a"]] },
	{ "read it", 'cat "$1/a" >/dev/null' },
	{ "write directly", 'dd if=/dev/zero of="$1/large" bs=1M count=9 oflag=direct status=none', "direct I/O",
	  'dd if=/dev/zero of="$1/large" bs=1M count=9 conv=fsync status=none' },
	{ "read directly", 'dd if="$1/large" of=/dev/null bs=1M iflag=direct status=none', "direct I/O",
	  'dd if="$1/large" of=/dev/null bs=1M status=none' },
	{ "stat", 'stat "$1/a" "$1/large" >/dev/null' },
	{ "look for a file that is not there", 'test ! -e "$1/none"' },
	{ "append", [[printf 'more\n' >>"$1/a"]] },
	{ "change the mode", 'chmod 600 "$1/a"' },
	{ "set the times", 'touch "$1/a"' },
	{ "hard link", 'ln "$1/a" "$1/b"', "hard link", 'cp "$1/a" "$1/b"' },
	{ "symbolic link", 'ln -s a "$1/c"', "symbolic link" },
	{ "read the symbolic link", 'readlink "$1/c" >/dev/null', "symbolic link" },
	{ "rename", 'mv "$1/b" "$1/d"' },
	{ "truncate to a size", 'truncate -s 5000000 "$1/large"', "truncate" },
	{ "truncate to nothing", 'truncate -s 0 "$1/a"', "truncate" },
	{ "make a folder in it", 'mkdir "$1/sub"' },
	{ "copy", 'cp "$1/a" "$1/sub/e"' },
	{ "rename to another folder", 'mv "$1/sub/e" "$1/e"' },
	{ "sync", 'sync -f "$1/e"' },
	{ "ask for the free space", 'df "$1" >/dev/null' },
	{ "list it again", 'ls -la "$1" >/dev/null' },
	{ "remove the inner folder", 'rmdir "$1/sub"' },
	{ "remove the symbolic link", 'rm "$1/c"', "symbolic link" },
	{ "remove files", 'rm "$1/a" "$1/d" "$1/e" "$1/large"' },
	{ "remove the folder", 'rmdir "$1"' },
}

-- One shell does the steps; the first that fails ends it, and is named in the output.
local function script(ctx)
	local lines = {}
	for _, step in ipairs(steps) do
		local name, command, needs, instead = table.unpack(step)
		if needs and culprit.lacks(ctx, needs) then command = instead end
		if command then
			lines[#lines + 1] = ("%s || { echo \"session: '%s' failed\"; exit 1; }"):format(command, name)
		end
	end
	return table.concat(lines, "\n") .. '\necho "session"\n'
end

---@type culprit.Workload
return {
	summary = "a whole client session: make, write, read, list, rename, truncate, remove",
	needs = { "sh", "dd", "stat", "truncate", "mv", "ln", "sync" },

	prepare = function(ctx, client)
		return { { "mkdir", "-p", client.mount .. "/" .. ctx.run } }
	end,

	-- Every start uses a new folder, so that an interrupted session does not disturb the next.
	command = function(ctx, client)
		ctx.shared.session = (ctx.shared.session or 0) + 1
		return { argv = { "sh", "-c", script(ctx), "session",
			("%s/%s/session.%s.%d"):format(client.mount, ctx.run, client.name, ctx.shared.session) }, loop = not ctx.once }
	end,

	result = function(output)
		local n = select(2, output:gsub("session\n", ""))
		if n == 0 then return nil, "no session was completed" end
		return { sessions = n }
	end,
}
