/* culprit log: a trace log as text, as JSON lines, or as sums per call. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "diag/log/fdtable.h"
#include "diag/log/log.h"
#include "harness/cli/cmd.h"

enum { MAX_CALLS = 1024 };

struct sums {
	const char *name;
	uint64_t count, errors;
	int64_t total_ns, max_ns;
};

struct view {
	const struct call_arch *arch;
	struct fdtable *fds;
	bool json, summary, errors;
	bool some_calls, want_call[MAX_CALLS]; /* --call */
	const char *calls;
	uint32_t pid;                          /* --pid; 0: all */
	struct sums sums[MAX_CALLS + 1];       /* the last one: calls without a name */
};

static void usage(FILE *f)
{
	fputs("usage: culprit log [--json | --summary] [--call NAME,...] [--pid PID] [--errors] FILE\n"
	      "\n"
	      "Prints a trace log ('-': from standard input), one line a record: time (UTC), process/thread,\n"
	      "the call with what its descriptors meant at that moment, its result ('?': it did not return),\n"
	      "its service time in seconds. Exit code 2 if the log is damaged or cut short, after what could be read.\n"
	      "\n"
	      "  --json        one JSON object a line instead\n"
	      "  --summary     sums per call instead, the longest first\n"
	      "  --call NAMES  only these calls, e.g. read,pread64\n"
	      "  --pid PID     only this process or thread\n"
	      "  --errors      only calls that failed\n",
	      f);
}

static void format_time(int64_t ns, char *out, size_t size)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32];

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	snprintf(out, size, "%s.%06d", text, (int)(ns % 1000000000 / 1000));
}

/* "10.0.0.1:24007", "[::1]:80", "/run/x.sock", "@abstract", or "" where there is none. */
static const char *format_address(const struct sockaddr_storage *a, char *out, size_t size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_un *un = (const struct sockaddr_un *)a;
	char ip[INET6_ADDRSTRLEN];

	out[0] = '\0';
	if (a->ss_family == AF_INET)
		snprintf(out, size, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip)), ntohs(in->sin_port));
	else if (a->ss_family == AF_INET6)
		snprintf(out, size, "[%s]:%u", inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)),
			 ntohs(in6->sin6_port));
	else if (a->ss_family == AF_UNIX && un->sun_path[0])
		snprintf(out, size, "%.*s", (int)sizeof(un->sun_path), un->sun_path);
	else if (a->ss_family == AF_UNIX && un->sun_path[1])
		snprintf(out, size, "@%.*s", (int)sizeof(un->sun_path) - 1, un->sun_path + 1);
	return out;
}

static const char *socket_name(const struct record_fd *f)
{
	int family = f->local.ss_family ? f->local.ss_family : f->remote.ss_family;
	bool stream = f->sock_type == SOCK_STREAM, dgram = f->sock_type == SOCK_DGRAM;

	if (family == AF_INET || family == AF_INET6)
		return stream ? "TCP" : dgram ? "UDP" : "INET";
	if (family == AF_UNIX)
		return "UNIX";
	return f->path;
}

/* Paths come from the traced node: nothing in them may steer the terminal. */
static void print_clean(FILE *f, const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			fputc(*s, f);
}

static void print_meaning(const struct record_fd *f)
{
	char local[160], remote[160];

	putchar('<');
	if (f->kind == FD_SOCKET) {
		format_address(&f->local, local, sizeof(local));
		format_address(&f->remote, remote, sizeof(remote));
		print_clean(stdout, socket_name(f));
		if (*local || *remote)
			putchar(' ');
		print_clean(stdout, local);
		if (*remote) {
			fputs(" -> ", stdout);
			print_clean(stdout, remote);
		}
	} else {
		print_clean(stdout, f->path);
	}
	putchar('>');
}

static void print_fd(const struct view *v, uint32_t pid, uint64_t value, bool directory)
{
	const struct fd_state *s = fdtable_get(v->fds, pid, (int32_t)value);

	if (directory && (int32_t)value == -100)
		fputs("AT_FDCWD", stdout);
	else
		printf("%d", (int32_t)value);
	if (s)
		print_meaning(&s->now);
}

static void print_signal(uint64_t signo)
{
	const char *name = sigabbrev_np((int)signo);

	if (name)
		printf("SIG%s", name);
	else
		printf("signal %llu", (unsigned long long)signo);
}

