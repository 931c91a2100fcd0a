-- A server is short of memory, so that its caches shrink (Dinh 2009, section 6.3.2, the unbalanced
-- experiment: 200 MB of one node left free). It takes nothing that another node needs.

local culprit = require "culprit"

---@type culprit.Fault
return {
	summary        = "memory of the victim is taken",
	resource       = "memory",
	params         = culprit.memory_params,
	check          = culprit.can_take_memory,
	inject         = culprit.take_memory,
	verify         = culprit.memory_taken,
	verify_timeout = "30s",
}
