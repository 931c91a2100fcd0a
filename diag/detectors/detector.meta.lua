---@meta
-- What a detector is and what it can call. This is the manual; ci/tests/judge/detector_test.c
-- holds it against what the program registers, both ways. Every call begins in a fresh state: nothing is carried from one
-- run to the next but the model. Besides this, a detector has Lua's
-- string, table, math (without random) and utf8, and assert, error, ipairs, next, pairs, pcall, rawequal,
-- rawget, rawlen, select, tonumber, tostring, type, xpcall.

--- A detector file returns one of these. Nothing else may be in the table.
---@class culprit.Detector
---@field name string
---@field summary string one line
---@field params? table<string, culprit.DetectorParam>
---@field events? boolean it looks at run.events: calls must then be traced one by one (sums in the kernel have none)
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
---@field metrics string[] service times, and what else was sampled in this run, which may be less than in another:
--- readings ("disk_queue_s", "tcp_retransmitted_segments": a server's own) and what its clients' ends say of it
--- ("client_tcp_rtt_s"); 'culprit list metrics' has all. Of a CSV file, those that are in it
---@field service_times string[] those of metrics that are service times, longer being worse: "dread", "dwrite", "nsread",
--- "ncread", with samples or without; of a CSV file, all whose name is not that of a reading
---@field units table<string, string> "s", "bytes", ... by metric; of a CSV file, of readings only
---@field series table<string, table<string, culprit.Series>> series[metric][server]
---@field events culprit.Event[] in the order of time_s; empty where nothing but metrics is known
---@field file_system culprit.FileSystemErrors

--- One thing that a log says, or a burst of the same thing, no two of it further than 1 s apart (Kasick et al. 2009, section 7). How
--- logs become events is said in diag/derive/events.h. No paths: only what they led to.
---   server-error   calls of a server that failed
---   server-signal  a signal reached a server
---   server-end     a process of a server ended
---   app-error      calls of an application on the mount (or on a path that is not known) that failed
---   app-slow       one such call that took 1 s or longer; of one application the 64 longest
---   link-quiet     nothing moved between a client daemon and a server: 0.5 s or longer while requests have no
---                  answer, 5 s or longer while all have, or while the connection is down
---   link-end       such a connection ended, or could not be made
---@class culprit.Event
---@field kind "server-error"|"server-signal"|"server-end"|"app-error"|"app-slow"|"link-quiet"|"link-end"
---@field server? string server-*, link-*
---@field client? string app-*, link-*; an opaque name
---@field time_s number since the start of the run: end of the first call; app-slow: start of the call; link-quiet: end of
--- the last call that moved data, or of the connection
---@field last_s number end of the last call; link-quiet: of the next one that moved data, or of the log
---@field count integer calls in the burst
---@field call? string "openat"
---@field error? string name of the errno, or "EOF"
---@field place? "storage"|"mount"|"socket"|"memory"|"process"|"path"|"other" what the call was about; "path": one that the
--- log does not hold
---@field longest_s? number service time of the longest of these calls, seconds
---@field open? boolean app-slow: it never returned; link-quiet: it lasted to the end of the log
---@field state? "answered"|"waiting"|"ended" link-quiet
---@field waiting? integer link-quiet: requests without an answer
---@field signal? string "KILL": server-signal, or what ended the server
---@field status? integer server-end: exit code of one that no signal ended

--- What the file system's adapter says of errors.
---@class culprit.FileSystemErrors
---@field lost_errnos string[] errnos by which an application learns that a server is lost; empty: not known
---@field errno_map table<string, string[]> errno of a server -> what it may become on the way to the application, if not itself

--- One metric of one server, an element a second. Service times: of the calls or messages. Readings: of the devices,
--- of the clients (so sum is over the clients, and max is the largest client's). A vec is made when it is asked for, so
--- what is written to one does not last.
---@class culprit.Series
---@field mean culprit.Vec in the metric's unit; NaN where there is no sample
---@field sum culprit.Vec mean * count
---@field count culprit.Vec calls, messages, devices or clients; 0 where there is no sample
---@field max culprit.Vec in the metric's unit; NaN where there is no sample
---@field bytes culprit.Vec that those calls or messages moved; 0 where there is no sample, and of readings

--- What a detector says of one metric. At most one a metric; a verdict on "any" is
--- formed from the others (their union) unless the detector gives it.
---@class culprit.Verdict
---@field metric string one of run.metrics, or "any"
---@field indicted? string[] servers; none: nobody is guilty
---@field abstain? boolean it cannot tell; then nobody is indicted
---@field reason? string why it abstains
---@field time_s? number|table<string, number> seconds since the start of the run at which each indicted server would first
--- have been indicted; a number stands for all of them. Scored as the delay from the fault's onset
---@field resource? string what is wrong with them: "disk" (slow), "storage" (full, read-only), "network", "cpu", "memory", "files"
--- (their limits), "service" (the process); with a cause after a slash, if it can be told: "network/hog",
--- "network/receive-loss", "network/send-loss". Scored beside the right server; nothing is lost by not naming any
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

--- Elements below low become low, those above high become high.
---@param low number
---@param high? number default: no limit
---@return culprit.Vec
function Vec:clamp(low, high) end

--- How many elements are finite.
---@return integer
function Vec:count() end

--- 'value' for elements that are not finite.
---@param value number
---@return culprit.Vec
function Vec:fill(value) end

--- What was so many elements before; in the first ones 'before' (default: NaN).
---@param elements integer
---@param before? number
---@return culprit.Vec
function Vec:lag(elements, before) end

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

--- Sum over the last 'width' elements; NaN where fewer than 'least' (default: width) are finite.
---@param width integer
---@param least? integer
---@return culprit.Vec
function Vec:rolling_sum(width, least) end

--- Elements from .. to (default: the last), both included.
---@param from integer
---@param to? integer
---@return culprit.Vec
function Vec:slice(from, to) end

---@return number
function Vec:sum() end

vec = {}

--- Element by element, the smallest of those of several vecs of one length that are finite.
---@param list culprit.Vec[]
---@return culprit.Vec
function vec.least(list) end

--- Element by element, the log likelihood of k of n with a chance of p each: k ln p + (n - k) ln(1 - p), without the
--- binomial coefficient; 0 ln 0 is 0. Each is a vec or a number, one of them a vec.
---@param k culprit.Vec|number
---@param n culprit.Vec|number
---@param p culprit.Vec|number
---@return culprit.Vec
function vec.likelihood(k, n, p) end

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

--- For each of several vecs of one length, element by element the median over the others; NaN where fewer than
--- 'least' (default 1) of them are finite.
---@param list culprit.Vec[]
---@param least? integer
---@return culprit.Vec[]
function vec.others(list, least) end

--- Element by element, in how many of several vecs it is finite.
---@param list culprit.Vec[]
---@return culprit.Vec
function vec.present(list) end
