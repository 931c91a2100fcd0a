/* Parses the kernel's text files in /proc and /sys for the sampler. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/hash.h"

/* A decimal number after blanks, ended by a blank, newline or the end of the text. */
static bool text_number(const char **at, uint64_t *out)
{
	const char *p = *at;
	uint64_t v = 0;

	while (*p == ' ' || *p == '\t')
		p++;
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (v > (UINT64_MAX - (uint64_t)(*p - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(*p - '0');
	}
	if (*p && *p != ' ' && *p != '\t' && *p != '\n')
		return false;
	*at = p;
	*out = v;
	return true;
}

static size_t numbers(const char **at, uint64_t *out, size_t n)
{
	size_t i = 0;

	while (i < n && text_number(at, &out[i]))
		i++;
	return i;
}

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

void text_net_dev(const char *text, struct sampler_snapshot *s)
{
	enum { BYTES, PACKETS, ERRORS, DROPS, SENT = 8, FIELDS = 16 };

	for (const char *line = text; *line; line = next_line(line)) {
		size_t all = strcspn(line, "\n"), n = strcspn(line, ":\n");
		uint64_t v[FIELDS];
		const char *at = line + n + 1;
		struct thing *t;

		while (n && *line == ' ')
			line++, n--, all--;
		if (!n || n == all || numbers(&at, v, FIELDS) < SENT + DROPS + 1)
			continue;
		t = snapshot_add(s, THING_INTERFACE, hash_bytes(line, n, HASH_START));
		if (!t)
			return;
		if (n == 2 && !memcmp(line, "lo", 2)) {
			thing_set(t, READING_LOOPBACK, v[SENT + BYTES]);
			continue;
		}
		snprintf(t->name, sizeof(t->name), "%.*s", (int)n, line);
		thing_set(t, READING_NIC_RECEIVED, v[BYTES]);
		thing_set(t, READING_NIC_SENT, v[SENT + BYTES]);
		thing_set(t, READING_NIC_RECEIVED_PACKETS, v[PACKETS]);
		thing_set(t, READING_NIC_SENT_PACKETS, v[SENT + PACKETS]);
		thing_set(t, READING_NIC_DROPPED,
			v[ERRORS] + v[DROPS] + v[SENT + ERRORS] + v[SENT + DROPS]);
	}
}

static struct thing *add_cpu(struct sampler_snapshot *s, uint64_t cpu)
{
	struct thing *t = snapshot_add(s, THING_CPU, cpu);

	if (t)
		snprintf(t->name, sizeof(t->name), "cpu%u", (unsigned)cpu);
	return t;
}

/* Columns of /proc/stat. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, CPU_FIELDS };

/* "cpu0 user nice system idle iowait irq softirq steal ...": guests' time is already in user and
 * nice. */
void text_cpus(const char *text, struct sampler_snapshot *s)
{
	const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	for (const char *line = text; *line; line = next_line(line)) {
		uint64_t v[CPU_FIELDS] = {0}, cpu;
		const char *at = line + 3;
		struct thing *t;

		if (strncmp(line, "cpu", 3) || *at < '0' || *at > '9' || !text_number(&at, &cpu) ||
			numbers(&at, v, CPU_FIELDS) <= IDLE)
			continue;
		t = add_cpu(s, cpu);
		if (!t)
			return;
		thing_set(t, READING_CPU_BUSY,
			tick_ns * (v[USER] + v[NICE] + v[SYSTEM] + v[IRQ] + v[SOFTIRQ] + v[STEAL]));
		thing_set(t, READING_CPU_IDLE, tick_ns * (v[IDLE] + v[IOWAIT]));
	}
}

/* The line of all processors, "cpu  user ... steal ...". */
void text_steal(const char *text, struct thing *t)
{
	uint64_t v[STEAL + 1];
	const char *at = strncmp(text, "cpu ", 4) ? "" : text + 4;

	if (numbers(&at, v, STEAL + 1) == STEAL + 1)
		thing_set(t, READING_CPU_STEAL, v[STEAL]);
}

void text_usage_percpu(const char *text, struct sampler_snapshot *s)
{
	uint64_t ns;

	for (uint64_t cpu = 0; text_number(&text, &ns); cpu++) {
		struct thing *t = add_cpu(s, cpu);

		if (!t)
			return;
		thing_set(t, READING_CPU_BUSY, ns);
	}
}

/* Documentation/admin-guide/iostats.rst. */
enum {
	READS,
	READS_MERGED,
	SECTORS_READ,
	READ_MS,
	WRITES,
	WRITES_MERGED,
	SECTORS_WRITTEN,
	WRITE_MS,
	NOW,
	BUSY_MS,
	QUEUE_MS,
	FIELDS
};

static bool device_stats(const char *text, unsigned major, unsigned minor, uint64_t v[FIELDS])
{
	for (const char *line = text; *line; line = next_line(line)) {
		uint64_t device[2];
		const char *at = line;

		if (numbers(&at, device, 2) < 2 || device[0] != major || device[1] != minor)
			continue;
		at += strspn(at, " ");
		at += strcspn(at, " \n"); /* the device's name */
		if (numbers(&at, v, FIELDS) == FIELDS)
			return true;
	}
	return false;
}

bool text_diskstats(const char *text, unsigned major, unsigned minor, struct thing *t)
{
	uint64_t v[FIELDS];

	if (!device_stats(text, major, minor, v))
		return false;
	thing_set(t, READING_DISK_READS, v[READS]);
	thing_set(t, READING_DISK_WRITES, v[WRITES]);
	thing_set(t, READING_DISK_READ_BYTES, v[SECTORS_READ]);
	thing_set(t, READING_DISK_WRITTEN_BYTES, v[SECTORS_WRITTEN]);
	thing_set(t, READING_DISK_READ_TIME, v[READ_MS]);
	thing_set(t, READING_DISK_WRITE_TIME, v[WRITE_MS]);
	thing_set(t, READING_DISK_BUSY, v[BUSY_MS]);
	thing_set(t, READING_DISK_QUEUE, v[QUEUE_MS]);
	return true;
}

bool text_drive(const char *text, unsigned major, unsigned minor, struct thing *t)
{
	uint64_t v[FIELDS];

	if (!device_stats(text, major, minor, v))
		return false;
	thing_set(t, READING_DRIVE_READ, v[SECTORS_READ]);
	thing_set(t, READING_DRIVE_WRITTEN, v[SECTORS_WRITTEN]);
	thing_set(t, READING_DRIVE_BUSY, v[BUSY_MS]);
	return true;
}

bool text_pressure(const char *text, uint64_t *some_us)
{
	const char *at;

	if (strncmp(text, "some ", 5))
		return false;
	at = memmem(text, strcspn(text, "\n"), " total=", 7);
	if (!at)
		return false;
	at += 7;
	return *at != ' ' && *at != '\t' && text_number(&at, some_us);
}

bool text_named(const char *text, const char *name, uint64_t *out)
{
	const size_t n = strlen(name);

	for (const char *line = text; *line; line = next_line(line)) {
		const char *at = line + n;

		if (strncmp(line, name, n) || (*at != ' ' && *at != ':'))
			continue;
		at += *at == ':';
		return text_number(&at, out);
	}
	return false;
}

void text_meminfo(const char *text, struct thing *t)
{
	static const struct {
		const char *name;
		enum reading reading;
	} lines[] = {{"MemTotal", READING_MEMORY_TOTAL}, {"MemFree", READING_MEMORY_FREE},
		{"MemAvailable", READING_MEMORY_AVAILABLE}, {"Buffers", READING_MEMORY_BUFFERS},
		{"Cached", READING_MEMORY_CACHED}, {"Shmem", READING_MEMORY_SHARED}};
	uint64_t kib, total, unused;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (text_named(text, lines[i].name, &kib))
			thing_set(t, lines[i].reading, kib * 1024);
	if (text_named(text, "MemTotal", &total) && text_named(text, "MemFree", &unused) &&
		unused <= total)
		thing_set(t, READING_MEMORY_USED, (total - unused) * 1024);
}

void text_faults(const char *text, const char *prefix, struct thing *t)
{
	/* Before Linux 5.9 only those of files, under the last name. */
	static const struct {
		const char *name;
		enum reading reading;
	} lines[] = {{"pgfault", READING_MEMORY_FAULTS},
		{"pgmajfault", READING_MEMORY_MAJOR_FAULTS},
		{"workingset_refault_anon", READING_MEMORY_REFAULTS},
		{"workingset_refault_file", READING_MEMORY_REFAULTS},
		{"workingset_refault", READING_MEMORY_REFAULTS}};
	uint64_t sums[READING_TOTAL] = {0}, v;
	char name[64];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, lines[i].name);
		if (text_named(text, name, &v))
			thing_set(t, lines[i].reading, sums[lines[i].reading] += v);
	}
}

