-- A congested or rerouted path: packets between the victim and the other servers and the clients arrive later, in their order.
-- It needs no netem: where they arrive, the firewall hands them to a queue, where a program of the agent holds each back for
-- its time. If that program dies, packets pass at once, and the attempt is invalid.

local culprit = require "culprit"

local function asked(ctx)
	local p = ctx.params
	return { latency_s = p.latency, jitter_s = p.jitter > 0 and p.jitter or nil }
end

---@type culprit.Fault
return {
	summary  = "packets between the victim and its peers take longer",
	resource = "network/delay",
	needs    = "nftables or iptables, with NFQUEUE",
	params   = {
		latency   = { default = "20ms", unit = "seconds", min = "1ms", max = "2s", help = "added to each packet" },
		jitter    = { default = "0ms", unit = "seconds", max = "2s", at_most = "latency",
		              help = "random part of it, up and down; at most the latency" },
		direction = { default = "out", choices = "both|in|out", help = "packets to the victim, from it, or both" },
	},

	check  = function(ctx) return culprit.can_slow_link(ctx, asked(ctx)) end,
	inject = function(ctx) culprit.slow_link(ctx, asked(ctx)) end,
	verify = function(ctx) return culprit.link_is_slow(ctx, { least_s = ctx.params.latency - ctx.params.jitter }) end,
}
