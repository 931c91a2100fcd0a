/* culprit log --summary: what calls, or a log's sums, came to; one row a call, path, process or
 * errno. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "harness/base/text.h"
#include "harness/cli/log_view.h"

struct row {
	char *key;
	bool messages; /* made of the reads that other rows count */
	uint64_t count, errors, bytes, total_ns, max_ns;
	uint64_t histogram[SUM_BUCKETS];
	struct row *next;
};

struct totals {
	struct row **bucket;
	size_t mask, n;
	bool sums;                 /* of what kind the rows are */
	struct readings *readings; /* NULL: none */
};

static uint64_t hash(const char *s)
{
	uint64_t h = 1469598103934665603u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return h ^ h >> 29;
}

static int grow(struct totals *t)
{
	size_t mask = t->mask ? t->mask * 2 + 1 : 255;
	struct row **bucket = calloc(mask + 1, sizeof(struct row *));

	if (!bucket)
		return -ENOMEM;
	for (size_t i = 0; t->bucket && i <= t->mask; i++)
		for (struct row *r = t->bucket[i], *next; r; r = next) {
			struct row **at = &bucket[hash(r->key) & mask];

			next = r->next;
			r->next = *at;
			*at = r;
		}
	free(t->bucket);
	t->bucket = bucket;
	t->mask = mask;
	return 0;
}

static struct row *row_of(struct totals *t, const char *key)
{
	struct row **at, *r;

	if (t->n >= t->mask && grow(t) < 0)
		return NULL;
	at = &t->bucket[hash(key) & t->mask];
	for (r = *at; r; r = r->next)
		if (!strcmp(r->key, key))
			return r;
	r = calloc(1, sizeof(*r));
	if (r)
		r->key = strdup(key);
	if (!r || !r->key) {
		free(r);
		return NULL;
	}
	r->next = *at;
	*at = r;
	t->n++;
	return r;
}

void totals_free(struct totals *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->bucket && i <= t->mask; i++)
		for (struct row *r = t->bucket[i], *next; r; r = next) {
			next = r->next;
			free(r->key);
			free(r);
		}
	free(t->bucket);
	readings_free(t->readings);
	free(t);
}

/* Joins what a row stands for. */
static void key_add(char *key, size_t size, const char *part)
{
	size_t n = strlen(key);

	snprintf(key + n, size - n, "%s%s", n ? "  " : "", part);
}

static void key_process(const struct view *v, char *key, size_t size, uint32_t pid)
{
	char text[48];

	snprintf(text, sizeof(text), "%u %s", pid, view_thread_name(v, pid, pid));
	key_add(key, size, text);
}

static const struct fd_state *call_fd(const struct view *v, const struct record_call *c)
{
	const struct call_info *info = call_info(v->arch, c->nr);

	return info && info->fd >= 0 ? fdtable_get(v->fds, c->pid, (int32_t)c->args[info->fd])
				     : NULL;
}

static void key_of_call(const struct view *v, const struct record_call *c, char *key, size_t size)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	unsigned by = v->by ? v->by : v->errors ? BY_CALL | BY_ERROR : BY_CALL;
	const char *error = call_failed(c) ? call_error_name(c->result) : "ok";
	char absolute[16384], tag[96];
	const struct fd_state *s;

	*key = '\0';
	if (by & BY_PROCESS)
		key_process(v, key, size, c->pid);
	if (by & BY_CALL)
		key_add(key, size, info ? info->name : "(unknown)");
	if (by & BY_ERROR)
		key_add(key, size, error ? error : "E?");
	if (by & BY_FILE) {
		s = call_fd(v, c);
		if (s && s->now.tag.inode) {
			char first[32];

			format_clock(s->now.tag.first_ns, first, sizeof(first));
			snprintf(tag, sizeof(tag), "%u:%u|%llu|%s", major(s->now.tag.device),
				minor(s->now.tag.device), (unsigned long long)s->now.tag.inode,
				first);
			key_add(key, size, tag);
		} else {
			key_add(key, size, "(no file)");
		}
	}
	if (by & (BY_PATH | BY_FILE)) {
		const char *path = call_file(v, c, false, absolute, sizeof(absolute));

		key_add(key, size, path && *path ? path : "(no path)");
	}
}

static void key_of_sum(const struct view *v, const struct record_sum *s, char *key, size_t size)
{
	unsigned by = v->by ? v->by : BY_CALL;
	char text[2 * VIEW_ADDRESS];

	*key = '\0';
	if (by & BY_PROCESS)
		key_process(v, key, size, s->pid);
	if (by & BY_CALL) {
		key_add(key, size, call_class_name(s->class));
		if (s->fd_class != FD_CLASS_NONE)
			key_add(key, size, fd_class_words(s->fd_class));
	}
	if (s->messages)
		key_add(key, size, "messages");
	if (!(by & (BY_PATH | BY_FILE)))
		return;
	if (s->fd_class == FD_CLASS_DISK)
		snprintf(text, sizeof(text), "%u:%u", major(s->device), minor(s->device));
	else if (s->local.ss_family || s->remote.ss_family)
		format_peers(s, text);
	else
		snprintf(text, sizeof(text), "%s", "(no path)");
	key_add(key, size, text);
}

