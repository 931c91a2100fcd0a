-- A link that has negotiated down, or a switch port that is shared: a limited rate is left between the victim
-- and the other servers and the clients. Packets wait in a queue, and are dropped where that is full, as in a router. It is
-- done as net-delay is, but all on the victim, whose link its peers share.

local culprit = require "culprit"

local function asked(ctx) return { rate = ctx.params.rate, buffer_s = ctx.params.buffer } end

---@type culprit.Fault
return {
	summary  = "the victim's link to its peers is slower",
	resource = "network/rate",
	needs    = "nftables or iptables, with NFQUEUE",
	params   = {
		rate      = { default = "10Mbit/s", unit = "bytes_per_second", min = "512kbit/s", max = "10Gbit/s",
		              help = "what passes at most, in each direction" },
		buffer    = { default = "50ms", unit = "seconds", min = "1ms", max = "5s",
		              help = "length of the queue: a packet that would wait longer is dropped; ten always have room" },
		direction = { default = "both", choices = "both|in|out", help = "packets to the victim, from it, or both" },
	},

	check  = function(ctx) return culprit.can_slow_link(ctx, asked(ctx)) end,
	inject = function(ctx) culprit.slow_link(ctx, asked(ctx)) end,
	verify = function(ctx) return culprit.link_is_slow(ctx, { rate = ctx.params.rate }) end,
}
