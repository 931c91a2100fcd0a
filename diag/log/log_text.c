/* culprit log: records as text, in the manner of strace. */
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "diag/record/fuse.h"
#include "diag/record/reading.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "diag/log/log_view.h"

enum { NAME_WIDTH = 15 }; /* of a process */

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

/* Prints a path argument, quoted as in C. */
static void print_quoted(const char *s)
{
	putchar('"');
	while (*s) {
		size_t n = strcspn(s, "\"\\");

		text_print_clean(stdout, strndupa(s, n));
		s += n;
		if (*s)
			printf("\\%c", *s++);
	}
	putchar('"');
}

static void print_meaning(const struct log_view *v, const struct record_fd *f)
{
	char local[VIEW_ADDRESS], remote[VIEW_ADDRESS], tag[VIEW_TAG];

	putchar('<');
	if (f->kind == FD_SOCKET) {
		address_text(&f->local, local);
		address_text(&f->remote, remote);
		text_print_clean(stdout, socket_name(f));
		if (*local || *remote)
			putchar(' ');
		text_print_clean(stdout, local);
		if (*remote) {
			fputs(" -> ", stdout);
			text_print_clean(stdout, remote);
		}
	} else {
		text_print_clean(stdout, f->path);
		if (v->tags && (f->tag.inode || f->tag.device))
			printf(" %s", format_tag(&f->tag, tag));
	}
	putchar('>');
}

static void print_fd(const struct log_view *v, uint32_t pid, uint64_t value, bool directory)
{
	const struct fd_state *s = stream_fd(v->stream, pid, (int32_t)value);

	if (directory && (int32_t)value == -100)
		fputs("AT_FDCWD", stdout);
	else
		printf("%d", (int32_t)value);
	if (s)
		print_meaning(v, &s->now);
}

static void print_signal(uint64_t signo)
{
	const char *name = sigabbrev_np((int)signo);

	if (name)
		printf("SIG%s", name);
	else
		printf("signal %llu", (unsigned long long)signo);
}

