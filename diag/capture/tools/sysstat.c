/*
 * sysstat's sadc(8), the sampler in table 2 of Kasick et al. 2009: CPU, memory, disks and network,
 * once a second, to its binary file, which sar(1) and sadf(1) read. It samples the machine; the
 * given processes only determine when it ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/capture/tools/tool.h"
#include "harness/base/file.h"

/* sadc writes a sample and sleeps until the next second, so while it sleeps no sample is half
 * written. */
static bool is_asleep(pid_t pid)
{
	char path[32], *text, *at;
	bool asleep;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (file_read(path, &text, NULL, NULL) < 0)
		return false;
	at = strrchr(text, ')');
	asleep = at && at[1] && at[2] == 'S';
	free(text);
	return asleep;
}

static int64_t size_of(const struct external *x)
{
	struct stat st;

	return stat(x->request->out, &st) < 0 ? -1 : (int64_t)st.st_size;
}

/* It sleeps, and the file's size did not change in the meantime. */
static bool at_rest(const struct external *x, int64_t *size)
{
	*size = size_of(x);
	return *size > 0 && is_asleep(x->tool) && size_of(x) == *size;
}

static bool is_ready(const struct external *x)
{
	int64_t size;

	return at_rest(x, &size);
}

static bool is_calm(struct external *x)
{
	return at_rest(x, &x->size_bytes);
}

/* The signal may still have come in the middle of the next sample, which is then cut off. */
static int tools_sysstat_finish(struct external *x, int code, bool stopped, struct err *e)
{
	(void)code;
	if (!stopped || x->size_bytes <= 0)
		return err_set(e, -EIO, "sadc did not end properly");
	if (size_of(x) != x->size_bytes && truncate(x->request->out, x->size_bytes) < 0)
		return err_errno(e, -errno, "cannot shorten '%s'", x->request->out);
	return 0;
}

int sysstat_trace(const struct trace_request *r, struct err *why)
{
	/* Debian's folder, and others. */
	static const char *const folders[] = {
		"/usr/lib/sysstat", "/usr/lib64/sa", "/usr/lib/sa", NULL};
	struct external x = {.request = r,
		.name = "sysstat",
		.stop_signal = SIGINT,
		.death_signal = SIGINT,
		.is_ready = is_ready,
		.is_calm = is_calm,
		.finish = tools_sysstat_finish};
	char *program = external_find("sadc", folders);
	const char *const argv[] = {program, "-S", "DISK", "1", r->out, NULL};
	int code;

	if (!program)
		return err_set(why, -EOPNOTSUPP,
			"there is no sadc here; on Debian: apt-get install sysstat");
	x.argv = argv;
	code = external_begin(&x);
	if (!code)
		code = external_run(&x);
	free(program);
	return code;
}