static void print_args(const struct view *v, const struct record_call *c, const struct call_info *info)
{
	const char *at = info && info->args ? info->args : NULL;

	if (!at) {
		for (int i = 0; i < 6; i++)
			printf("%s0x%llx", i ? ", " : "", (unsigned long long)c->args[i]);
		return;
	}
	for (int i = 0; i < info->n_args; i++) {
		char how = at[0];
		int n = (int)strcspn(at + 2, ",");
		unsigned long long value = c->args[i];

		printf("%s%.*s=", i ? ", " : "", n, at + 2);
		at += 2 + n + (at[2 + n] == ',');
		if (how == 'f' || how == 'F')
			print_fd(v, c->pid, value, how == 'F');
		else if (how == 'd' || how == 'q')
			printf("%lld", value >> 32 ? (long long)value : (long long)(int32_t)value);
		else if (how == 'o')
			printf("0%llo", value & 07777777);
		else if (how == 's')
			print_signal(value);
		else if ((how == 'p' || how == 'n') && !value)
			fputs("NULL", stdout);
		else
			printf("0x%llx", value);
	}
}

static const char *errno_name(int64_t result)
{
	switch (result) {
	case -512: return "ERESTARTSYS";
	case -513: return "ERESTARTNOINTR";
	case -514: return "ERESTARTNOHAND";
	case -516: return "ERESTART_RESTARTBLOCK";
	}
	return result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;
}

static bool failed(const struct record_call *c)
{
	return !c->unfinished && c->result < 0 && c->result >= -4095;
}

static void print_call(const struct view *v, const struct record_call *c)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	const char *name = errno_name(c->result);

	if (info)
		printf("%s(", info->name);
	else
		printf("call_%u(", c->nr);
	print_args(v, c, info);
	if (c->unfinished)
		fputs(") = ?", stdout);
	else if (failed(c) && c->result <= -512)
		printf(") = %lld %s (interrupted)", (long long)c->result, name ? name : "");
	else if (failed(c))
		printf(") = -1 %s (%s)", name ? name : "E?", strerror((int)-c->result));
	else if (info && (info->args == NULL || !strcmp(info->name, "mmap") || !strcmp(info->name, "brk")))
		printf(") = 0x%llx", (unsigned long long)c->result);
	else
		printf(") = %lld", (long long)c->result);
	printf(" <%lld.%06lld>\n", (long long)(c->service_ns / 1000000000),
	       (long long)(c->service_ns % 1000000000 / 1000));
}

static void print_process(const struct record_process *p)
{
	if (p->what == PROCESS_EXIT && WIFSIGNALED(p->status)) {
		fputs("+++ killed by ", stdout);
		print_signal((uint64_t)WTERMSIG(p->status));
		puts(" +++");
		return;
	}
	if (p->what == PROCESS_EXIT) {
		printf("+++ exited with %d +++\n", WEXITSTATUS(p->status));
		return;
	}
	printf("+++ %s ", p->what == PROCESS_EXEC ? "now runs" : p->pid == p->tid ? "process" : "thread");
	print_clean(stdout, p->name);
	if (p->parent && p->pid == p->tid)
		printf(", child of %u", p->parent);
	puts(" +++");
}

/* The thread that a record belongs to; tid 0 where it is the process's. */
static void record_where(const struct record *rec, int64_t *start_ns, uint32_t *pid, uint32_t *tid)
{
	*pid = *tid = 0;
	switch (rec->type) {
	case RECORD_CALL:
		*start_ns = rec->call.start_ns, *pid = rec->call.pid, *tid = rec->call.tid;
		break;
	case RECORD_SIGNAL:
		*start_ns = rec->signal.start_ns, *pid = rec->signal.pid, *tid = rec->signal.tid;
		break;
	case RECORD_FD:
		*start_ns = rec->fd.start_ns, *pid = rec->fd.pid;
		break;
	case RECORD_PROCESS:
		*start_ns = rec->process.start_ns, *pid = rec->process.pid, *tid = rec->process.tid;
		break;
	case RECORD_LOST:
		*start_ns = rec->lost.start_ns;
		break;
	case RECORD_SUM:
		*start_ns = rec->sum.start_ns, *pid = rec->sum.pid;
		break;
	case RECORD_END:
		*start_ns = rec->end.start_ns;
		break;
	}
}

