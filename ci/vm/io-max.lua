-- A service's IOWriteBandwidthMax= as an administrator sets it: writes wait above the disk, whose own times stay short.

---@type culprit.Fault
return {
	summary  = "the victim's service may write 1 MB/s",
	resource = "disk",

	check = function(ctx)
		local is = ctx.victim:run { argv = { "systemctl", "is-active", "brick.service" } }
		if is.exit ~= 0 then return nil, "brick.service is " .. is.output end
		return true
	end,

	inject = function(ctx)
		ctx.victim:command {
			argv    = { "systemctl", "set-property", "--runtime", "brick.service", "IOWriteBandwidthMax=/dev/sda 1M" },
			inverse = { "systemctl", "set-property", "--runtime", "brick.service", "IOWriteBandwidthMax=" },
			check   = { "sh", "-c", "systemctl show -p IOWriteBandwidthMax brick.service | grep -q 1000000" },
		}
	end,

	-- By effect: time in which the service waited for its disk.
	verify = function(ctx)
		local out = ctx.victim:run { argv = { "sh", "-c",
			"cat /sys/fs/cgroup/$(systemctl show --value -p ControlGroup brick.service)/io.pressure" } }.output
		local waited = tonumber(out:match("some.-total=(%d+)"))
		if not waited then return nil, "the kernel keeps no pressure of the service: " .. out end
		local before = ctx.state.waited
		ctx.state.waited = waited
		if not before or waited < before + 100000 then return nil, "the service did not wait for its disk" end
		return { pressure_us = waited }
	end,
}
