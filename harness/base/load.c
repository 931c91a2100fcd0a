/* Reads a machine's load from /proc. */
#include "harness/base/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"

static int read_processors(struct load *l, struct err *e)
{
	double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
	unsigned long long user, nice, system, idle, iowait = 0, irq = 0, softirq = 0, steal = 0;
	char *text;
	int rc = file_read("/proc/stat", &text, NULL, e);

	if (rc)
		return rc;
	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
		    &idle, &iowait, &irq, &softirq, &steal) < 4)
		rc = err_set(e, -EPROTO, "cannot read '/proc/stat'");
	for (const char *p = text; !rc && (p = strstr(p, "\ncpu")); p++)
		l->cpus++;
	free(text);
	if (rc)
		return rc;
	l->busy_s = (double)(user + nice + system + irq + softirq) * tick_s;
	l->iowait_s = (double)iowait * tick_s;
	l->steal_s = (double)steal * tick_s;
	return 0;
}

static void read_pressure(struct load *l)
{
	static const char *const files[] = {[LOAD_CPU] = "/proc/pressure/cpu",
		[LOAD_IO] = "/proc/pressure/io",
		[LOAD_MEMORY] = "/proc/pressure/memory"};

	for (int i = 0; i < N_PRESSURES; i++) {
		char *text, *total;

		l->pressure_s[i] = -1;
		if (file_read(files[i], &text, NULL, NULL))
			continue;
		total = strstr(text, "total=");
		if (total)
			l->pressure_s[i] = strtod(total + strlen("total="), NULL) / 1e6;
		free(text);
	}
}

static uint64_t kilobytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

int load_read(struct load *out, struct err *e)
{
	struct load l = {.at_s = clock_mono_s()};
	char *text;
	int rc = read_processors(&l, e);

	if (!rc)
		rc = file_read("/proc/meminfo", &text, NULL, e);
	if (rc)
		return rc;
	l.memory_bytes = kilobytes(text, "MemTotal:");
	l.available_bytes = kilobytes(text, "MemAvailable:");
	free(text);
	read_pressure(&l);
	if (!file_read("/proc/loadavg", &text, NULL, NULL)) {
		l.load1 = strtod(text, NULL);
		free(text);
	}
	*out = l;
	return 0;
}
