/* Explains why the kernel did not load the programs, from the output of libbpf. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "diag/capture/ebpf/ebpf.h"

#define LOG_BEGINS "-- BEGIN PROG LOAD LOG --\n"
#define LOG_ENDS "-- END PROG LOAD LOG --"
#define PROGRAM_BEGINS "libbpf: prog '"

enum { LINES = 2 }; /* the verifier's last lines: the instruction and the mistake */

/* Joins the last lines of the verifier's log, without source lines and statistics. */
static void keep_log(struct refusal *r, const char *log)
{
	const char *end = strstr(log, LOG_ENDS), *lines[LINES] = {NULL};
	size_t lengths[LINES] = {0}, used = 0;

	for (const char *at = log; *at && (!end || at < end);) {
		size_t n = strcspn(at, "\n");

		if (n && *at != ';' && strncmp(at, "processed ", 10) &&
			strncmp(at, "peak_states ", 12)) {
			memmove(lines, lines + 1, (LINES - 1) * sizeof(*lines));
			memmove(lengths, lengths + 1, (LINES - 1) * sizeof(*lengths));
			lines[LINES - 1] = at;
			lengths[LINES - 1] = n;
		}
		at += n + (at[n] == '\n');
	}
	for (int i = 0; i < LINES; i++)
		if (lines[i] && used < sizeof(r->verifier))
			used += (size_t)snprintf(r->verifier + used, sizeof(r->verifier) - used,
				"%s%.*s", used ? "; " : "",
				lengths[i] < 160 ? (int)lengths[i] : 160, lines[i]);
}

void refusal_add(struct refusal *r, const char *warning)
{
	const char *log = strstr(warning, LOG_BEGINS), *name = strstr(warning, PROGRAM_BEGINS);

	if (log && !*r->verifier)
		keep_log(r, log + strlen(LOG_BEGINS));
	if (name && !*r->program && strstr(warning, "load failed")) {
		name += strlen(PROGRAM_BEGINS);
		snprintf(r->program, sizeof(r->program), "%.*s", (int)strcspn(name, "'\n"), name);
	}
	if (!*r->first)
		snprintf(r->first, sizeof(r->first), "%.*s", (int)strcspn(warning, "\n"), warning);
}

int refusal_say(const struct refusal *r, int rc, struct err *e)
{
	const char *why = *r->verifier ? r->verifier : r->first, *sep = *why ? "; " : "";

	if (rc == -ENOMEM)
		return err_set(e, rc, "the kernel has no memory for the tracer's maps%s%s",
			*r->first ? ": " : "", r->first);
	/* The verifier has run: eBPF is allowed, but not this program. */
	if (*r->program && *r->verifier)
		return err_set(e, -EOPNOTSUPP, "the kernel refuses the program '%s' (%s%s%s)",
			r->program, strerror(-rc), sep, why);
	if (rc == -EPERM || rc == -EACCES)
		return err_set(e, -EOPNOTSUPP,
			"the kernel does not allow eBPF to this user (%s%s%s)", strerror(-rc), sep,
			why);
	return err_set(e, -EOPNOTSUPP, "the kernel does not load the tracer (%s%s%s)",
		strerror(-rc), sep, why);
}
