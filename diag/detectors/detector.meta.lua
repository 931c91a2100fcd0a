---@meta
-- The manual of detectors: what a detector file returns and which functions it can call.
-- ci/tests/judge/detector_test.c checks that it lists exactly what the program provides. Every call of a
-- detector's function starts in a new Lua state; only the model is kept between runs. Besides the functions
-- below, a detector has Lua's string, table, math (without random) and utf8, and assert, error, ipairs, next,
-- pairs, pcall, rawequal, rawget, rawlen, select, tonumber, tostring, type, xpcall.

--- The table that a detector file returns. It has no other keys.
---@class culprit.Detector
---@field name string
---@field summary string one line
---@field params? table<string, culprit.DetectorParam>
---@field events? boolean it uses run.events, so calls must be traced one by one: sums made in the kernel
---hold no events
---@field train? fun(runs: culprit.Run[], params: table): table makes the model (plain data, named entries)
---from fault-free runs
---@field diagnose fun(run: culprit.Run, model: table, params: table): culprit.Verdict[]

--- A parameter of a detector. A scenario may set it. The detector gets its value in the base unit.
---@class culprit.DetectorParam
---@field default number|string|boolean a number, or a quantity in quotes ("5s") if the parameter has a unit
---@field unit? "number"|"bytes"|"seconds"|"percent"|"bytes_per_second"
---@field min? number|string
---@field max? number|string
---@field integer? boolean
---@field help string

--- What was measured in one run.
---@class culprit.Run
---@field id string opaque
---@field seconds integer length of every vec below
---@field servers string[] names or aliases; the same in every run
---@field metrics string[] service times, and the readings that were sampled in this run: those of servers
--- ("disk_queue_s", "tcp_retransmitted_segments") and those of their clients' sockets
---("client_tcp_rtt_s"). Runs may have
--- different readings; 'culprit list metrics' lists all. For a CSV file, the metrics in the file
---@field service_times string[] the metrics that are service times (longer is worse): "dread", "dwrite",
---"nsread",
--- "ncread", with or without samples, but not "nsbulk" and "ncbulk"; for a CSV file, every metric that is not
--- named like a reading
---@field units table<string, string> metric -> "s", "bytes", ...; for a CSV file, of readings only
---@field series table<string, table<string, culprit.Series>> series[metric][server]
---@field events culprit.Event[] in the order of time_s; empty if only metrics are known
---@field file_system culprit.FileSystemErrors

--- An event in a log, or a burst of equal events with gaps of at most 1 s (Kasick et al. 2009, section 7).
--- diag/derive/events.h says how events are derived from logs. Events hold no paths, only what a path led
---to.
---   server-error   calls of a server that failed
---   server-signal  a signal was delivered to a server
---   server-end     a process of a server ended
---   app-error      calls of an application that failed, on the mount or on a path that the log does not
---hold
---   app-slow       one such call that took 1 s or longer; the 64 longest of each application
---   link-quiet     no data moved between a client daemon and a server: for 0.5 s or longer while requests
---had no
---                  answer, for 5 s or longer while all had one or the connection was down
---   link-end       such a connection ended, or could not be made
---   app-done       calls of an application that succeeded, on the mount: those that change data, and close
---@class culprit.Event
---@field kind "server-error"|"server-signal"|"server-end"|"app-error"|"app-slow"|"link-quiet"|"link-end"|"app-done"
---@field server? string server-*, link-*
---@field client? string app-*, link-*; an opaque name
---@field time_s number since the start of the run: end of the first call; app-slow: start of the call;
---link-quiet: end of
--- the last call that moved data, or of the connection
---@field last_s number end of the last call; link-quiet: of the next one that moved data, or of the log
---@field count integer calls in the burst
---@field redone? integer server-error: of these, so many were repeated with success within 10 s
---@field bytes? integer server-error: that were to be written to storage by those not repeated; app-done: written
---@field call? string "openat"
---@field error? string name of the errno, or "EOF"
---@field place? "storage"|"mount"|"socket"|"memory"|"process"|"path"|"other" what the call accessed;
---"path": a path that
--- the log does not hold
---@field longest_s? number seconds that the longest of these calls took
---@field open? boolean app-slow: the call never returned; link-quiet: it lasted until the end of the log
---@field state? "answered"|"waiting"|"ended" link-quiet
---@field waiting? integer link-quiet: requests without an answer
---@field signal? string "KILL"; server-signal, and server-end if a signal ended the process
---@field status? integer server-end: exit code, if the process exited

