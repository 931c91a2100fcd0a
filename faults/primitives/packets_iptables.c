/*
 * The same with iptables: a chain of its own, in 'filter', for each IP version
 * that the node has; INPUT or OUTPUT jumps to it. iptables has no transaction over
 * several commands, so the jumps come last and undo removes whatever there is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/primitives/packets.h"
#include "harness/base/proc.h"

#define TIMEOUT_S 10

static const struct {
	int family;
	const char *program;
} versions[] = {{AF_INET, "iptables"}, {AF_INET6, "ip6tables"}};

#define N_VERSIONS (sizeof(versions) / sizeof(versions[0]))

static bool present(size_t version)
{
	return versions[version].family == AF_INET || !access("/proc/net/if_inet6", F_OK);
}

/* Runs 'line', split at blanks: no argument of ours holds one. */
static int iptables(size_t version, char **output, struct err *e, const char *line)
{
	const char *argv[48] = {versions[version].program, "-w", "5"};
	char *copy = strdup(line), *save = NULL, *word;
	size_t n = 3;
	int rc;

	if (!copy)
		return err_errno(e, -ENOMEM, "cannot run '%s'", argv[0]);
	for (word = strtok_r(copy, " ", &save); word && n < 47; word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	rc = proc_run_ok(argv, TIMEOUT_S, output, e);
	free(copy);
	return rc;
}

int iptables_check(struct err *e)
{
	for (size_t v = 0; v < N_VERSIONS; v++) {
		char *output = NULL;
		int rc;

		if (!present(v))
			continue;
		rc = iptables(v, &output, e, "-S INPUT");
		free(output);
		if (rc)
			return rc;
	}
	return 0;
}

static int jump(size_t v, const struct packets_spec *s, const struct packets_address *from,
	const struct packets_address *to, const char *chain, struct err *e)
{
	char line[256], source[64] = "", target[64] = "";

	if (from)
		snprintf(source, sizeof(source), "-s %s", from->text);
	if (to)
		snprintf(target, sizeof(target), "-d %s", to->text);
	snprintf(line, sizeof(line), "-I %s ! %s lo %s %s -j %s", s->out ? "OUTPUT" : "INPUT",
		s->out ? "-o" : "-i", source, target, chain);
	return iptables(v, NULL, e, line);
}

static int drop_version(size_t v, const struct packets_spec *s, const char *chain, struct err *e)
{
	char line[256], chance[64] = "";
	int family = versions[v].family, rc;

	if (s->percent < 100)
		snprintf(chance, sizeof(chance), "-m statistic --mode random --probability %.8f",
			s->percent / 100);
	snprintf(line, sizeof(line), "-N %s", chain);
	rc = iptables(v, NULL, e, line);
	if (!rc) {
		snprintf(line, sizeof(line), "-A %s -m comment --comment culprit-seen", chain);
		rc = iptables(v, NULL, e, line);
	}
	if (!rc) {
		snprintf(line, sizeof(line),
			"-A %s %s -m comment --comment culprit-dropped -j DROP", chain, chance);
		rc = iptables(v, NULL, e, line);
	}
	for (size_t i = 0; !rc && i < (s->n_from ? s->n_from : 1); i++) {
		for (size_t j = 0; !rc && j < (s->n_to ? s->n_to : 1); j++) {
			const struct packets_address *from = s->n_from ? &s->from[i] : NULL;
			const struct packets_address *to = s->n_to ? &s->to[j] : NULL;

			if ((!from || from->family == family) && (!to || to->family == family))
				rc = jump(v, s, from, to, chain, e);
		}
	}
	return rc;
}

int iptables_drop(const struct packets_spec *s, const char *chain, struct err *e)
{
	int rc = 0;

	for (size_t v = 0; v < N_VERSIONS && !rc; v++)
		if (present(v))
			rc = drop_version(v, s, chain, e);
	return rc;
}

/* "packets bytes" at the head of the line that holds 'mark'. */
static bool counter(
	const char *text, const char *mark, unsigned long long *packets, unsigned long long *bytes)
{
	const char *line = strstr(text, mark);

	while (line && line > text && line[-1] != '\n')
		line--;
	return line && sscanf(line, " %llu %llu", packets, bytes) == 2;
}

int iptables_read(const char *chain, struct packets_counters *c, struct err *e)
{
	struct packets_counters sum = {0};
	char line[128];

	snprintf(line, sizeof(line), "-n -v -x -L %s", chain);
	for (size_t v = 0; v < N_VERSIONS; v++) {
		unsigned long long seen, seen_bytes, dropped, dropped_bytes;
		char *text = NULL;
		int rc = present(v) ? iptables(v, &text, e, line) : 0;

		if (text && !rc &&
			(!counter(text, "culprit-seen", &seen, &seen_bytes) ||
				!counter(text, "culprit-dropped", &dropped, &dropped_bytes)))
			rc = err_set(e, -EBADMSG, "cannot read what '%s' prints for the chain '%s'",
				versions[v].program, chain);
		if (text && !rc) {
			sum.seen += seen;
			sum.seen_bytes += seen_bytes;
			sum.dropped += dropped;
			sum.dropped_bytes += dropped_bytes;
		}
		free(text);
		if (rc)
			return rc;
	}
	*c = sum;
	return 0;
}

static int has_version(size_t v, const char *chain, bool *has, struct err *e)
{
	char *text = NULL, mark[64];
	int rc = iptables(v, &text, e, "-S");

	snprintf(mark, sizeof(mark), "-N %s\n", chain);
	if (!rc)
		*has = strstr(text, mark) != NULL;
	free(text);
	return rc;
}

int iptables_has(const char *chain, bool *has, struct err *e)
{
	bool any = false, one = false;

	for (size_t v = 0; v < N_VERSIONS; v++) {
		int rc = present(v) ? has_version(v, chain, &one, e) : 0;

		if (rc)
			return rc;
		any = any || one;
	}
	*has = any;
	return 0;
}

static int remove_version(size_t v, const char *chain, struct err *e)
{
	char *rules = NULL, *line, *save = NULL, target[64], command[512];
	int rc = iptables(v, &rules, e, "-S");

	snprintf(target, sizeof(target), " -j %s", chain);
	for (line = rc ? NULL : strtok_r(rules, "\n", &save); line && !rc;
		line = strtok_r(NULL, "\n", &save)) {
		size_t n = strlen(line), m = strlen(target);

		if (strncmp(line, "-A ", 3) || n < m || strcmp(line + n - m, target))
			continue;
		snprintf(command, sizeof(command), "-D %s", line + 3);
		rc = iptables(v, NULL, e, command);
	}
	free(rules);
	if (!rc) {
		snprintf(command, sizeof(command), "-F %s", chain);
		rc = iptables(v, NULL, e, command);
	}
	if (!rc) {
		snprintf(command, sizeof(command), "-X %s", chain);
		rc = iptables(v, NULL, e, command);
	}
	return rc;
}

int iptables_remove(const char *chain, struct err *e)
{
	int first = 0;

	for (size_t v = 0; v < N_VERSIONS; v++) {
		bool has = false;
		int rc = present(v) ? has_version(v, chain, &has, first ? NULL : e) : 0;

		if (!rc && has)
			rc = remove_version(v, chain, first ? NULL : e);
		first = first ? first : rc;
	}
	return first;
}
