---@meta culprit
-- The Lua API, typed for the Lua language server (LuaLS). This file is also the manual: add this folder to
-- your editor's 'Lua.workspace.library'. A test in ci/tests/scenario/ compares it with the registered
-- functions.
--
-- Files see string, table, math (without random), utf8 and require "culprit" (the prelude, below). Each call may use 256 MiB
-- of memory and 10 s of processor time ($CULPRIT_LUA_SECONDS overrides); waiting for a node does not count. Methods that
-- change the cluster raise an error when they fail; those that only query return nil and a message.
--
-- Quantities are strings with their unit, "5%", "256MiB", "10s", "100Mbit/s", or 0.
--   bytes             B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (of 1024)
--   seconds           ns us ms s min h d w
--   percent           %
--   bytes_per_second  like bytes, with /s; bit/s kbit/s Mbit/s Gbit/s
-- In ctx.params they are numbers in the base unit: bytes, seconds, percent, bytes per second.

---What a scenario file returns.
---@class culprit.Scenario
---@field name string                  names the run's folder
---@field summary? string
---@field inventory? string            path of the inventory, relative to this file
---@field workloads culprit.Choice[]   each runs against each fault
---@field measure? string              "verdicts" (default): cells of fixed length, workload x fault, judged by
---detectors; "runtime": cells that run their workload once to its end, workload x tracer, to measure the cost
---of tracing (Kasick et al. 2009, Table 2). A "runtime" scenario has 'tracers' and 'limit', but no faults,
---detectors, phases, training, tracer, second_tracer or recorder
---@field faults culprit.Choice[]      "none" is the control
---@field detectors culprit.Choice[]
---@field tracer? culprit.Tracer       default "ebpf" (sums; events if a detector needs them), or ptrace if
---a node's kernel does not support it
---@field second_tracer? culprit.Tracer  a second tracer of the file system, running at the same time; its
---records become a second run in RUN/second with the same plan, judged in the same way (without the
---application's errors)
---@field recorder? culprit.Recorder   a further ebpf tracer of the file system that keeps its last seconds
---and writes them at certain moments of each cell; detectors judge the records of 'tracer'
---@field tracers? culprit.Tracer[]    must contain "none", the baseline for the others
---@field limit? string                quantity, seconds: a workload that runs longer makes its attempt
---invalid (default "10min")
---@field prepare_limit? string        quantity, seconds: limit of each command that prepares a workload; a
---command that exceeds it is killed and repeated, up to three times, then the run ends with exit code 3
---(default "10min")
---@field phases? culprit.Phases
---@field training? culprit.Training   fault-free cells that run first
---@field gates? culprit.Gates         conditions on hosts and clocks for a valid attempt
---@field abort_if? fun(now: culprit.Safety, ctx: culprit.Context): string|boolean|nil  safety condition, called once a second
---from the injection until the undo; ctx is that of the first victim. A text (why) or true: the fault is undone at
---once, and the cell is aborted, neither tried again nor scored. So it is if the function fails, uses a second of
---processor time or waits for nodes for more than 5 s (scenarios/README.md)
---@field on_abort? string             "continue" (default): the next cell follows; "stop": the run ends with exit code 3
---@field repeats? integer             repeats of every cell (default 1)
---@field controls? integer            cells of "none" for each workload and repeat (default 1); many are
---needed to measure false alarms
---@field attempts? integer            maximum for one cell (default 3)
---@field seed? integer                determines order and victims (default: drawn at random and recorded)

---"ebpf", "ptrace", "strace", "sysstat", "none", or a table with the name as its first element and
---  mode = "events"        ebpf: one record per call. Default "sums": one record per second, process, class of
---                         call and descriptor: enough for peer comparison, but errors and hangs need events.
---                         "flow": events plus the data that links them: positions in TCP byte streams and
---                         requests to FUSE mounts ('culprit slow')
---  heads = true           flow: also the first 32 bytes, at most, of each call's data on a TCP socket or
---                         /dev/fuse. Without it no payload byte leaves a node (default false)
---  memory = "16MiB"       ebpf: limit of its kernel buffers (default 64MiB, plus 3MiB)
---The sampler cannot be chosen: it always runs on every server and client, except when run times are measured.
---In 'tracers' also
---  nodes = "one-server"   only the first server is traced (default "all": servers, clients, application)
---  workloads = { "ddw" }  used with these workloads only (default: all)
---@alias culprit.Tracer string|table

---A flight recorder: { "ebpf", ring = "30s", write = { after_onset = "5s" } }; the name is its first element.
---Its files are in the attempt's folder: recorder.1, recorder.2 and so on, at most 16; 'culprit slow',
---'timeline', 'query' and 'findings' read them. Recorder errors (lost records, a node that does not answer, no
---write in a cell) are reported during the run and kept in the attempt's detail; they never invalidate the
---attempt. It does not record applications, except the threads that issued the FUSE requests.
---@class culprit.Recorder
---@field mode? string     "flow" (default) or "events", like a tracer's
---@field heads? boolean   flow: record heads of messages, which requests need (default false)
---@field memory? string   quantity, bytes: like a tracer's
---@field ring? string     quantity, seconds to keep, if they fit into 256 MiB per node
---(default "30s")
---@field write? culprit.RecorderWrite  when to write; cells without a fault, or with a fault from the start,
---use the same moments
---@field trigger? string  path of a culprit.Trigger, relative to this file: called about once a second in
---each cell; its state is reset for each cell

---@class culprit.RecorderWrite
---@field after_onset? string  quantity, seconds after the onset, before the cell ends
---@field at_offset? boolean   at the end of the fault's phase, before it is undone
---@field at_end? boolean      at the end of the cell, before the workload stops

---A name, or { "name", parameter = value, ... }. A name with a slash or ending in ".lua" is a
---path relative to the scenario. A fault's entry may also have
---  workloads = { "ddw" }  run with these workloads only (default: all)
---  victims = 2            number of servers hit at the same time (default 1)
---  after = "15s"          time before this fault, instead of phases.before
---@alias culprit.Choice string|table

---@class culprit.Phases
---@field before? string  quantity, seconds: workload alone (default "10s"; Kasick et al. 2009: 120 s)
---@field fault? string   from the verified onset (default "25s"; in the paper 300 s)
---@field after? string   after the verified end (default "15s"; in the paper the rest of about 600 s)

---Checked before and after each attempt. A host that fails before an attempt is quarantined: no cell runs until
---the host passes again, with the same processes, mounts, ports and firewall as at the start of the run. A
---failure after the attempt invalidates it. If hosts share a machine with each other or with culprit (the lab),
---load, process, steal and pressure are recorded, but they are conditions only if the scenario gives them.
---@class culprit.Gates
---@field load? string      quantity, percent of a host's processors that other programs may use before and
---after (default "30%")
---@field process? string   quantity, percent of one processor that one unrelated process may use, also during
---the attempt (default "50%")
---@field steal? string     quantity, percent of processor time that a hypervisor may take, also during the
---attempt (default "10%")
---@field pressure? string  quantity, percent of the preceding time during which tasks may wait for memory
---or storage (default "50%")
---@field memory? string    quantity, percent of a host's memory that must be available (default "5%")
---@field disk? string      quantity, bytes that must be free in the run's folder and in each host's /var/lib/culprit (default "64MiB")
---@field clock? string     quantity, largest difference in seconds between two hosts' clocks (default "50ms")
---@field drift? string     quantity, largest drift in seconds of a clock from culprit's in one attempt (default
---"20ms")
---@field onset? string     quantity, longest time from the request for a fault until its effect is verified
---(default: half of the fault's phase, at least 5 s)
---@field window? string    quantity, seconds over which load is measured before and after (default "500ms")
---@field wait? string      quantity, longest time in seconds that a host may be quarantined; after it the run ends
---with exit code 3 (default "5min")

---@class culprit.Training
---@field workloads culprit.Choice[]  a bare name refers to the scenario's workload of that name
---@field repeats? integer    default 1

---What a file in faults/ returns. Primitives undo themselves: a fault needs no undo code.
---@class culprit.Fault
---@field summary string
---@field resource string              "disk", "network/hog", ...: the resource that a detector should name; the
---part after the slash is the cause, which is scored separately
---@field needs? string                prerequisites in a few words, for 'culprit list faults'
---@field storage? "folder"|"empty"    requirement on servers' storage: a folder, or one on which a server can
---start without its files; if the file system does not offer it (FileSystem.storage, empty_storage), the cells
---are skipped
---@field params? table<string, culprit.Param>
---@field check? fun(ctx: culprit.Context): any, string?  true, or nil and the reason why the fault cannot run
---with this victim
---@field inject fun(ctx: culprit.Context)
---@field verify fun(ctx: culprit.Context): table|boolean|nil, string?  checks the effect: returns evidence, or
---nil and the observation; called until it succeeds, and again at the end of the fault's phase
---@field verify_timeout? string       quantity, seconds (default "5s"): after it the attempt is invalid
---@field trigger? fun(ctx: culprit.Context): any  called after the time before the fault; the fault is injected
---once it returns true (an event in the workload: ctx.workload[1]:status().wchar > 2^26)
---@field step? fun(ctx: culprit.Context, elapsed: number)  called once a second while the fault is active,
---with the seconds since onset: for ramps and sequences
---@field from_start? boolean          active before tracers and workload start and until they have
---stopped (a misconfigured server); the cell then has one phase
---@field lookalike? boolean           every server is healthy under it: its cells are controls with a separate row,
---and a detector that names a server there is wrong
---@field workload_may_fail? boolean   the attempt is valid even if server and application fail

---What a file in workloads/ returns.
---@class culprit.Workload
---@field summary string
---@field params? table<string, culprit.Param>
---@field needs? string[]              programs that every client must have
---@field packages? table<string, string>  program -> its Debian package, "iozone3, from
---non-free"
---@field files? fun(params: table): table<string, string>  key -> file of this machine that is copied to every
---client: a path relative to the scenario, or a bare name for workloads/traces/NAME.app; on the client it is
---client.folder .. "/" .. ctx.files[key]
---@field prepare? fun(ctx: culprit.Context, client: culprit.Node): (string[]|culprit.Command)[]  once per run:
---commands (of a table only argv, self and stdin are used) that run in order, the k-th command on all clients in
---parallel; if one fails all are repeated, at most twice, so they must be repeatable
---@field command fun(ctx: culprit.Context, client: culprit.Node): culprit.Command  runs during a cell; with
---ctx.once it must not loop, and must do the work that the parameters specify
---@field cleanup? fun(ctx: culprit.Context, client: culprit.Node): string[]|nil  a command to run after each
---attempt, including failed ones
---@field result? fun(output: string): table|nil, string?  the program's output -> figures

---What a file harness/fs/TYPE.lua returns: how to find the file system on hosts, what faults, workloads and
---detectors need to know about it, and how the lab starts it. 'host' has name, address, role, storage, spare,
---mount, service_port; 'processes' is a list of { pid, ppid, comm, exe, cmdline }. harness/fs/README.md is the
---manual.
---@class culprit.FileSystem
---@field summary string
---@field server_pids fun(host: table, processes: table[]): integer[]  the server's processes on a server. Their
---descendants are traced, stopped, limited and killed with them; a listed process below another one is ignored
---@field client_pids fun(host: table, processes: table[]): integer[]  the client daemon's processes on a client
---@field discover? fun(host: table, processes: table[], run: fun(argv: string[]): string?): culprit.Found[]
---the services of a server, the mounts of a client: completes inventories that omit them; run() returns a
---command's output
---@field service? fun(host: table): string, integer?  address and port at which a server serves its clients
---(default: the inventory's). Without a port, all TCP connections of the server's processes count, except
---those to other servers of the inventory (heartbeats, replication): for servers whose ports change.
---@field probe? fun(host: table): string[]  a command for a client that exits with 0 only if every server
---works
---@field health? fun(host: table): string[]?  a command by which the file system itself says how it is, for
---abort_if; nil: it cannot be asked on this host
---@field lost_errnos string[]             errnos that an application sees when a server is lost
---@field errno_map? table<string, string[]>  errno of a server -> errnos that an application may see instead
---@field storage? "folder"|"device"       where a server keeps its data (default "folder")
---@field empty_storage? culprit.EmptyStorage|string  how a server starts on a small storage without its files
---(default: {}); a string is the reason why it cannot, with which faults that need it are skipped
---@field cannot? table<string, string>    name of a fault ("NAME.lua" for a user's file) -> why it cannot work
---here; its cells are skipped
---@field missing? string[]                unsupported steps: "hard link", "symbolic link", "truncate", "direct I/O"
---@field messages? culprit.Messages   how to find message boundaries in the bytes of a TCP connection: for flow logs
---with heads
---@field bulk? culprit.Bulk           which messages are bulk data rather than requests or responses (default: none)
---@field layers? culprit.Layer[]       names of the layers that requests pass through (default: those of 'from')
---@field lab? culprit.FileSystemLab       how 'culprit lab up --fs' starts it
---Bulk data sent separately from the requests and responses that ask for it: nsbulk and ncbulk measure it, nsread
---and ncread exclude it.
---@class culprit.Bulk
---@field above string        size ("16408B") of the largest request or response: larger messages are bulk data
---@field header? integer     bytes of a message's header: a message of at most this size announces data that is read
---separately, and is not counted (default: no such messages)
---@field kind? integer       value of messages.kind for bulk data: decides regardless of size if a log has heads;
---needs messages.kind and messages.check

---A server's storage, recreated without its files: its folders and symbolic links are kept.
---@class culprit.EmptyStorage
---@field prune? string   folders below the storage that match this pattern are kept only if they contain a link or
---a kept file
---@field keep? string[]  files below the storage that match one of these patterns are also kept: at most 256 MiB,
---holes not counted; their size is added to the small storage
---(shell patterns; a star does not match a slash)
---@field inodes_of_file? integer  largest number of inodes that a new file takes on a server; with fewer inodes
---no file can be created (default: 1)

---How the lab starts a file system. The functions run as root on the nodes, in this order: start_manager on
---every manager; format and start_server on all servers in parallel; start_client on all clients in parallel;
---ready on each client until it returns true. An error in one of them ends 'culprit lab up'.
---@class culprit.FileSystemLab
---@field programs table<string, string>  program -> its Debian package, or another hint where to get it
---@field path? string[]     further folders to search for programs
---@field layouts culprit.Layout[]  the first is the default
---@field params? table<string, culprit.Param>  settings: 'culprit lab up --fs NAME,key=value'
---@field managers? integer  nodes m1, m2 ... outside the inventory, for services that faults do not target (default 0)
---@field port? integer      'service_port' of the servers in the lab's inventory
---@field start_manager? fun(node: culprit.LabNode, lab: culprit.Lab)
---@field format? fun(node: culprit.LabNode, lab: culprit.Lab)  on a server, before its disk has delays
---@field start_server? fun(node: culprit.LabNode, lab: culprit.Lab)  returns when the server is ready
---@field start_client? fun(node: culprit.LabNode, lab: culprit.Lab)  mounts the file system on node.mount
---@field ready? fun(node: culprit.LabNode, lab: culprit.Lab): boolean?, string?  true, or nil and what is missing

---@class culprit.Layout
---@field name string
---@field summary string
---@field servers? integer  minimum number of servers (default 1)

---@class culprit.Lab
---@field layout string
---@field params table<string, any>
---@field servers culprit.LabHost[]
---@field clients culprit.LabHost[]
---@field managers culprit.LabHost[]

---@class culprit.LabHost
---@field name string     "s1"
---@field number integer  1
---@field address string

---A node of the lab during start-up.
---@class culprit.LabNode: culprit.LabHost
---@field role "server"|"client"|"manager"
---@field storage? string  servers: an empty folder with an ext4, or a block device (culprit.FileSystem.storage)
---@field mount? string    clients: an empty folder
---@field dir string       the node's own folder, /run/culprit; logs in dir/log are kept in the lab's folder
local LabNode = {}

---Runs a program to its end and returns its output. If it fails, raises an error with the last line of its output
---and, if opts.log and opts.complaint are given, with the last line of that log that matches the pattern.
---@param argv string[]
---@param opts? { timeout?: number, env?: table<string, string>, log?: string, complaint?: string }  timeout: seconds (30)
---@return string
function LabNode:run(argv, opts) end

---Like run, but returns nil and the reason if the program fails.
---@param argv string[]
---@param opts? { timeout?: number, env?: table<string, string> }
---@return string? output
---@return string? reason
function LabNode:try(argv, opts) end

---Starts a program that does not daemonise, in the background; its output goes to dir/log/NAME.log.
---@param name string
---@param argv string[]
---@param opts? { env?: table<string, string> }
function LabNode:spawn(name, argv, opts) end

---Writes a file below dir, private to root, and returns its path.
---@param name string
---@param text string
---@return string path
function LabNode:write(name, text) end

---The text of a file, or nil and the reason.
---@param path string
---@return string? text
---@return string? reason
function LabNode:read(path) end

---Calls fn every 20 ms until it returns true. After 'seconds', raises an error that names 'what' and the last
---reason that fn returned with nil.
---@param seconds number
---@param what string
---@param fn fun(): boolean?, string?
function LabNode:wait(seconds, what, fn) end

---What an inventory file returns; see harness/nodes/README.md.
---@class culprit.Inventory
---@field file_system { type: string, volume?: string, layout?: string, settings?: string }  type: a name, or the
---path of a Lua file; layout and settings only describe the cluster
---@field nodes culprit.Host[]
---@field ssh_config? string      file to use instead of ~/.ssh/config, relative to the inventory; "none": no file
---@field allow_restart? boolean  faults may kill and restart servers (default false)

---How ssh reaches the host. Missing keys come from the user's SSH configuration.
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
---@field storage? string         servers: folder with the server's data (default: detected)
---@field service_port? integer   servers (default: detected)
---@field spare? string           servers: unused device on the storage disk; overwritten
---@field mount? string           clients (default: detected)

---@class culprit.Found
---@field how string            source of the information
---@field pid? integer
---@field volume? string
---@field storage? string       servers
---@field service_port? integer servers
---@field mount? string         clients
---@field source? string        clients

---Decides when a flight recorder writes ('culprit trace --inventory --ring --trigger FILE'); the file returns this.
---@class culprit.Trigger
---@field when fun(now: culprit.Now): string?  called about once a second; returns the reason to write, or nil.
---Locals of the file keep their values between calls
---@field pause? string    quantity, seconds: minimum time between two writes (default "60s")

---@class culprit.Now
---@field seconds number   since the capture began
---@field nodes table<string, { role: "server"|"client", load: table }>  by name; load: result of the agent's
---operation 'load' since the previous call (harness/agent/PROTOCOL.md)

---What abort_if can look at; a field is looked up when it is first read.
---@class culprit.Safety
---@field elapsed_s number    since the injection
---@field bytes_per_s number  read and written by the applications of all clients (/proc/PID/io, their tracers' logs
---included), since the field was last read or the injection
---@field probe_s number      how long the file system's probe takes on the slowest client; an error if it fails
---@field free_bytes number   on the mount, on the client that has least
---@field health { exit: integer, text: string, node: string }  of the file system's 'health', on a host that is no
---victim if there is one

---One problem that 'culprit findings' looks for (diag/findings); the file returns this. {column} is replaced by the
---row's value in 'text', and by that value as SQL in 'evidence'; diag/query/README.md explains how to write one.
---@class culprit.Finding
---@field about string                           one line: what happened
---@field severity "error"|"warning"|"note"      error: data or an error was lost; warning: data may be lost, or time is; note: avoidable work
---@field sql string                             a query (culprit query --schema); each row is a finding
---@field text string                            a sentence about the row
---@field todo string                            what to do about it
---@field evidence? string                       a query that shows the events behind the row

---@class culprit.Param
---@field default string|number|boolean  a number, a quantity ("5s", with a unit), a boolean, or a string
---@field unit? string     "bytes", "seconds", "percent", "bytes_per_second", or "number" (default)
---@field min? string|number
---@field max? string|number
---@field integer? boolean
---@field choices? string  of a string: "all|servers|clients"; default: any
---@field at_most? string  of a number: another parameter, which it may not exceed
---@field help string

---@class culprit.Command
---@field argv string[]    no shell is involved
---@field self? boolean    argv are words for the agent program: "sink", "send", "cpu", "memory", "read", "replay"
---(harness/agent/PROTOCOL.md)
---@field loop? boolean    restarted each time it exits with 0, until the cell ends
---@field link? boolean    workloads: the programs of all clients exchange lines through standard input and output
---@field stdin? string    its input; a looped program reads it from the start each time (default: empty)
---@field cwd? string
---@field env? table<string, string>
---@field stdout? string   path on the node (default: discarded; workloads: kept with the run)
---@field stderr? string
---@field max_s? number    a safety limit, as for every act (see Node); not the fault's duration

---@class culprit.Context
---@field servers culprit.Node[]
---@field clients culprit.Node[]
---@field outsiders culprit.Node[]
---@field victim? culprit.Node     faults only; each of several victims has its own context
---@field workload? culprit.Handle[] faults, while the workload runs: its process on each client
---@field file_system culprit.FileSystemFacts
---@field params table<string, number>
---@field state table              private to the fault, from inject to the last verify
---@field shared table             shared by the whole run
---@field files table<string, string>  workloads: the files named by 'files', as names in client.folder
---@field run string               the run's id; workloads keep their files in client.mount/run
---@field attempt? string          workloads' command and cleanup: "cell.attempt", for unique names
---@field once? boolean            workloads' command: the cell measures the run time of one whole pass

---Facts about the file system, from its Lua file and the inventory.
---@class culprit.FileSystemFacts
---@field type string              name of its file: "glusterfs"
---@field layout? string           from the inventory
---@field storage "folder"|"device"
---@field empty_storage culprit.EmptyStorage|string  a string: why it is not possible
---@field cannot table<string, string>
---@field missing string[]

---@class culprit.Node
---@field name string
---@field address string
---@field role string              "server", "client", "outsider"
---@field storage? string          servers: folder with the server's data
---@field spare? string            servers: unused device on the storage disk
---@field service_port integer     servers: where the file system listens; otherwise 0
---@field mount? string            clients
---@field folder string            the agent's folder on the node; removed at the end of the session
---@field pids integer[]           the file system's processes on the node: a server's, or a client's daemon
---An act may have 'max_s': this many seconds after its start the node's guard undoes it in any case. It is a safety
---limit, not a duration: an attempt that reaches it is invalid, because the fault must be active until it is undone. The
---duration is the scenario's phases.fault; faults/README.md has a fault that is active for parts of each second.
local Node = {}

---Starts a process that the node's guard kills, with all its descendants, when the fault ends.
---@param command culprit.Command
---@return culprit.Handle
function Node:process(command) end

---Runs a command that changes the node, if no other method fits. 'inverse' undoes the change; the node's guard
---always runs it (perhaps twice, or although the command never ran). 'check' exits with 0 while the change is in
---effect. The command itself must end within 5 s.
---@param command { argv: string[], inverse: string[], check: string[], max_s?: number }
---@return culprit.Handle
function Node:command(command) end

---Drops packets at random, in a separate firewall table, until the fault ends.
---@param rule { percent: number, direction?: "in"|"out", from?: string[], to?: string[], max_s?: number }
---@return culprit.Handle
function Node:drop_packets(rule) end

---Makes a link slow until the fault ends: packets take longer by latency_s, plus or minus a random part of jitter_s, and at
---most 'rate' bytes/s pass, of which a packet that would wait longer than buffer_s for earlier ones (0.05) is dropped. They
---keep their order. Add latency where packets arrive (direction "in"): what is held back on its way out counts as unsent with
---the node's TCP, which then sends less. A program on the node holds them back, in a queue of the kernel (NFQUEUE) to which a
---rule in a separate firewall table hands them. Node:can("packets.delay", { ... }) says whether the node is able to.
---@param rule { latency_s?: number, jitter_s?: number, rate?: number, buffer_s?: number, direction?: "in"|"out", from?:
---string[], to?: string[], max_s?: number }
---@return culprit.Handle
function Node:delay_packets(rule) end

---Sets the soft limit of a resource (named as in prlimit(1): "nofile", "fsize", "as", ...) of a running process
---until the fault ends. -1: unlimited.
---@param limit { pid: integer, resource: string, soft: integer, max_s?: number }
---@return culprit.Handle
function Node:limit(limit) end

---The limits of a process, by resource; -1: unlimited.
---@param pid integer
---@return table<string, { soft: integer, hard: integer }>
function Node:limits(pid) end

---Stops a process (SIGSTOP) with all its threads and descendants until the fault ends.
---@param process { pid: integer, max_s?: number }
---@return culprit.Handle
function Node:hold(process) end

---Limits a server's processes and their descendants together until the fault ends, by a control group that holds nobody
---else: to so many processors, or, where groups are of version 2, to this percentage of the memory that they use now.
---@param limit { pids: integer[], cpus?: number, memory_pct?: number, max_s?: number }
---@return culprit.Handle
function Node:limit_group(limit) end

---Stops processes, all at a time, with all their threads and descendants, for pause_s of every every_s seconds until
---the fault ends; without every_s once. A program on the node keeps the time.
---@param processes { pids: integer[], pause_s: number, every_s?: number, max_s?: number }
---@return culprit.Handle
function Node:pause(processes) end

---All processes of the node. state: the letter of /proc/PID/stat ("T": stopped, "t": stopped by a tracer).
---@return { pid: integer, ppid: integer, state: string, comm: string, exe: string, cmdline: string[],
---start_ticks: integer }[]
function Node:processes() end

---The processors and memory of the node: the limits of its control group if it has limits (a container, a node of
---'culprit lab up --cpus --memory'), otherwise the machine's. processors: 0.5 is half of one; online: number of
---processors it runs on. busy_s, throttled_s: processor time used so far, and time withheld by a quota (nil: no
---quota). own_processors, own_memory: false if the node has no limits and shares a machine with other nodes.
---@return { processors: number, online: integer, busy_s: number, throttled_s: number?, memory_bytes: integer, available_bytes:
---integer, host_available_bytes: integer, own_processors: boolean, own_memory: boolean }
function Node:machine() end

---Kills a server (SIGKILL). When the fault ends it is restarted with the same arguments, environment, folder, user,
---limits, priority and cgroup. It must then listen on the same ports.
---@param server { pid: integer, max_s?: number }
---@return culprit.Handle
function Node:kill_service(server) end

---Sets soft limits of a running server: open files, bytes per file, bytes of address space. When the fault ends the
---server is restarted as before, because errors may have changed its state.
---@param server { pid: integer, limits: culprit.ServerLimits, max_s?: number }
---@return culprit.Handle
function Node:limit_service(server) end

---Restarts a server differently: as another user (name or number), under limits (soft and hard; only soft once it
---listens), or with a small ext4 file system mounted over its storage folder, which initially has the folder's
---directories and links and the files to keep. When the fault ends the server is restarted as before.
---Prelude.small_storage makes 'storage' for the file system.
---@param server { pid: integer, user?: string, limits?: culprit.ServerLimits, storage?:
---culprit.SmallStorage, max_s?: number }
---@return culprit.Handle
function Node:restart_service(server) end

---Makes the file system that holds 'path' read-only, as after a disk error (ext4: at once, even with writers). When the
---fault ends it is checked and mounted as before; 'pid' is the server that uses it, which is restarted for that.
---@param storage { path: string, pid?: integer, max_s?: number }
---@return culprit.Handle
function Node:make_readonly(storage) end

---Makes the disk of the storage at 'path' (a path on its file system, or the block device that it is) slow, until
---the fault ends: latency_s is added to each request, at most 'rate' bytes/s pass, a request takes 'factor' times its
---normal time; the disk does nothing for stall_s of every every_s seconds (without every_s: once). A disk of the lab does
---this itself (backend "lab"). On other storage only the rate can be limited, for the requests of 'pids' and their
---descendants (backend "cgroup"). Node:can("disk.degrade", { ... }) says what can be done.
---@param disk { path: string, latency_s?: number, rate?: number, factor?: number, stall_s?: number, every_s?: number,
---pids?: integer[], backend?: "lab"|"cgroup", max_s?: number }
---@return culprit.Handle
function Node:degrade_disk(disk) end

---Lets a share of the reads of that disk fail with EIO. If the file system meets such an error in its own data and turns
---read-only, it is checked when the fault ends; 'pid' is the server that uses it, which is restarted for that.
---@param disk { path: string, errors_pct: number, pid?: integer, max_s?: number }
---@return culprit.Handle
function Node:fail_disk(disk) end

---The file system that holds 'path'. If 'path' is a block device: that device, with type "block device" and point "".
---@param path string
---@return { type: string, source: string, device: string, point: string, options: string, super_options:
---string, readonly: boolean, size_bytes: integer, free_bytes: integer, inodes: integer, free_inodes: integer }
function Node:fs_info(path) end

---@class culprit.ServerLimits
---@field nofile? integer  open files
---@field fsize? integer   bytes in a file
---@field as? integer      bytes of address space

---@class culprit.SmallStorage
---@field path string         the server's storage folder
---@field size_bytes integer  at least 1 MiB, not counting kept files
---@field inodes? integer     default: mkfs.ext4's
---@field spare_inodes? integer  instead of inodes: number of inodes free at the start, in addition to those of the
---folders
---@field prune? string       folders below 'path' that match this pattern (".glusterfs/*/*") are copied only if
---they contain a link or a kept file
---@field keep? string[]      files below 'path' that match one of these patterns are copied

---Runs a command to its end and returns its exit code (128 + signal) and at most 64 KiB of its output.
---@param command { argv: string[], timeout_s?: number, stdin?: string }
---@return { exit: integer, output: string }
function Node:run(command) end

---Can the node do this ("packets.drop", "packets.delay", "process.start", "limits.set", "signal.stop", "signal.pause",
---"group.limit", "service.restart", "fs.readonly", "disk.degrade")? With the arguments of a service's act, of
---make_readonly or of degrade_disk (which must be given) it also checks the server and its storage, with those of
---limit_group its control group, with those of drop_packets and delay_packets culprit's own SSH session. Changes nothing.
---@param what string
---@param with? table
---@return true|nil able, string? reason
function Node:can(what, with) end

---An active act on a node. It ends automatically with the fault.
---@class culprit.Handle
local Handle = {}

---For a process: sums over it and its descendants, running or ended; rss_bytes is the memory they use now.
---@return { running: boolean, exit: integer?, pid: integer, read_bytes: integer, write_bytes: integer,
---rchar: integer, wchar: integer, cpu_s: number, rss_bytes: integer }
function Handle:status() end

---For a packet rule.
---@return { seen: integer, dropped: integer, seen_bytes: integer, dropped_bytes: integer }
function Handle:counters() end

---Of Node:delay_packets, ten times a second. seconds: since it began; packets, bytes: that have passed; waited_s: of all of
---these together; dropped: packets that found no room; running: its program.
---@return { running: boolean, seconds: number, packets: integer, bytes: integer, waited_s: number, dropped: integer }
function Handle:delays() end

---Of a slowed disk. seconds: since the act began. Of its device: reads and writes (ios), their time with waiting, bytes
---(of the backend "cgroup": those of the limited processes), how many are in flight. Of the backend "lab", since the act
---began: requests, and how many of these were delayed, held by a stall (those that wait in one now included), or
---failed; added_s: what faults added to all of them.
---@return { backend: string, seconds: number, ios: integer, ios_s: number, bytes: integer, in_flight: integer, requests:
---integer?, delayed: integer?, held: integer?, failed: integer?, added_s: number? }
function Handle:disk_counters() end

---Of Node:limit_group. throttled_s: for which the server's processors waited for the quota; it was used up in 'throttled'
---of its 'periods'; reclaims: how often the server was to reclaim memory. Compare two readings: the group may be older.
---@return { throttled_s: number, periods: integer, throttled: integer, reclaims: integer }
function Handle:usage() end

---Of Node:pause. stops: how often every thread of all was seen stopped; stopped_s: for how long, from then on, in pauses
---that have ended; whole_s: from the first pause to the end of the last whole period.
---@return { running: boolean, stops: integer, stopped_s: number, whole_s: number }
function Handle:pauses() end

---Ends the act now; fails if the end cannot be verified.
function Handle:undo() end

---The prelude: functions that built-in faults and workloads share, for use in yours.
---@class culprit.Prelude
---@field dd_params table<string, culprit.Param>  parameters of dd workloads: per_server, records, direct, jobs
---@field memory_params table<string, culprit.Param>  parameters of faults that take memory: bytes, leave
---@field iozone_params table<string, culprit.Param>  parameters of IOzone workloads: file, record, direct
local Prelude = {}

---check: the victim can do 'what' with each of its server processes (see Node:can; 'with': further arguments of
---the act).
---@param ctx culprit.Context
---@param what string
---@param with? table
---@return any able, string? reason
function Prelude.each_server(ctx, what, with) end

---check: the victim has one server process and can do 'what' with it; arguments as for each_server.
---@param ctx culprit.Context
---@param what string
---@param with? table
---@return any able, string? reason
function Prelude.one_server(ctx, what, with) end

---A small storage for the victim's server to start on (Node:restart_service), according to the file system's
---empty_storage. more: further fields.
---@param ctx culprit.Context
---@param size_bytes integer
---@param more? table
---@return culprit.SmallStorage
function Prelude.small_storage(ctx, size_bytes, more) end

---Does the file system lack a step (FileSystem.missing)?
---@param ctx culprit.Context
---@param step string
---@return boolean
function Prelude.lacks(ctx, step) end

---inject: sets a soft limit of each of the victim's server processes (Node:limit_service).
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
---@param key? string  of ctx.state, where there are several such handles
---@return number? value, string? reason
function Prelude.growth(ctx, handle, field, least, key) end

---verify: the same of several handles, all of which must have grown; returns the sum.
---@param ctx culprit.Context
---@param handles table<string, culprit.Handle>  by a name for the reason
---@param field string
---@param least? number
---@return number? sum, string? reason
function Prelude.all_grow(ctx, handles, field, least) end

---check: the file system is mounted on the first client.
---@param ctx culprit.Context
---@return boolean? able, string? reason
function Prelude.is_mounted(ctx) end

---inject: a new folder on that mount; the undo removes it with its content.
---@param ctx culprit.Context
---@param name string
---@return string path
function Prelude.folder_of_client(ctx, name) end

---inject: busy threads on the victim; 0: one for each processor.
---@param ctx culprit.Context
---@param threads integer
function Prelude.take_processors(ctx, threads) end

---verify: the threads of take_processors run, and exhaust the victim's quota if it has one.
---@param ctx culprit.Context
---@return table? evidence, string? reason
function Prelude.processors_taken(ctx) end

---check: the victim has the memory for ctx.params.bytes and leave, and no other node needs it.
---@param ctx culprit.Context
---@return any able, string? reason
function Prelude.can_take_memory(ctx) end

---inject: takes ctx.params.bytes of memory; if that is 0, all but ctx.params.leave.
---@param ctx culprit.Context
function Prelude.take_memory(ctx) end

---verify: take_memory holds the memory, and the victim's available memory has shrunk by as much.
---@param ctx culprit.Context
---@return table? evidence, string? reason
function Prelude.memory_taken(ctx) end

---check: the inventory names a spare device of the victim.
---@param ctx culprit.Context
---@return any able, string? reason
function Prelude.has_spare(ctx) end

---inject: reads the spare device for ctx.params.share percent of the time, 'block' bytes per read.
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

---verify: the zeros arrive.
---@param ctx culprit.Context
---@return table? evidence, string? reason
function Prelude.zeros_arrive(ctx) end

---The nodes that the victim has to do with: servers, clients, or all of them, without itself.
---@param ctx culprit.Context
---@param which "all"|"servers"|"clients"
---@return culprit.Node[]
function Prelude.peers(ctx, which) end

---check: the link between the victim and all its peers can be made slow. 'how': either latency_s and jitter_s, or rate and
---buffer_s, of Node:delay_packets; ctx.params.direction: "in", "out" or "both".
---@param ctx culprit.Context
---@param how table
---@return any able, string? reason
function Prelude.can_slow_link(ctx, how) end

---inject: makes it slow.
---@param ctx culprit.Context
---@param how table
function Prelude.slow_link(ctx, how) end

---verify: in each direction packets have passed since the last success, and waited on average for least_s, and for their
---bytes at the rate; and no more bytes passed than that.
---@param ctx culprit.Context
---@param how { least_s?: number, rate?: number }
---@return table? evidence, string? reason
function Prelude.link_is_slow(ctx, how) end

---A client's file in the run's folder on the mount.
---@param ctx culprit.Context
---@param client culprit.Node
---@param what string
---@return string path
function Prelude.file(ctx, client, what) end

---The command that makes the run's folder.
---@param ctx culprit.Context
---@param client culprit.Node
---@return string[] argv
function Prelude.make_folder(ctx, client) end

---dd's command, in records of ctx.params.per_server bytes for each server: reads ("if") or writes ("of") the
---file, or ctx.params.jobs files at a time.
---@param ctx culprit.Context
---@param side "if"|"of"
---@param file string
---@param ... string further operands
---@return string[] argv
function Prelude.dd(ctx, side, file, ...) end

---The files that this command uses: FILE, or FILE.1 FILE.2 ...
---@param ctx culprit.Context
---@param file string
---@return string[] paths
function Prelude.dd_files(ctx, file) end

---dd's operand for direct I/O, "iflag=direct", or "iflag=nocache" if ctx.params.direct is 0 or the file system lacks
---direct I/O.
---@param ctx culprit.Context
---@param side "iflag"|"oflag"
---@return string operand
function Prelude.dd_flag(ctx, side) end

---dd's operand for writing over a file: "conv=notrunc", plus an fsync without direct I/O.
---@param ctx culprit.Context
---@return string operand
function Prelude.dd_conversion(ctx) end

---prepare: the file "dd", or one for each job, of ctx.params.records records, written once per run.
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

---prepare: checks the parameters; returns the command that makes the run's folder, then the given commands.
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