--- What the file system's adapter says about errnos.
---@class culprit.FileSystemErrors
---@field lost_errnos string[] errnos that tell an application that a server is lost; empty: not known
---@field errno_map table<string, string[]> errno of a server -> errnos that the application may get instead

--- One metric of one server, one element per second. Service times are taken over calls or messages,
---readings over the
--- server's devices or over its clients (then sum is over all clients, and max is the largest client's).
---Each access makes
--- a new vec, so changes to one are not kept.
---@class culprit.Series
---@field mean culprit.Vec in the metric's unit; NaN where there is no sample
---@field sum culprit.Vec mean * count
---@field count culprit.Vec calls, messages, devices or clients; 0 where there is no sample
---@field max culprit.Vec in the metric's unit; NaN where there is no sample
---@field bytes culprit.Vec moved by those calls or messages; 0 where there is no sample, and for readings

--- A detector's verdict on one metric; at most one per metric. The verdict on "any" is the union of the
---others unless the
--- detector gives one.
---@class culprit.Verdict
---@field metric string one of run.metrics, or "any"
---@field indicted? string[] servers; an empty list says that no server is faulty
---@field abstain? boolean the detector cannot tell; it then indicts no server
---@field reason? string why it abstains
---@field time_s? number|table<string, number> seconds from the start of the run, at most its length, until each indicted server
---could first
--- have been indicted; one number applies to all. Scored as the delay from the fault's onset
---@field resource? string what is wrong with them: "disk" (slow), "storage" (full, read-only), "network",
---"cpu", "memory", "files"
--- (limits on files), "service" (the process); with a cause after a slash if it is known: "network/hog",
--- "network/receive-loss", "network/send-loss". Scored separately from the server; omitting it costs
---nothing there
---@field evidence? table plain data: numbers, strings, booleans, tables; no NaN. Two of its fields are drawn in
--- reports: severity, {server = number}, how far each server came towards the limit, above 1 if it is beyond;
--- and scores, a culprit.Scores

--- What the detector compared with its limit, to be drawn in reports.
---@class culprit.Scores
---@field what string
---@field limit number
---@field logarithmic? boolean
---@field metrics string[] those behind it; a report opens on the first
---@field servers table<string, (number|false)[]> a score for each second; false where there is none

--- A vector of numbers, one per second. NaN means no sample. + - * / and unary minus work element by
---element, with another
--- vec of the same length or with a number; NaN in, NaN out. #v is the length. v[i] reads and writes
---elements, from 1. The
--- methods use the finite elements only, and return NaN if there are none.
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

--- Elements below 'low' become 'low', those above 'high' become 'high'.
---@param low number
---@param high? number default: no limit
---@return culprit.Vec
function Vec:clamp(low, high) end

--- How many elements are finite.
---@return integer
function Vec:count() end

--- Replaces elements that are not finite by 'value'.
---@param value number
---@return culprit.Vec
function Vec:fill(value) end

--- Shifted: element i is the former element i - 'elements'; the first ones are 'before' (default: NaN).
---@param elements integer
---@param before? number
---@return culprit.Vec
function Vec:lag(elements, before) end

--- Natural logarithms; NaN for elements that are not positive.
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

--- Element by element, the smallest finite element of several vecs of one length.
---@param list culprit.Vec[]
---@return culprit.Vec
function vec.least(list) end

--- Element by element, the log likelihood of k hits in n trials with probability p: k ln p + (n - k) ln(1
---- p), without the
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

--- For each of several vecs of one length, element by element the median over the others; NaN where fewer
---than
--- 'least' (default 1) of them are finite.
---@param list culprit.Vec[]
---@param least? integer
---@return culprit.Vec[]
function vec.others(list, least) end

--- Element by element, the number of vecs in which it is finite.
---@param list culprit.Vec[]
---@return culprit.Vec
function vec.present(list) end
