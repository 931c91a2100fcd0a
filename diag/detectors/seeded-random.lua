-- seeded-random: a null detector that guesses. In a share 'indict' of the runs it indicts one server,
-- each with the same probability. Its verdict is a function of the seed and the run's id. The seed must
-- differ from the plan's, from which victims are drawn.

-- One step of splitmix64. Returns its high 53 bits as a number in [0, 1), and the next state.
local function uniform(state)
	local z = state + 0x9E3779B97F4A7C15
	z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ~ (z >> 27)) * 0x94D049BB133111EB
	z = z ~ (z >> 31)
	return (z >> 11) * 2.0 ^ -53, z
end

---@type culprit.Detector
return {
	name = "seeded-random",
	summary = "null detector: indicts a random server, or none",
	params = {
		seed = { default = 1, integer = true, help = "seed of the random numbers; must differ from the plan's" },
		indict = { default = "50%", unit = "percent", min = 0, max = "100%", help = "probability of indicting a server" },
	},
	diagnose = function(run, _, params)
		local state = params.seed
		for i = 1, #run.id do
			state = (state ~ run.id:byte(i)) * 0x100000001B3 -- FNV-1a
		end
		local guilty, pick
		guilty, state = uniform(state)
		pick = uniform(state)
		if guilty * 100 >= params.indict then
			return { { metric = "any", indicted = {} } }
		end
		return { { metric = "any", indicted = { run.servers[math.floor(pick * #run.servers) + 1] } } }
	end,
}