static void print_text(const struct view *v, const struct record *rec)
{
	char when[32], who[32];
	uint32_t pid, tid;
	int64_t ns = 0;

	record_where(rec, &ns, &pid, &tid);
	format_time(ns, when, sizeof(when));
	snprintf(who, sizeof(who), tid && tid != pid ? "%u/%u" : "%u", pid, tid);
	if (rec->type == RECORD_END) {
		printf("# end at %s: %llu records, %llu lost\n", when, (unsigned long long)rec->end.records,
		       (unsigned long long)rec->end.lost);
		return;
	}
	printf("%s %-11s ", when, who);
	switch (rec->type) {
	case RECORD_CALL:
		print_call(v, &rec->call);
		break;
	case RECORD_SIGNAL:
		fputs("--- ", stdout);
		print_signal(rec->signal.signo);
		puts(rec->signal.fatal ? " (fatal) ---" : " ---");
		break;
	case RECORD_FD:
		printf("fd %d %s", rec->fd.fd, rec->fd.open ? "is " : "closed");
		if (rec->fd.open)
			print_meaning(&rec->fd);
		putchar('\n');
		break;
	case RECORD_PROCESS:
		print_process(&rec->process);
		break;
	case RECORD_SUM:
		printf("%llu calls in this second\n", (unsigned long long)rec->sum.count);
		break;
	default:
		printf("!!! %llu records lost on cpu %u\n", (unsigned long long)rec->lost.count, rec->lost.cpu);
	}
}

static void json_name(json_t *o, const char *key, const char *s)
{
	json_t *value = json_string(s);
	size_t n = strlen(s);
	char *ascii;

	/* A path need not be UTF-8; JSON must. Bytes above 0x7f then go as Latin-1 would. */
	if (!value && (ascii = malloc(2 * n + 1))) {
		char *out = ascii;

		for (; *s; s++) {
			unsigned char c = (unsigned char)*s;

			if (c >= 0x80) {
				*out++ = (char)(0xc0 | c >> 6);
				c = (unsigned char)(0x80 | (c & 0x3f));
			}
			*out++ = (char)c;
		}
		*out = '\0';
		value = json_string(ascii);
		free(ascii);
	}
	json_object_set_new(o, key, value ? value : json_null());
}

static void json_fd(json_t *o, const struct record_fd *f)
{
	static const char *const kinds[] = {"other", "file", "dir", "device", "pipe", "socket"};
	char address[160];

	json_object_set_new(o, "kind", json_string(kinds[f->kind]));
	json_name(o, "path", f->path);
	if (f->kind != FD_SOCKET)
		return;
	json_object_set_new(o, "sock_type", json_integer(f->sock_type));
	json_object_set_new(o, "family", json_integer(f->local.ss_family ? f->local.ss_family : f->remote.ss_family));
	json_name(o, "local", format_address(&f->local, address, sizeof(address)));
	json_name(o, "remote", format_address(&f->remote, address, sizeof(address)));
}

static void json_call(const struct view *v, json_t *o, const struct record_call *c)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	json_t *args = json_array();

	json_object_set_new(o, "seq", json_integer((json_int_t)c->seq));
	json_object_set_new(o, "service_ns", json_integer(c->service_ns));
	json_object_set_new(o, "call", info ? json_string(info->name) : json_null());
	json_object_set_new(o, "nr", json_integer(c->nr));
	for (int i = 0; i < 6; i++) {
		char hex[24];

		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)c->args[i]);
		json_array_append_new(args, json_string(hex));
	}
	json_object_set_new(o, "args", args);
	json_object_set_new(o, "result", c->unfinished ? json_null() : json_integer(c->result));
	if (failed(c) && errno_name(c->result))
		json_object_set_new(o, "errno", json_string(errno_name(c->result)));
	if (info && info->fd >= 0) {
		int32_t fd = (int32_t)c->args[info->fd];
		const struct fd_state *s = fdtable_get(v->fds, c->pid, fd);

		json_object_set_new(o, "fd", json_integer(fd));
		if (s)
			json_fd(o, &s->now);
	}
}