static void print_args(
	const struct log_view *v, const struct record_call *c, const struct call_info *info)
{
	const char *at = info && info->args ? info->args : NULL;
	char flags[OPEN_FLAGS_TEXT];

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
		if (i == info->path && c->path)
			print_quoted(c->path);
		else if (i == info->path2 && c->path2)
			print_quoted(c->path2);
		else if (how == 'f' || how == 'F')
			print_fd(v, c->pid, value, how == 'F');
		else if (how == 'd' || how == 'q')
			printf("%lld", value >> 32 ? (long long)value : (long long)(int32_t)value);
		else if (how == 'O' && open_flags_text(v->stream, value, flags))
			fputs(flags, stdout);
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

/* Do the arguments or the result already show the offset? */
static bool says_offset(const struct record_call *c, const struct call_info *info)
{
	return info &&
		(!strcmp(info->name, "lseek") ||
			(info->offset >= 0 && c->args[info->offset] == (uint64_t)c->offset));
}

static void print_call(const struct log_view *v, const struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	const char *name = call_error_name(c->result);

	if (item->async)
		fputs("async ", stdout);
	if (info)
		printf("%s(", info->name);
	else
		printf("call_%u(", c->nr);
	print_args(v, c, info);
	if (c->unfinished)
		fputs(") = ?", stdout);
	else if (call_failed(c) && c->result <= -512)
		printf(") = %lld %s (interrupted)", (long long)c->result, name ? name : "");
	else if (call_failed(c))
		printf(") = -1 %s (%s)", name ? name : "E?", strerror((int)-c->result));
	else if (info &&
		(info->args == NULL || !strcmp(info->name, "mmap") || !strcmp(info->name, "brk")))
		printf(") = 0x%llx", (unsigned long long)c->result);
	else
		printf(") = %lld", (long long)c->result);
	printf(" <%lld.%09lld>", (long long)(c->service_ns / 1000000000),
		(long long)(c->service_ns % 1000000000));
	if (c->offset != -1 && !says_offset(c, info))
		printf(" offset=%lld", (long long)c->offset);
	if (c->asked)
		printf(" %s=%u", info && info->messages ? "bytes" : "asked", c->asked);
	if (c->positioned)
		printf(" position=%u", c->position);
	if (c->head_size) {
		fputs(" head=", stdout);
		for (int i = 0; i < c->head_size; i++)
			printf("%02x", c->head[i]);
	}
	putchar('\n');
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
	printf("+++ %s ",
		p->what == PROCESS_EXEC           ? "now runs"
			: p->what == PROCESS_NAME ? "now has the name"
			: p->pid == p->tid        ? "process"
						  : "thread");
	text_print_clean(stdout, p->name);
	if (p->parent && p->pid == p->tid)
		printf(", child of %u", p->parent);
	puts(" +++");
}

static void print_fuse(const struct record_fuse *f)
{
	const char *name = fuse_opcode_name(f->opcode);

	fputs(f->ended ? "FUSE end of " : "FUSE ", stdout);
	if (name)
		fputs(name, stdout);
	else
		printf("request %u", f->opcode);
	printf(" on mount 0:%u unique=%llu nodeid=%llu", f->device, (unsigned long long)f->unique,
		(unsigned long long)f->nodeid);
	if (f->ended)
		printf(" = %d%s%s", f->error, f->error ? " " : "",
			f->error < 0 && call_error_name(f->error) ? call_error_name(f->error) : "");
	putchar('\n');
}

static void print_sum(const struct record_sum *s)
{
	uint64_t histogram[SUM_BUCKETS];
	char peers[2 * VIEW_ADDRESS];

	for (int i = 0; i < SUM_BUCKETS; i++)
		histogram[i] = s->histogram[i];
	printf("=== %s%s", call_class_name(s->class),
		s->bulk                          ? " bulk data"
			: s->messages            ? " messages"
			: s->class == CALL_OTHER ? " calls"
						 : "");
	if (s->fd_class != FD_CLASS_NONE)
		printf(" on %s", fd_class_words(s->fd_class));
	if (s->fd_class == FD_CLASS_DISK)
		printf(" %u:%u%s", major(s->device), minor(s->device),
			s->selected ? "" : " (not selected)");
	if (s->local.ss_family || s->remote.ss_family)
		printf(" %s", format_peers(s, peers));
	printf(": n=%llu errors=%llu bytes=%llu <%.6f> p50=%.1fus p99=%.1fus max=%.1fus\n",
		(unsigned long long)s->count, (unsigned long long)s->errors,
		(unsigned long long)s->bytes, (double)s->total_ns / 1e9,
		histogram_quantile_ns(histogram, 0.5, s->max_ns) / 1e3,
		histogram_quantile_ns(histogram, 0.99, s->max_ns) / 1e3, (double)s->max_ns / 1e3);
}

static void print_reading(const struct record_reading *r)
{
	char address[VIEW_ADDRESS];

	printf("%s", reading_name(r->what));
	if (r->peer.ss_family) {
		printf(" %s ", reading_relation(r->peer.ss_family, r->accepted));
		text_print_clean(stdout, format_peer(&r->peer, address));
	}
	printf(" = %.10g %s", r->sum, reading_unit(r->what));
	if (r->count > 1)
		printf(" (of %u, most %.10g)", r->count, r->max);
	putchar('\n');
}

void text_record(const struct log_view *v, struct stream_item *item)
{
	const struct record *rec = item->record;
	const uint32_t pid = record_pid(rec), tid = record_tid(rec);
	const char *name = pid ? stream_name(v->stream, pid, tid) : "";
	char when[32], who[32];

	format_clock(record_start_ns(rec), when, sizeof(when));
	snprintf(who, sizeof(who), tid && tid != pid ? "%u/%u" : "%u", pid, tid);
	if (rec->type == RECORD_END) {
		printf("# end at %s: %llu records, %llu lost\n", when,
			(unsigned long long)rec->end.records, (unsigned long long)rec->end.lost);
		return;
	}
	if (rec->type == RECORD_UNSEEN) {
		printf("# not seen up to %s: %s: %llu\n", when, unseen_text(rec->unseen.what),
			(unsigned long long)rec->unseen.count);
		return;
	}
	if (rec->type == RECORD_READING) {
		/* Covers a whole second, and no process. */
		printf("%.8s ", when);
		print_reading(&rec->reading);
		return;
	}
	if (rec->type == RECORD_MARK) {
		printf("%s ### recorded from here: ", when);
		text_print_clean(stdout, rec->mark.text);
		putchar('\n');
		return;
	}
	printf("%s %-11s ", when, who);
	text_print_clean(stdout, name);
	printf("%*s ", (int)(NAME_WIDTH - strlen(name)), "");
	switch (rec->type) {
	case RECORD_CALL: print_call(v, item); break;
	case RECORD_SIGNAL:
		fputs("--- ", stdout);
		print_signal(rec->signal.signo);
		puts(rec->signal.fatal ? " (fatal) ---" : " ---");
		break;
	case RECORD_FD:
		printf("fd %d %s", rec->fd.fd, rec->fd.open ? "is " : "closed");
		if (rec->fd.open)
			print_meaning(v, &rec->fd);
		putchar('\n');
		break;
	case RECORD_PROCESS: print_process(&rec->process); break;
	case RECORD_SUM: print_sum(&rec->sum); break;
	case RECORD_FUSE: print_fuse(&rec->fuse); break;
	default:
		printf("!!! %llu records lost on cpu %u\n", (unsigned long long)rec->lost.count,
			rec->lost.cpu);
	}
}

void text_head(const struct log_head *h)
{
	static const char *const modes[] = {"", ", events", ", sums", ", flows"};
	const uint32_t mode = h->how & LOG_MODE;
	char when[32];

	clock_utc((double)(h->start_ns / 1000000000), "%Y-%m-%d %H:%M:%S UTC", when, sizeof(when));
	printf("# trace of %s (%s, %s) by %s, log version %u%s%s%s%s\n", h->host, h->arch, when,
		h->tracer, h->version, modes[mode < 4 ? mode : 0],
		h->how & LOG_HEADS ? " with heads" : "",
		h->how & LOG_CAUSAL ? " with processor times" : "",
		h->how & LOG_RING ? ", the last of a longer recording" : "");
	if (h->bias_ns)
		printf("# a call that does nothing takes %.1f us under this tracer, here\n",
			(double)h->bias_ns / 1e3);
}
