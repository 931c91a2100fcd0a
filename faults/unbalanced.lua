-- The unbalanced server of Dinh 2009 (section 6.3.2): its processors are busy with something else, and 200 MB
-- of its memory are left free. cpu-hog and memory-hog are its halves.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary  = "processors of the victim are kept busy, and its memory is taken",
	resource = "cpu",
	params   = culprit.memory_params,
	check    = culprit.can_take_memory,

	-- Memory first: a busy node takes long to touch it.
	inject = function(ctx)
		culprit.take_memory(ctx)
		culprit.take_processors(ctx, 0)
	end,

	verify = function(ctx)
		local memory, why = culprit.memory_taken(ctx)
		if not memory then return nil, why end
		local processors, reason = culprit.processors_taken(ctx)
		if not processors then return nil, reason end
		for key, value in pairs(memory) do processors[key] = value end
		return processors
	end,

	verify_timeout = "30s",
}