static void print_json(const struct view *v, const struct record *rec)
{
	static const char *const types[] = {"", "call", "signal", "fd", "process", "lost", "end", "sum"};
	static const char *const whats[] = {"start", "exec", "exit"};
	json_t *o = json_object();
	uint32_t pid, tid;
	int64_t ns = 0;

	record_where(rec, &ns, &pid, &tid);
	json_object_set_new(o, "type", json_string(types[rec->type]));
	json_object_set_new(o, "number", json_integer((json_int_t)rec->number));
	json_object_set_new(o, "start_ns", json_integer(ns));
	if (pid)
		json_object_set_new(o, "pid", json_integer(pid));
	if (tid)
		json_object_set_new(o, "tid", json_integer(tid));
	switch (rec->type) {
	case RECORD_CALL:
		json_call(v, o, &rec->call);
		break;
	case RECORD_SIGNAL:
		json_object_set_new(o, "seq", json_integer((json_int_t)rec->signal.seq));
		json_object_set_new(o, "signal", json_integer(rec->signal.signo));
		json_object_set_new(o, "fatal", json_boolean(rec->signal.fatal));
		break;
	case RECORD_FD:
		json_object_set_new(o, "fd", json_integer(rec->fd.fd));
		json_object_set_new(o, "open", json_boolean(rec->fd.open));
		if (rec->fd.open)
			json_fd(o, &rec->fd);
		break;
	case RECORD_PROCESS:
		json_object_set_new(o, "what", json_string(whats[rec->process.what]));
		json_object_set_new(o, "parent", json_integer(rec->process.parent));
		json_object_set_new(o, "status", json_integer(rec->process.status));
		json_name(o, "name", rec->process.name);
		break;
	case RECORD_LOST:
		json_object_set_new(o, "cpu", json_integer(rec->lost.cpu));
		json_object_set_new(o, "count", json_integer((json_int_t)rec->lost.count));
		break;
	case RECORD_SUM:
		json_object_set_new(o, "count", json_integer((json_int_t)rec->sum.count));
		break;
	case RECORD_END:
		json_object_set_new(o, "records", json_integer((json_int_t)rec->end.records));
		json_object_set_new(o, "lost", json_integer((json_int_t)rec->end.lost));
		break;
	}
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static void print_head(const struct view *v, const struct log_head *h)
{
	time_t s = (time_t)(h->start_ns / 1000000000);
	char when[32];
	struct tm tm;

	if (v->json) {
		json_t *o = json_pack("{s:s s:i s:s s:s s:s s:s s:I s:I}", "type", "head", "version", (int)h->version,
				      "arch", h->arch, "tracer", h->tracer, "host", h->host, "boot_id", h->boot_id,
				      "start_ns", (json_int_t)h->start_ns, "bias_ns", (json_int_t)h->bias_ns);

		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
		return;
	}
	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
	printf("# trace of %s (%s, %s) by %s, log version %u\n", h->host, h->arch, when, h->tracer, h->version);
	if (h->bias_ns)
		printf("# a call that does nothing takes %.1f us under this tracer, here\n", (double)h->bias_ns / 1e3);
}

static void add_up(struct view *v, const struct record_call *c)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	struct sums *s = &v->sums[info ? c->nr : MAX_CALLS];

	s->name = info ? info->name : "(unknown)";
	s->count++;
	s->errors += failed(c);
	s->total_ns += c->service_ns;
	if (c->service_ns > s->max_ns)
		s->max_ns = c->service_ns;
}

static int by_total(const void *a, const void *b)
{
	const struct sums *x = a, *y = b;

	return x->total_ns < y->total_ns ? 1 : x->total_ns > y->total_ns ? -1 : 0;
}

static void print_summary(struct view *v)
{
	struct sums all = {.name = "total"};

	for (int i = 0; i <= MAX_CALLS; i++) {
		all.count += v->sums[i].count;
		all.errors += v->sums[i].errors;
		all.total_ns += v->sums[i].total_ns;
		if (v->sums[i].max_ns > all.max_ns)
			all.max_ns = v->sums[i].max_ns;
	}
	qsort(v->sums, MAX_CALLS + 1, sizeof(v->sums[0]), by_total);
	printf("%7s %12s %12s %12s %10s %8s  call\n", "% time", "seconds", "mean us", "max us", "calls", "errors");
	for (int i = 0; i <= MAX_CALLS + 1; i++) {
		const struct sums *s = i <= MAX_CALLS ? &v->sums[i] : &all;

		if (!s->count)
			continue;
		printf("%7.2f %12.6f %12.1f %12.1f %10llu %8llu  %s\n",
		       all.total_ns ? 100.0 * (double)s->total_ns / (double)all.total_ns : 0,
		       (double)s->total_ns / 1e9, (double)s->total_ns / 1e3 / (double)s->count,
		       (double)s->max_ns / 1e3, (unsigned long long)s->count, (unsigned long long)s->errors, s->name);
	}
}

