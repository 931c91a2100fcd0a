/*
 * Packet drops with iptables: its own chain in 'filter', for each IP version that the node
 * has; INPUT or OUTPUT jumps to it. iptables has no transaction over several commands, so the jumps
 * come last, and undo removes whatever there is.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "faults/primitives/packets_impl.h"
#include "faults/primitives/procfs.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

#define TIMEOUT_S 10

static const struct {
	int family;
	const char *program;
} versions[] = {{AF_INET, "iptables"}, {AF_INET6, "ip6tables"}};

#define N_VERSIONS (sizeof(versions) / sizeof(versions[0]))

/* Runs a command that is split at blanks: no argument of ours holds one. */
static __attribute__((format(printf, 4, 5))) int iptables(
	size_t version, char **output, struct err *e, const char *format, ...)
{
	const char *argv[48] = {versions[version].program, "-w", "5"};
	auto_free char *line = NULL;
	char *save = NULL;
	size_t n = 3;
	va_list args;

	va_start(args, format);
	if (vasprintf(&line, format, args) < 0)
		line = NULL;
	va_end(args);
	if (!line)
		return err_errno(e, -ENOMEM, "cannot run '%s'", argv[0]);
	for (char *w = strtok_r(line, " ", &save); w && n < 47; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	return proc_run_ok(argv, TIMEOUT_S, output, e);
}

/* Calls 'fn' for each IP version of the node, until one fails. */
static int each_version(
	int (*fn)(size_t version, void *ctx, struct err *e), void *ctx, struct err *e)
{
	int rc = 0;

	for (size_t v = 0; v < N_VERSIONS && !rc; v++)
		if (versions[v].family == AF_INET || !access("/proc/net/if_inet6", F_OK))
			rc = fn(v, ctx, e);
	return rc;
}

static int check_version(size_t v, void *ctx, struct err *e)
{
	auto_free char *output = NULL;

	(void)ctx;
	return iptables(v, &output, e, "-S INPUT");
}

static int iptables_check(bool queue, struct err *e)
{
	auto_free char *targets = NULL;
	int rc = each_version(check_version, NULL, e);

	/* The list begins with the first command; a module that is not loaded yet is missing. */
	if (!rc && queue && !file_read("/proc/net/ip_tables_targets", &targets, NULL, NULL) &&
		!strstr(targets, "NFQUEUE\n"))
		rc = err_set(e, -EOPNOTSUPP,
			"iptables has no target NFQUEUE: load it with 'modprobe xt_NFQUEUE'");
	return rc;
}

struct iptables_drop {
	const struct packets_spec *spec;
	const char *chain;
	size_t version;
	struct err *e;
};

static int jump(void *ctx, const struct packets_address *from, const struct packets_address *to)
{
	const struct iptables_drop *d = ctx;
	int family = versions[d->version].family;
	bool out = d->spec->out;

	if ((from && from->family != family) || (to && to->family != family))
		return 0;
	return iptables(d->version, NULL, d->e, "-I %s ! %s lo %s %s %s %s -j %s",
		out ? "OUTPUT" : "INPUT", out ? "-o" : "-i", from ? "-s" : "",
		from ? from->text : "", to ? "-d" : "", to ? to->text : "", d->chain);
}

static int drop_version(size_t v, void *ctx, struct err *e)
{
	struct iptables_drop *d = ctx;
	char chance[64] = "", act[64] = "DROP";

	d->version = v;
	d->e = e;
	if (d->spec->percent < 100)
		snprintf(chance, sizeof(chance), "-m statistic --mode random --probability %.8f",
			d->spec->percent / 100);
	if (d->spec->queue)
		snprintf(act, sizeof(act), "NFQUEUE --queue-num %d --queue-bypass", d->spec->queue);
	return iptables(v, NULL, e, "-N %s", d->chain) ?:
		iptables(v, NULL, e, "-A %s -m comment --comment culprit-seen", d->chain) ?:
		iptables(v, NULL, e, "-A %s %s -m comment --comment culprit-dropped -j %s",
			d->chain, chance, act) ?:
		packets_each_pair(d->spec, jump, d);
}

static int iptables_drop(const struct packets_spec *s, const char *chain, struct err *e)
{
	struct iptables_drop d = {.spec = s, .chain = chain};

	return each_version(drop_version, &d, e);
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

struct iptables_reading {
	const char *chain;
	struct packets_counters sum;
};

static int read_version(size_t v, void *ctx, struct err *e)
{
	unsigned long long seen, seen_bytes, dropped, dropped_bytes;
	struct iptables_reading *r = ctx;
	auto_free char *text = NULL;
	int rc = iptables(v, &text, e, "-n -v -x -L %s", r->chain);

	if (rc)
		return rc;
	if (!counter(text, "culprit-seen", &seen, &seen_bytes) ||
		!counter(text, "culprit-dropped", &dropped, &dropped_bytes))
		return err_set(e, -EBADMSG, "cannot read what '%s' prints for the chain '%s'",
			versions[v].program, r->chain);
	r->sum.seen += seen;
	r->sum.seen_bytes += seen_bytes;
	r->sum.dropped += dropped;
	r->sum.dropped_bytes += dropped_bytes;
	return 0;
}

static int iptables_read(const char *chain, struct packets_counters *c, struct err *e)
{
	struct iptables_reading r = {.chain = chain};
	int rc = each_version(read_version, &r, e);

	if (!rc)
		*c = r.sum;
	return rc;
}

struct iptables_chain {
	const char *name;
	bool found;
	int first; /* failure of a removal */
};

static int find_version(size_t v, void *ctx, struct err *e)
{
	struct iptables_chain *c = ctx;
	auto_free char *text = NULL;
	char mark[64];
	int rc = iptables(v, &text, e, "-S");

	snprintf(mark, sizeof(mark), "-N %s\n", c->name);
	c->found = c->found || (!rc && strstr(text, mark));
	return rc;
}

static int iptables_has(const char *chain, bool *has, struct err *e)
{
	struct iptables_chain c = {.name = chain};
	int rc = each_version(find_version, &c, e);

	if (!rc)
		*has = c.found;
	return rc;
}

static int remove_chain(size_t v, const char *chain, struct err *e)
{
	auto_free char *rules = NULL;
	char target[64];
	int rc = iptables(v, &rules, e, "-S");
	size_t m = (size_t)snprintf(target, sizeof(target), " -j %s", chain);

	if (rc)
		return rc;
	PROCFS_EACH_LINE(line, rules)
	{
		size_t n = strlen(line);

		if (!rc && !strncmp(line, "-A ", 3) && n >= m && !strcmp(line + n - m, target))
			rc = iptables(v, NULL, e, "-D %s", line + 3);
	}
	return rc ?: iptables(v, NULL, e, "-F %s", chain) ?: iptables(v, NULL, e, "-X %s", chain);
}

/* Goes on after a failure, so that one IP version does not keep the other's rules. */
static int remove_version(size_t v, void *ctx, struct err *e)
{
	struct iptables_chain *c = ctx, one = {.name = c->name};
	int rc = find_version(v, &one, c->first ? NULL : e);

	if (!rc && one.found)
		rc = remove_chain(v, c->name, c->first ? NULL : e);
	c->first = c->first ? c->first : rc;
	return 0;
}

static int iptables_remove(const char *chain, struct err *e)
{
	struct iptables_chain c = {.name = chain};

	each_version(remove_version, &c, e);
	return c.first;
}

const struct packets_backend packets_iptables = {
	.name = "iptables",
	.check = iptables_check,
	.drop = iptables_drop,
	.read = iptables_read,
	.has = iptables_has,
	.remove = iptables_remove,
};
