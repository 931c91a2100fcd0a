---@meta
-- What a detector is and what it can call. This is the manual; ci/tests/detector_test.c
-- holds it against what the program registers, both ways. Besides this, a detector has Lua's
-- string, table, math (without random) and utf8, and assert, error, ipairs, next, pairs, pcall, rawequal,
-- rawget, rawlen, select, tonumber, tostring, type, xpcall.

--- A detector file returns one of these. Nothing else may be in the table.
---@class culprit.Detector
---@field name string
---@field summary string one line
---@field params? table<string, culprit.DetectorParam>
---@field train? fun(runs: culprit.Run[], params: table): table fault-free runs -> model (plain data, named entries)
---@field diagnose fun(run: culprit.Run, model: table, params: table): culprit.Verdict[]

--- A parameter of a detector, as the scenario may set it. The function gets its value in base units.
---@class culprit.DetectorParam
---@field default number|string|boolean a number, or a quantity in quotes ("5s") where there is a unit
---@field unit? "number"|"bytes"|"seconds"|"percent"|"bytes_per_second"
---@field min? number|string
---@field max? number|string
---@field integer? boolean
---@field help string

--- What was measured in one run.
---@class culprit.Run
---@field id string opaque
---@field seconds integer length of every vec below
---@field servers string[] their names, or aliases; the same ones in every run
---@field metrics string[] "dread", "dwrite", "nsread", "ncread"
---@field series table<string, table<string, culprit.Series>> series[metric][server]

--- One metric of one server, an element a second.
---@class culprit.Series
---@field mean culprit.Vec seconds; NaN where there is no sample
---@field count culprit.Vec samples; 0 where there is none
---@field max culprit.Vec seconds; NaN where there is no sample
---@field bytes culprit.Vec 0 where there is no sample

--- What a detector says of one metric. At most one a metric; a verdict on "any" is
--- formed from the others (their union) unless the detector gives it.
---@class culprit.Verdict
---@field metric "dread"|"dwrite"|"nsread"|"ncread"|"any"
---@field indicted? string[] servers; none: nobody is guilty
---@field abstain? boolean it cannot tell; then nobody is indicted
---@field reason? string why it abstains
---@field evidence? table plain data: numbers, strings, booleans, tables; no NaN

--- Numbers, one a second. NaN means no sample. + - * / and unary minus work element by element,
--- with another vec of the same length or with a number, and pass NaN on; #v is the length; v[i] reads and
--- writes, from 1. The methods look at the finite elements only and give NaN where there is none.
---@class culprit.Vec
---@field [integer] number
---@operator add(culprit.Vec|number): culprit.Vec
---@operator sub(culprit.Vec|number): culprit.Vec
---@operator mul(culprit.Vec|number): culprit.Vec
---@operator div(culprit.Vec|number): culprit.Vec
---@operator unm: culprit.Vec
---@operator len: integer
local Vec = {}

--- Absolute values.
---@return culprit.Vec
function Vec:abs() end

--- How many elements are above a limit.
---@param limit number
---@return integer
function Vec:above(limit) end

--- How many elements are finite.
---@return integer
function Vec:count() end

--- Natural logarithms; NaN for what is not positive.
---@return culprit.Vec
function Vec:log() end

--- The largest element and its index (nil if there is none).
---@return number
---@return integer?
function Vec:max() end

---@return number
function Vec:mean() end

---@return number
function Vec:median() end

--- The smallest element and its index (nil if there is none).
---@return number
---@return integer?
function Vec:min() end

--- Quantile q, 0 to 1, interpolated.
---@param q number
---@return number
function Vec:quantile(q) end

--- Mean over the last 'width' elements; NaN where fewer than 'least' (default: width) are finite.
---@param width integer
---@param least? integer
---@return culprit.Vec
function Vec:rolling_mean(width, least) end

--- Median over the last 'width' elements; NaN where fewer than 'least' (default: width) are finite.
---@param width integer
---@param least? integer
---@return culprit.Vec
function Vec:rolling_median(width, least) end

--- Elements from .. to (default: the last), both included.
---@param from integer
---@param to? integer
---@return culprit.Vec
function Vec:slice(from, to) end

---@return number
function Vec:sum() end

vec = {}

--- Element by element, the median over several vecs of one length; NaN where fewer than 'least'
--- (default 1) are finite.
---@param list culprit.Vec[]
---@param least? integer
---@return culprit.Vec
function vec.median(list, least) end

--- A vec of n elements, all 'value' (default NaN).
---@param n integer
---@param value? number
---@return culprit.Vec
function vec.new(n, value) end

--- A vec of the numbers in a list.
---@param list number[]
---@return culprit.Vec
function vec.of(list) end

--- Element by element, in how many of several vecs it is finite.
---@param list culprit.Vec[]
---@return culprit.Vec
function vec.present(list) end