static bool wanted(const struct view *v, const struct record *rec)
{
	uint32_t pid, tid;
	int64_t ns;

	if (rec->type == RECORD_END || rec->type == RECORD_LOST)
		return true;
	record_where(rec, &ns, &pid, &tid);
	if (v->pid && v->pid != pid && v->pid != tid)
		return false;
	if (rec->type != RECORD_CALL)
		return !v->some_calls && !v->errors;
	if (v->errors && !failed(&rec->call))
		return false;
	return !v->some_calls || (rec->call.nr < MAX_CALLS && v->want_call[rec->call.nr]);
}

/* Names of --call to numbers, once the log's architecture is known. */
static int choose_calls(struct view *v, const char *arch, struct err *e)
{
	char names[1024], *save, *name;

	snprintf(names, sizeof(names), "%s", v->calls);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int nr = call_number(arch, name);

		if (nr < 0)
			return err_set(e, -EINVAL, "there is no system call '%s' on %s", name, arch);
		v->want_call[nr] = true;
		v->some_calls = true;
	}
	return 0;
}

static int show(struct view *v, struct log_reader *r, struct err *e)
{
	const struct record *rec;
	int rc;

	while ((rc = log_next(r, &rec, e)) > 0) {
		if (fdtable_feed(v->fds, rec) < 0)
			return err_set(e, -ENOMEM, "out of memory");
		if (!wanted(v, rec))
			continue;
		if (v->summary) {
			if (rec->type == RECORD_CALL)
				add_up(v, &rec->call);
		} else if (v->json) {
			print_json(v, rec);
		} else {
			print_text(v, rec);
		}
		if (ferror(stdout))
			return err_errno(e, -EIO, "cannot write");
	}
	return rc;
}

int cmd_log(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'}, {"summary", no_argument, NULL, 's'},
		{"call", required_argument, NULL, 'c'}, {"pid", required_argument, NULL, 'p'},
		{"errors", no_argument, NULL, 'e'}, {"help", no_argument, NULL, 'h'}, {0},
	};
	static struct view v;
	struct log_reader *r;
	struct err e;
	char *end;
	int c, rc;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'j': v.json = true; break;
		case 's': v.summary = true; break;
		case 'c': v.calls = optarg; break;
		case 'e': v.errors = true; break;
		case 'p':
			v.pid = (uint32_t)strtoul(optarg, &end, 10);
			if (*end || !v.pid)
				return cmd_fail("log", CULPRIT_EXIT_USAGE, "'%s' is no process number", optarg);
			break;
		case 'h':
			usage(stdout);
			return CULPRIT_EXIT_OK;
		default:
			usage(stderr);
			return CULPRIT_EXIT_USAGE;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return CULPRIT_EXIT_USAGE;
	}
	rc = log_reader_new(argv[optind], &r, &e);
	if (rc < 0)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "%s", e.text);
	v.arch = call_arch(log_reader_head(r)->arch);
	v.fds = fdtable_new();
	if (!v.fds)
		rc = err_set(&e, -ENOMEM, "out of memory");
	if (rc == 0 && v.calls)
		rc = choose_calls(&v, log_reader_head(r)->arch, &e);
	if (rc == 0) {
		if (!v.summary)
			print_head(&v, log_reader_head(r));
		rc = show(&v, r, &e);
		if (v.summary)
			print_summary(&v);
	}
	if (fflush(stdout) == EOF && rc == 0)
		rc = err_errno(&e, -errno, "cannot write");
	fdtable_free(v.fds);
	log_reader_free(r);
	if (rc < 0)
		return cmd_fail("log", rc == -EBADMSG || rc == -EINVAL ? CULPRIT_EXIT_USAGE : CULPRIT_EXIT_INVALID,
				"%s", e.text);
	return CULPRIT_EXIT_OK;
}