/* "PID (NAME) STATE PPID ...": the name may contain anything, including blanks, parentheses and
 * newlines. proc(5) counts fields from 1, beginning with the process number. */
bool text_process_stat(const char *text, struct process_stat *out)
{
	enum { FIRST = 4, UTIME = 14, STIME = 15, START = 22, RSS = 24 };
	uint64_t v[RSS + 1] = {0};
	const char *at = strrchr(text, ')');
	char state;

	if (!at || at[1] != ' ' || !at[2] || at[3] != ' ')
		return false;
	state = at[2];
	at += 3;
	for (int i = FIRST; i <= RSS; i++) {
		at += strspn(at, " ");
		if (*at == '-') /* negative: tpgid without a terminal, priorities; not used here */
			at++;
		if (!text_number(&at, &v[i]))
			return false;
	}
	*out = (struct process_stat){.state = state,
		.cpu_ticks = v[UTIME] + v[STIME],
		.start_ticks = v[START],
		.rss_pages = v[RSS]};
	return true;
}

bool text_schedstat(const char *text, uint64_t *wait_ns)
{
	uint64_t v[2]; /* running, waiting */

	if (numbers(&text, v, 2) < 2)
		return false;
	*wait_ns = v[1];
	return true;
}

void text_io(const char *text, struct thing *t)
{
	static const struct {
		const char *name;
		enum reading reading;
	} lines[] = {
		{"read_bytes:", READING_PROCESS_READ}, {"write_bytes:", READING_PROCESS_WRITTEN}};

	for (const char *line = text; *line; line = next_line(line)) {
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			const char *at = line + strlen(lines[i].name);
			uint64_t v;

			if (!strncmp(line, lines[i].name, strlen(lines[i].name)) &&
				text_number(&at, &v))
				thing_set(t, lines[i].reading, v);
		}
	}
}

bool text_mount_source(
	const char *mountinfo, unsigned major, unsigned minor, char *source, size_t size)
{
	for (const char *line = mountinfo; *line; line = next_line(line)) {
		size_t n = strcspn(line, "\n");
		const char *at = line, *dash = memmem(line, n, " - ", 3);
		uint64_t v[2], device[2];
		char pair[32];
		size_t len;

		if (!dash || numbers(&at, v, 2) < 2)
			continue;
		at += strspn(at, " ");
		len = strcspn(at, " ");
		if (len >= sizeof(pair))
			continue;
		memcpy(pair, at, len);
		pair[len] = '\0';
		pair[strcspn(pair, ":")] = ' ';
		at = pair;
		if (numbers(&at, device, 2) < 2 || device[0] != major || device[1] != minor)
			continue;
		at = dash + 3;
		at += strcspn(at, " \n"); /* the file system's type */
		if (*at != ' ')
			continue;
		len = strcspn(++at, " \n");
		if (!len || len >= size)
			continue;
		memcpy(source, at, len);
		source[len] = '\0';
		return true;
	}
	return false;
}
