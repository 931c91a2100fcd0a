---@meta culprit
-- The Lua API, typed for the Lua language server (LuaLS), which is also its manual: point your
-- editor's 'Lua.workspace.library' here. ci/tests/scenario/ holds it against what is registered.
--
-- Files see string, table, math (without random), utf8 and require "culprit" (the prelude, below). Each call may use 256 MiB
-- of memory and 10 s of processor time ($CULPRIT_LUA_SECONDS overrides); waiting for a node does not count. Methods that
-- change the cluster raise an error when they fail; those that only ask return nil and a message.
--
-- Quantities are strings with their unit, "5%", "256MiB", "10s", "100Mbit/s", or 0.
--   bytes             B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (of 1024)
--   seconds           ns us ms s min h d w
--   percent           %
--   bytes_per_second  as bytes, with /s; bit/s kbit/s Mbit/s Gbit/s
-- In ctx.params they are numbers in the base unit: bytes, seconds, percent, bytes per second.

---What a scenario file returns.
---@class culprit.Scenario
---@field name string                  names the run's folder
---@field summary? string
---@field inventory? string            path of the inventory, relative to this file
---@field workloads culprit.Choice[]   each is run against each fault
---@field measure? string              "verdicts" (default): cells of fixed length, workload x fault, that
---detectors judge; "runtime": cells that run their workload once to its end, workload x tracer: the cost
---of tracing (Kasick et al. 2009, Table 2). Then the scenario has 'tracers' and 'limit', and no faults,
---detectors, phases, training, tracer or second_tracer
---@field faults culprit.Choice[]      "none" is the control
---@field detectors culprit.Choice[]
---@field tracer? culprit.Tracer       default "ebpf" (sums; events if a detector looks at them), or ptrace
---if a node's kernel refuses it
---@field second_tracer? culprit.Tracer  a second tracer of the file system, at the same time; its records
---become a run of their own, in RUN/second, with the same plan, judged in the same way (without the
---application's errors)
---@field tracers? culprit.Tracer[]    must contain "none", with which the others are compared
---@field limit? string                quantity, seconds: a workload that runs longer makes its attempt
---invalid (default "10min")
---@field prepare_limit? string        quantity, seconds: a command that prepares a workload, once a run,
---is killed then and repeated, three times at most; then the run ends with exit code 3 (default "10min")
---@field phases? culprit.Phases
---@field training? culprit.Training   fault-free cells that run first
---@field gates? culprit.Gates         conditions on hosts and clocks for an attempt to count
---@field repeats? integer             of every cell (default 1)
---@field controls? integer            cells of "none" for each workload and repeat (default 1); many are
---needed to measure false alarms
---@field attempts? integer            at most, for one cell (default 3)
---@field seed? integer                order and victims are drawn from it (default: drawn and recorded)

---"ebpf", "ptrace", "strace", "sysstat", "none", or a table with the name as its first element and
---  mode = "events"        ebpf: a record for each call; default "sums": a record for each second, process
---and class of call
---                         and descriptor, enough for peer comparison; errors and hangs need events
---  memory = "16MiB"       ebpf: limit of its buffers in the kernel (default 64MiB, plus 3MiB)
---The sampler cannot be chosen: it always runs on every server and client, unless run times are measured.
---In 'tracers' also
---  nodes = "one-server"   only the first server is traced (default "all": servers, clients, application)
---  workloads = { "ddw" }  used under these only (default: all)
---@alias culprit.Tracer string|table

---A name, or { "name", parameter = value, ... }. A name with a slash or ending in ".lua" is a
---path relative to the scenario. A fault's entry may also have
---  workloads = { "ddw" }  run under these only (default: all)
---  victims = 2            servers hit at once (default 1)
---  after = "15s"          time before this fault, in place of phases.before
---@alias culprit.Choice string|table

---@class culprit.Phases
---@field before? string  quantity, seconds: workload alone (default "10s"; Kasick et al. 2009: 120 s)
---@field fault? string   from the verified onset (default "25s"; there 300 s)
---@field after? string   after the verified end (default "15s"; there the rest of about 600 s)

---Checked before and after each attempt. Before one, a host that fails is quarantined: no cell is run
---until it passes again, and its processes, mounts, ports and firewall are as when the run began. After
---one, the attempt is invalid. If hosts share a machine with each other or with culprit (the lab), load,
---process, steal and pressure are recorded, but are conditions only if they are given.
---@class culprit.Gates
---@field load? string      quantity, percent of a host's processors that others may use before and after
---(default "30%")
---@field process? string   quantity, percent of one processor for one foreign process, during too (default
---"50%")
---@field steal? string     quantity, percent of processor time that a hypervisor may take, during too
---(default "10%")
---@field pressure? string  quantity, percent of the preceding time in which something may wait for memory
---or storage (default "50%")
---@field memory? string    quantity, percent of a host's memory that must be available (default "5%")
---@field disk? string      quantity, bytes that must be free where the run is kept (default "64MiB")
---@field clock? string     quantity, seconds that two hosts' clocks may be apart (default "50ms")
---@field drift? string     quantity, seconds that a clock may drift from culprit's in one attempt (default
---"20ms")
---@field window? string    quantity, seconds over which load is measured before and after (default "500ms")
---@field wait? string      quantity, seconds for which a host may be in quarantine; then the run ends with
---exit code 3 (default "5min")

