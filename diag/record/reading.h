/*
 * Readings: values that the sampler reads from the kernel once a second, in addition to system
 * calls. One table defines them all: X(enumerator, name, unit, kind, definition). sar,
 * node_exporter and ss show the same; Dinh 2009 calls them hardware statistics.
 *
 *   COUNT   growth of a counter within the second
 *   LEVEL   a value at the end of the second
 *
 * TCP readings (from TCP_FIRST on) cover the sockets of the sampled processes: one reading for each
 * peer address, summed over the 'count' sockets with that peer (the mean of a LEVEL is sum /
 * count).
 *
 * A container, or a node of a lab, may have limits, so that the machine's processors and memory are
 * not the node's. If the sampler's own control group or an ancestor has a quota of processor time,
 * the cpu_ readings are those of the closest such group; likewise the memory_ readings if one has a
 * limit of memory. Otherwise they are the machine's.
 *
 * process_throttled_s and the process_ pressures are those of the sampled processes' control
 * groups: a service's limits (io.max, cpu.max, memory.high) show there and not in the machine's
 * disk or processors. The quota is the closest one from a group upwards. Without a quota, or on
 * kernels without pressure of groups, there is no such reading.
 *
 * The qdisc_ readings are of the root and ingress disciplines of each interface: the kernel adds
 * the drops and backlog of lower disciplines to the root's. Packets delayed by netem or a shaper
 * are in their backlog.
 *
 * If there are several processors or interfaces, each also has its own readings: records with
 * record_reading_thing, whose sum is the reading without it.
 *
 * Sources: sock_diag(7) with INET_DIAG_INFO (struct tcp_info, linux/tcp.h), rtnetlink(7) with
 * RTM_GETQDISC (struct gnet_stats_queue, linux/gen_stats.h), /proc/net/dev, /proc/diskstats,
 * /proc/pressure, /proc/stat, /proc/meminfo, /proc/PID/{stat,schedstat,io,cgroup}, /proc/vmstat; of
 * control groups (cgroups(7)) version 1 cpuacct.usage_percpu, cpu.stat,
 * memory.{usage_in_bytes,limit_in_bytes,stat}, version 2 cpu.stat, {cpu,io}.pressure,
 * memory.{current,max,stat,pressure}.
 *
 * Logs store the numbers of readings: add new ones at the end.
 */
#ifndef CULPRIT_DIAG_RECORD_READING_H
#define CULPRIT_DIAG_RECORD_READING_H

#include <stdbool.h>

enum reading_kind { READING_COUNT, READING_LEVEL };

#define READINGS(X)                                                                                \
	READINGS_NODE(X)                                                                           \
	READINGS_TCP(X)                                                                            \
	READINGS_MORE(X)