static int add_call(struct view *v, const struct record_call *c)
{
	const struct call_info *info = call_info(v->arch, c->nr);
	uint64_t took_ns = c->service_ns > 0 ? (uint64_t)c->service_ns : 0;
	char key[20000];
	struct row *r;

	key_of_call(v, c, key, sizeof(key));
	r = row_of(v->totals, key);
	if (!r)
		return -ENOMEM;
	r->count++;
	r->errors += call_failed(c);
	r->total_ns += took_ns;
	if (took_ns > r->max_ns)
		r->max_ns = took_ns;
	r->histogram[histogram_bucket(took_ns)]++;
	if (c->result > 0 && !c->unfinished && info &&
		(info->class == CALL_READ || info->class == CALL_WRITE || info->class == CALL_COPY))
		r->bytes += (uint64_t)c->result;
	return 0;
}

static int add_sum(struct view *v, const struct record_sum *s)
{
	char key[1024];
	struct row *r;

	key_of_sum(v, s, key, sizeof(key));
	r = row_of(v->totals, key);
	if (!r)
		return -ENOMEM;
	r->messages = s->messages;
	r->count += s->count;
	r->errors += s->errors;
	r->bytes += s->bytes;
	r->total_ns += s->total_ns;
	if (s->max_ns > r->max_ns)
		r->max_ns = s->max_ns;
	for (int i = 0; i < SUM_BUCKETS; i++)
		r->histogram[i] += s->histogram[i];
	v->totals->sums = true;
	return 0;
}

int totals_add(struct view *v, const struct record *rec)
{
	if (!v->totals)
		v->totals = calloc(1, sizeof(*v->totals));
	if (!v->totals)
		return -ENOMEM;
	if (rec->type == RECORD_CALL)
		return add_call(v, &rec->call);
	if (rec->type == RECORD_READING)
		return readings_add(&v->totals->readings, &rec->reading);
	return rec->type == RECORD_SUM ? add_sum(v, &rec->sum) : 0;
}

static int by_total(const void *a, const void *b)
{
	const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(x->key, y->key);
}

static void print_row(const struct row *r, const struct row *all)
{
	printf("%7.2f %11.6f %9.1f %9.1f %9.1f %10.1f %9llu %7llu %13llu  ",
		all->total_ns ? 100.0 * (double)r->total_ns / (double)all->total_ns : 0,
		(double)r->total_ns / 1e9,
		r->count ? (double)r->total_ns / 1e3 / (double)r->count : 0,
		histogram_quantile_ns(r->histogram, 0.5, r->max_ns) / 1e3,
		histogram_quantile_ns(r->histogram, 0.99, r->max_ns) / 1e3, (double)r->max_ns / 1e3,
		(unsigned long long)r->count, (unsigned long long)r->errors,
		(unsigned long long)r->bytes);
	text_print_clean(stdout, r->key);
	putchar('\n');
}

/* In the order in which keys are joined. */
static void header(unsigned by, char *out, size_t size)
{
	static const char *const names[] = {"process", "call", "error", "file", "path"};
	static const unsigned bits[] = {BY_PROCESS, BY_CALL, BY_ERROR, BY_FILE, BY_PATH | BY_FILE};

	*out = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (by & bits[i])
			snprintf(out + strlen(out), size - strlen(out), "%s%s", *out ? ", " : "",
				names[i]);
}

void totals_print(struct view *v)
{
	const struct totals *t = v->totals;
	struct row all = {.key = (char *)"total"},
		   **rows = t && t->n ? calloc(t->n, sizeof(struct row *)) : NULL;
	size_t n = 0;
	char what[96];

	if (t && t->readings) {
		readings_print(t->readings);
		if (!t->n)
			return;
		putchar('\n');
	}
	for (size_t i = 0; rows && i <= t->mask; i++)
		for (struct row *r = t->bucket[i]; r; r = r->next) {
			rows[n++] = r;
			if (r->messages)
				continue;
			all.count += r->count;
			all.errors += r->errors;
			all.bytes += r->bytes;
			all.total_ns += r->total_ns;
			if (r->max_ns > all.max_ns)
				all.max_ns = r->max_ns;
			for (int b = 0; b < SUM_BUCKETS; b++)
				all.histogram[b] += r->histogram[b];
		}
	if (n)
		qsort(rows, n, sizeof(rows[0]), by_total);
	if (v->by)
		header(v->by, what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s",
			t && t->sums        ? "class, descriptor"
				: v->errors ? "call, error"
					    : "call");
	printf("%7s %11s %9s %9s %9s %10s %9s %7s %13s  %s\n", "% time", "seconds", "mean us",
		"p50 us", "p99 us", "max us", "calls", "errors", "bytes", what);
	for (size_t i = 0; i < n; i++)
		print_row(rows[i], &all);
	print_row(&all, &all);
	free(rows);
}