---@class culprit.Training
---@field workloads culprit.Choice[]  a bare name of one of the scenario's own means that one
---@field repeats? integer    default 1

---What a file in faults/ returns. Primitives carry their own undo: a fault writes none.
---@class culprit.Fault
---@field summary string
---@field resource string              "disk", "network/hog", ...: what a detector should name; after the
---slash the cause, which is scored separately
---@field needs? string                prerequisites in a few words, for 'culprit list faults'
---@field params? table<string, culprit.Param>
---@field check? fun(ctx: culprit.Context): any, string?  true, or nil and why it cannot run with this
---victim
---@field inject fun(ctx: culprit.Context)
---@field verify fun(ctx: culprit.Context): table|boolean|nil, string?  by effect: evidence, or nil and
---what was observed; called until it succeeds, and again at the end of the fault's phase
---@field verify_timeout? string       quantity, seconds (default "5s"): then the attempt is invalid
---@field trigger? fun(ctx: culprit.Context): any  called after the time before the fault: the fault is
---injected once it returns true (an event in the workload: ctx.workload[1]:status().wchar > 2^26)
---@field step? fun(ctx: culprit.Context, elapsed: number)  called once a second while the fault is active,
---with the seconds since onset: for ramps and sequences
---@field from_start? boolean          active from before tracers and workload start until they have
---stopped (a misconfigured server); the cell then has one phase
---@field workload_may_fail? boolean   server and application may fail, and the attempt still counts

---What a file in workloads/ returns.
---@class culprit.Workload
---@field summary string
---@field params? table<string, culprit.Param>
---@field needs? string[]              programs, on every client
---@field packages? table<string, string>  program -> the Debian package that brings it, "iozone3, from
---non-free"
---@field prepare? fun(ctx: culprit.Context, client: culprit.Node): string[][]  once a run: commands, one
---after the other, the k-th of all clients in parallel; if one fails all are repeated, twice at most, so
---they must be repeatable
---@field command fun(ctx: culprit.Context, client: culprit.Node): culprit.Command  for the length of a
---cell; with ctx.once it must not loop, and must do the work that the parameters specify
---@field cleanup? fun(ctx: culprit.Context, client: culprit.Node): string[]|nil  a command after each
---attempt, failed ones too
---@field result? fun(output: string): table|nil, string?  the program's output -> figures