#define READINGS_NODE(X)                                                                           \
	X(NIC_RECEIVED, "nic_received_bytes", "bytes", COUNT,                                      \
		"received on the node's interfaces without lo")                                    \
	X(NIC_SENT, "nic_sent_bytes", "bytes", COUNT, "sent on the node's interfaces without lo")  \
	X(NIC_RECEIVED_PACKETS, "nic_received_packets", "packets", COUNT,                          \
		"received on the node's interfaces")                                               \
	X(NIC_SENT_PACKETS, "nic_sent_packets", "packets", COUNT, "sent on the node's interfaces") \
	X(NIC_DROPPED, "nic_dropped_packets", "packets", COUNT,                                    \
		"dropped by the interfaces, either way, errors included")                          \
	X(DISK_READS, "disk_reads", "requests", COUNT,                                             \
		"reads that the storage's device completed")                                       \
	X(DISK_WRITES, "disk_writes", "requests", COUNT,                                           \
		"writes that the storage's device completed")                                      \
	X(DISK_READ_BYTES, "disk_read_bytes", "bytes", COUNT, "read from the storage's device")    \
	X(DISK_WRITTEN_BYTES, "disk_written_bytes", "bytes", COUNT,                                \
		"written to the storage's device")                                                 \
	X(DISK_READ_TIME, "disk_read_time_s", "s", COUNT,                                          \
		"time that completed reads spent in the device and its queue")                     \
	X(DISK_WRITE_TIME, "disk_write_time_s", "s", COUNT,                                        \
		"time that completed writes spent in the device and its queue")                    \
	X(DISK_BUSY, "disk_busy_s", "s", COUNT, "time in which the device was busy")               \
	X(DISK_QUEUE, "disk_queue_s", "s", COUNT,                                                  \
		"requests in the device and its queue, integrated over time")                      \
	X(CPU_BUSY, "cpu_busy_s", "s", COUNT,                                                      \
		"time in which the node's processors were busy, over all of them")                 \
	X(CPU_IDLE, "cpu_idle_s", "s", COUNT, "time in which the node's processors were idle")     \
	X(CPU_PRESSURE, "cpu_pressure_s", "s", COUNT,                                              \
		"time in which something runnable waited for a processor (PSI, some)")             \
	X(IO_PRESSURE, "io_pressure_s", "s", COUNT,                                                \
		"time in which something waited for storage (PSI, some)")                          \
	X(MEMORY_PRESSURE, "memory_pressure_s", "s", COUNT,                                        \
		"time in which something waited for memory (PSI, some)")                           \
	X(MEMORY_AVAILABLE, "memory_available_bytes", "bytes", LEVEL,                              \
		"memory that the node could still allocate")                                       \
	X(PROCESS_CPU, "process_cpu_s", "s", COUNT, "processor time of the sampled processes")     \
	X(PROCESS_WAIT, "process_wait_s", "s", COUNT,                                              \
		"time in which their threads were runnable and did not run")                       \
	X(PROCESS_MEMORY, "process_memory_bytes", "bytes", LEVEL,                                  \
		"resident memory of the sampled processes")                                        \
	X(PROCESS_READ, "process_read_bytes", "bytes", COUNT,                                      \
		"fetched from storage for the sampled processes")                                  \
	X(PROCESS_WRITTEN, "process_written_bytes", "bytes", COUNT,                                \
		"sent towards storage by the sampled processes")

#define READINGS_TCP(X)                                                                            \
	X(TCP_SENT, "tcp_sent_bytes", "bytes", COUNT,                                              \
		"payload sent, retransmissions included (tcpi_bytes_sent)")                        \
	X(TCP_RECEIVED, "tcp_received_bytes", "bytes", COUNT,                                      \
		"payload received in order (tcpi_bytes_received)")                                 \
	X(TCP_SENT_SEGMENTS, "tcp_sent_segments", "segments", COUNT,                               \
		"segments sent (tcpi_segs_out)")                                                   \
	X(TCP_RECEIVED_SEGMENTS, "tcp_received_segments", "segments", COUNT,                       \
		"segments received (tcpi_segs_in)")                                                \
	X(TCP_RETRANSMITTED, "tcp_retransmitted_segments", "segments", COUNT,                      \
		"segments sent again (tcpi_total_retrans)")                                        \
	X(TCP_OUT_OF_ORDER, "tcp_out_of_order_segments", "segments", COUNT,                        \
		"received beyond a gap (tcpi_rcv_ooopack)")                                        \
	X(TCP_DUPLICATES, "tcp_duplicate_segments", "segments", COUNT,                             \
		"sent again needlessly (tcpi_dsack_dups)")                                         \
	X(TCP_BUSY, "tcp_busy_s", "s", COUNT, "time with data to send (tcpi_busy_time)")           \
	X(TCP_RECEIVER_LIMITED, "tcp_receiver_limited_s", "s", COUNT,                              \
		"of that, held up by the receiver's window")                                       \
	X(TCP_SENDER_LIMITED, "tcp_sender_limited_s", "s", COUNT,                                  \
		"of that, held up by the send buffer")                                             \
	X(TCP_RTT, "tcp_rtt_s", "s", LEVEL, "smoothed round-trip time (tcpi_rtt)")                 \
	X(TCP_RTT_VARIATION, "tcp_rtt_variation_s", "s", LEVEL,                                    \
		"its mean deviation (tcpi_rttvar)")                                                \
	X(TCP_WINDOW, "tcp_window_segments", "segments", LEVEL,                                    \
		"congestion window (tcpi_snd_cwnd)")                                               \
	X(TCP_DELIVERY_RATE, "tcp_delivery_rate", "bytes/s", LEVEL,                                \
		"last rate of delivery (tcpi_delivery_rate)")                                      \
	X(TCP_UNSENT, "tcp_unsent_bytes", "bytes", LEVEL,                                          \
		"written by the process, but not yet sent (tcpi_notsent_bytes)")                   \
	X(TCP_UNREAD, "tcp_unread_bytes", "bytes", LEVEL,                                          \
		"received, but not yet read by the process (idiag_rqueue)")

