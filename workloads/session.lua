-- A whole client session, like pvfs2-ping, with which Kasick et al. 2009 train (section 7): every kind of
-- operation that an application may ask of the file system, by standard programs, repeatedly. It is meant
-- for training: it shows which calls fail on servers when nothing is wrong.

local script = [[
set -e
mkdir "$1"
ls -la "$1" >/dev/null
printf 'hello\n' >"$1/a"
cat "$1/a" >/dev/null
dd if=/dev/zero of="$1/large" bs=1M count=9 oflag=direct 2>/dev/null
dd if="$1/large" of=/dev/null bs=1M iflag=direct 2>/dev/null
stat "$1/a" "$1/large" >/dev/null
test ! -e "$1/none"
printf 'more\n' >>"$1/a"
chmod 600 "$1/a"
touch "$1/a"
ln "$1/a" "$1/b"
ln -s a "$1/c"
readlink "$1/c" >/dev/null
mv "$1/b" "$1/d"
truncate -s 5000000 "$1/large"
truncate -s 0 "$1/a"
mkdir "$1/sub"
cp "$1/a" "$1/sub/e"
mv "$1/sub/e" "$1/e"
sync -f "$1/e"
df "$1" >/dev/null
ls -la "$1" >/dev/null
rmdir "$1/sub"
rm "$1/a" "$1/c" "$1/d" "$1/e" "$1/large"
rmdir "$1"
echo "session"
]]

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
		return { argv = { "sh", "-c", script, "session",
			("%s/%s/session.%s.%d"):format(client.mount, ctx.run, client.name, ctx.shared.session) }, loop = not ctx.once }
	end,

	result = function(output)
		local n = select(2, output:gsub("session\n", ""))
		if n == 0 then return nil, "no session was completed" end
		return { sessions = n }
	end,
}