---What a file harness/fs/TYPE.lua returns: what the harness must know of one file system. 'host' has name,
---address, role, storage, spare, mount, service_port; 'processes' is a list of { pid, ppid, comm, exe,
---cmdline }.
---@class culprit.FileSystem
---@field summary string
---@field server_pids fun(host: table, processes: table[]): integer[]  the server's processes on a server
---@field client_pids fun(host: table, processes: table[]): integer[]  the client daemon's on a client
---@field discover? fun(host: table, processes: table[], run: fun(argv: string[]): string?): culprit.Found[]  what serves on a
---server, what is mounted on a client: completes inventories that omit it; run() returns a command's output
---@field service? fun(host: table): string, integer  address and port at which a server serves its clients
---(default: the inventory's)
---@field lost_errnos string[]             errnos by which an application learns that a server is lost
---@field errno_map? table<string, string[]>  errno of a server -> what an application may see instead
---@field probe? fun(host: table): string[]  a command that ends with 0 on a client only if every server
---takes part

---What an inventory file returns; harness/inventory/README.md says more.
---@class culprit.Inventory
---@field file_system { type: string, volume?: string, layout?: string }
---@field nodes culprit.Host[]
---@field ssh_config? string      file in place of ~/.ssh/config, relative to the inventory; "none": none
---@field allow_restart? boolean  faults may kill and restart servers (default false)

---How ssh reaches the host. Keys that are missing come from the user's SSH configuration.
---@class culprit.Host
---@field name string
---@field role "server"|"client"|"outsider"
---@field ssh? string             destination as for ssh (default: address, or else name)
---@field address? string         address that peers use (default: where ssh connects)
---@field ssh_port? integer
---@field user? string            default "root"
---@field identity? string        private key file, relative to the inventory
---@field jump? string            "[user@]host[:port],..."; "none"
---@field host_key? string        "ssh-ed25519 AAAA..." (default: known_hosts must have it)
---@field become? "sudo"
---@field allow_restart? boolean  default: the inventory's
---@field storage? string         servers: folder with the server's data (default: found)
---@field service_port? integer   servers (default: found)
---@field spare? string           servers: unused device on the storage disk; overwritten
---@field mount? string           clients (default: found)

---@class culprit.Found
---@field how string            where it was read
---@field pid? integer
---@field volume? string
---@field storage? string       servers
---@field service_port? integer servers
---@field mount? string         clients
---@field source? string        clients

---@class culprit.Param
---@field default string|number|boolean  a number, a quantity ("5s", with a unit), a boolean, or a string
---@field unit? string     "bytes", "seconds", "percent", "bytes_per_second", or "number" (default)
---@field min? string|number
---@field max? string|number
---@field integer? boolean
---@field help string

---@class culprit.Command
---@field argv string[]    no shell is involved
---@field self? boolean    argv are words for the agent program: "sink", "send", "cpu", "memory", "read"
---(harness/agent/PROTOCOL.md)
---@field loop? boolean    started again each time it ends with 0, until the cell ends
---@field stdin? string    its input; a looped program reads it from the start each time (default: empty)
---@field cwd? string
---@field env? table<string, string>
---@field stdout? string   path on the node (default: discarded; workloads: kept with the run)
---@field stderr? string
---@field max_s? number    the node's guard undoes it after so many seconds

---@class culprit.Context
---@field servers culprit.Node[]
---@field clients culprit.Node[]
---@field outsiders culprit.Node[]
---@field victim? culprit.Node     faults only; with several victims each has a context of its own
---@field workload? culprit.Handle[] faults, while the workload runs: its process on each client
---@field params table<string, number>
---@field state table              yours, from inject to the last verify
---@field shared table             one for the whole run
---@field run string               the run's id; workloads keep their files in client.mount/run
---@field attempt? string          workloads' command and cleanup: "cell.attempt", for names of its own
---@field once? boolean            workloads' command: the cell measures the run time of one whole pass

---@class culprit.Node
---@field name string
---@field address string
---@field role string              "server", "client", "outsider"
---@field storage? string          servers: folder with the server's data
---@field spare? string            servers: unused device on the storage disk
---@field service_port integer     servers: where the file system listens; else 0
---@field mount? string            clients
---@field pids integer[]           the file system's processes there: a server's, a client's daemon
local Node = {}

---Starts a process that the node's guard kills, with all its descendants, when the fault ends.
---@param command culprit.Command
---@return culprit.Handle
function Node:process(command) end

---Runs a command that changes the node, if no other method does what you want. 'inverse' undoes it; the
---node's guard runs it whatever happens (perhaps twice, or although the command never ran). 'check' ends
---with 0 while the change is in effect. The command itself must end within 5 s.
---@param command { argv: string[], inverse: string[], check: string[], max_s?: number }
---@return culprit.Handle
function Node:command(command) end

---Drops packets at random, in a firewall table of its own, until the fault ends.
---@param rule { percent: number, direction?: "in"|"out", from?: string[], to?: string[], max_s?: number }
---@return culprit.Handle
function Node:drop_packets(rule) end

---Sets the soft limit of a resource (as prlimit(1) calls it: "nofile", "fsize", "as", ...) of a running
---process, until the fault ends. -1: unlimited.
---@param limit { pid: integer, resource: string, soft: integer, max_s?: number }
---@return culprit.Handle
function Node:limit(limit) end

---The limits of a process, by resource; -1: unlimited.
---@param pid integer
---@return table<string, { soft: integer, hard: integer }>
function Node:limits(pid) end

---Stops a process (SIGSTOP) with all its threads until the fault ends.
---@param process { pid: integer, max_s?: number }
---@return culprit.Handle
function Node:hold(process) end

---All processes of the node. state: the letter of /proc/PID/stat ("T": stopped, "t": stopped by a tracer).
---@return { pid: integer, ppid: integer, state: string, comm: string, exe: string, cmdline: string[],
---start_ticks: integer }[]
function Node:processes() end

---Kills a server (SIGKILL). When the fault ends it is restarted as it was: arguments, environment, folder,
---user, limits, priority, cgroup. It must then listen on the same ports.
---@param server { pid: integer, max_s?: number }
---@return culprit.Handle
function Node:kill_service(server) end

---Sets soft limits of a running server: files, bytes a file, bytes of address space. When the fault ends
---the server is restarted as it was, because it may have kept state from the errors.
---@param server { pid: integer, limits: culprit.ServerLimits, max_s?: number }
---@return culprit.Handle
function Node:limit_service(server) end

---Restarts a server differently: as another user (name or number), under limits (soft and hard; soft again
---once it listens), or with a small ext4 file system mounted over its storage folder, which initially has
---the folder's directories and links but no files. When the fault ends it is restarted as it was.
---@param server { pid: integer, user?: string, limits?: culprit.ServerLimits, storage?:
---culprit.SmallStorage, max_s?: number }
---@return culprit.Handle
function Node:restart_service(server) end

---Makes the file system that holds 'path' read-only, as after a disk error (ext4: at once, whoever writes
---to it). When the fault ends it is checked and mounted as it was; 'pid' is the server that uses it, which
---is restarted for that.
---@param storage { path: string, pid?: integer, max_s?: number }
---@return culprit.Handle
function Node:make_readonly(storage) end

---The file system that holds 'path'.
---@param path string
---@return { type: string, source: string, point: string, options: string, super_options: string, readonly:
---boolean, size_bytes: integer, free_bytes: integer, inodes: integer, free_inodes: integer }
function Node:fs_info(path) end

---@class culprit.ServerLimits
---@field nofile? integer  open files
---@field fsize? integer   bytes in a file
---@field as? integer      bytes of address space

---@class culprit.SmallStorage
---@field path string         the server's storage folder
---@field size_bytes integer  at least 1 MiB
---@field inodes? integer     default: mkfs.ext4's
---@field spare_inodes? integer  in place of inodes: number of inodes free at first, besides those of the
---folders
---@field prune? string       folders that match this pattern below 'path' (".glusterfs/*/*") are copied
---only if they contain a link

---Runs a command to its end and returns its exit code (128 + signal) and at most 64 KiB of its output.
---@param command { argv: string[], timeout_s?: number, stdin?: string }
---@return { exit: integer, output: string }
function Node:run(command) end

---Is the node able to do this ("packets.drop", "process.start", "limits.set", "signal.stop",
---"service.restart", "fs.readonly")?
---@param what string
---@return true|nil able, string? reason
function Node:can(what) end

---Something that is active on a node. It ends by itself with the fault.
---@class culprit.Handle
local Handle = {}

---Of a process: sums over it and its descendants, running or ended; rss_bytes is the memory they use now.
---@return { running: boolean, exit: integer?, pid: integer, read_bytes: integer, write_bytes: integer,
---rchar: integer, wchar: integer, cpu_s: number, rss_bytes: integer }
function Handle:status() end

---Of a packet rule.
---@return { seen: integer, dropped: integer, seen_bytes: integer, dropped_bytes: integer }
function Handle:counters() end

---Ends it now; fails if the end cannot be verified.
function Handle:undo() end

---The prelude: what built-in faults and workloads share, and yours may use.
---@class culprit.Prelude
---@field iozone_params table<string, culprit.Param>  parameters of IOzone workloads: file, record, direct
local Prelude = {}

---check: the victim has one server process, and can do 'what' (see Node:can).
---@param ctx culprit.Context
---@param what string
---@return any able, string? reason
function Prelude.one_server(ctx, what) end

---inject: sets a soft limit of the victim's server (Node:limit_service).
---@param ctx culprit.Context
---@param resource "nofile"|"fsize"|"as"
---@param value integer
function Prelude.limit_server(ctx, resource, value) end

---verify: the limit of limit_server is in force.
---@param ctx culprit.Context
---@return table? evidence, string? reason
function Prelude.limit_holds(ctx) end

---verify: the process runs, and a counter of Handle:status has grown by 'least' (default 1) since the last
---call.
---@param ctx culprit.Context
---@param handle culprit.Handle
---@param field string
---@param least? number
---@return number? value, string? reason
function Prelude.growth(ctx, handle, field, least) end

---check: the inventory names a spare device of the victim.
---@param ctx culprit.Context
---@return any able, string? reason
function Prelude.has_spare(ctx) end

---inject: reads the spare device for ctx.params.share percent of the time, 'block' bytes at once.
---@param ctx culprit.Context
---@param block number
---@return culprit.Handle
function Prelude.read_spare(ctx, block) end

---check: the inventory names an outsider.
---@param ctx culprit.Context
---@return any able, string? reason
function Prelude.has_outsider(ctx) end

---inject: 'sender' sends zeros to a port of 'taker', over ctx.params.senders connections, ctx.params.share
---percent of the time.
---@param ctx culprit.Context
---@param sender culprit.Node
---@param taker culprit.Node
---@param port integer
function Prelude.send_zeros(ctx, sender, taker, port) end

---verify: those zeros arrive.
---@param ctx culprit.Context
---@return table? evidence, string? reason
function Prelude.zeros_arrive(ctx) end

---A client's file in the run's own folder on the mount.
---@param ctx culprit.Context
---@param client culprit.Node
---@param what string
---@return string path
function Prelude.file(ctx, client, what) end

---The command that makes that folder.
---@param ctx culprit.Context
---@param client culprit.Node
---@return string[] argv
function Prelude.make_folder(ctx, client) end

---dd's command, in records of ctx.params.per_server bytes for each server.
---@param ctx culprit.Context
---@param from string
---@param to string
---@param ... string further operands
---@return string[] argv
function Prelude.dd(ctx, from, to, ...) end

---prepare: the file "dd", of ctx.params.records records, written once a run.
---@param ctx culprit.Context
---@param client culprit.Node
---@return string[][] commands
function Prelude.dd_prepare(ctx, client) end

---result: bytes, seconds and bytes_per_second of all passes of dd.
---@param output string
---@return table? figures, string? reason
function Prelude.dd_result(output) end

---IOzone's command for a test ("0": write and rewrite, "1": read and reread), with iozone_params.
---@param ctx culprit.Context
---@param file string
---@param test string
---@return string[] argv
function Prelude.iozone(ctx, file, test) end

---prepare: checks the parameters; the command that makes the run's folder, then the given ones.
---@param ctx culprit.Context
---@param client culprit.Node
---@param ... string[]
---@return string[][] commands
function Prelude.iozone_prepare(ctx, client, ...) end

---result: figures of all passes of IOzone; 'verb' is "read" or "write".
---@param output string
---@param verb string
---@return table? figures, string? reason
function Prelude.iozone_result(output, verb) end

return Prelude