/* Further readings of the node. */
#define READINGS_MORE(X)                                                                           \
	X(CPU_THROTTLED, "cpu_throttled_s", "s", COUNT,                                            \
		"processor time that a quota held back, over all processors")                      \
	X(CPU_THROTTLINGS, "cpu_throttled_periods", "periods", COUNT,                              \
		"periods of a quota in which it was exhausted")                                    \
	X(MEMORY_TOTAL, "memory_total_bytes", "bytes", LEVEL, "memory that the node has")          \
	X(MEMORY_USED, "memory_used_bytes", "bytes", LEVEL,                                        \
		"memory of the node in use, buffers and caches included")                          \
	X(MEMORY_FREE, "memory_free_bytes", "bytes", LEVEL, "unused memory of the node")           \
	X(MEMORY_SHARED, "memory_shared_bytes", "bytes", LEVEL,                                    \
		"memory in tmpfs and shared segments")                                             \
	X(MEMORY_BUFFERS, "memory_buffers_bytes", "bytes", LEVEL,                                  \
		"memory that caches block devices; a control group counts it as cached")           \
	X(MEMORY_CACHED, "memory_cached_bytes", "bytes", LEVEL,                                    \
		"memory in the page cache, shared memory included")                                \
	X(MEMORY_FAULTS, "memory_faults", "faults", COUNT, "page faults of all kinds")             \
	X(MEMORY_MAJOR_FAULTS, "memory_major_faults", "faults", COUNT,                             \
		"page faults that had to wait for storage")                                        \
	X(MEMORY_REFAULTS, "memory_refaulted_pages", "pages", COUNT,                               \
		"pages fetched again soon after they had been dropped for others")                 \
	X(LOOPBACK, "loopback_bytes", "bytes", COUNT, "sent, and so received, on lo")              \
	X(DRIVE_READ, "drive_read_bytes", "bytes", COUNT,                                          \
		"read from the whole drive that holds the storage's device")                       \
	X(DRIVE_WRITTEN, "drive_written_bytes", "bytes", COUNT, "written to that drive")           \
	X(DRIVE_BUSY, "drive_busy_s", "s", COUNT, "time in which that drive was busy")             \
	X(MEMORY_UNWRITTEN, "memory_unwritten_bytes", "bytes", LEVEL,                              \
		"changed file data in the machine's memory, not yet on a drive")                   \
	X(CPU_STEAL, "cpu_steal_s", "s", COUNT,                                                    \
		"time that the hypervisor gave the machine's processors to other guests")          \
	X(QDISC_DROPPED, "qdisc_dropped_packets", "packets", COUNT,                                \
		"dropped by the interfaces' queueing disciplines (tc), lo left out")               \
	X(QDISC_OVERLIMITS, "qdisc_overlimits", "times", COUNT,                                    \
		"times that they delayed a packet to keep a rate")                                 \
	X(QDISC_BACKLOG, "qdisc_backlog_bytes", "bytes", LEVEL, "bytes queued in them")            \
	X(PROCESS_THROTTLED, "process_throttled_s", "s", COUNT,                                    \
		"processor time that a quota on the processes' control groups held back")          \
	X(PROCESS_IO_PRESSURE, "process_io_pressure_s", "s", COUNT,                                \
		"time in which something in these groups waited for storage (PSI, some)")          \
	X(PROCESS_MEMORY_PRESSURE, "process_memory_pressure_s", "s", COUNT,                        \
		"time in which something in these groups waited for memory (PSI, some)")

enum reading {
#define READING_ENUM(e, name, unit, kind, definition) READING_##e,
	READINGS(READING_ENUM)
#undef READING_ENUM
		READING_TOTAL,
	READING_TCP_FIRST = READING_TCP_SENT,
	READING_TCP_END = READING_TCP_UNREAD + 1
};

/* Does the reading cover sockets with a peer? */
static inline bool reading_is_tcp(enum reading r)
{
	return r >= READING_TCP_FIRST && r < READING_TCP_END;
}

const char *reading_name(enum reading r); /* "tcp_retransmitted_segments" */
const char *reading_unit(enum reading r); /* "segments" */
enum reading_kind reading_kind(enum reading r);

#endif
