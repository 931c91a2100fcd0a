/* culprit log --summary: totals of calls or of sums; one row for each key. */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "harness/base/alloc.h"
#include "diag/record/describe.h"
#include "harness/base/text.h"
#include "diag/log/log_view.h"

struct row {
	char *key;
	bool messages; /* of the reads that other rows count */
	uint64_t count, errors, bytes, total_ns, max_ns;
	uint64_t histogram[SUM_BUCKETS];
};

struct totals {
	void *by_key; /* tsearch tree of the rows */
	struct row **rows;
	size_t n;
	bool sums;      /* the rows come from sums */
	void *readings; /* tree of readings_add */
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

void *row_find(
	void **rows, const void *want, size_t size, int (*compare)(const void *, const void *))
{
	void **found = tfind(want, rows, compare), *row;

	if (found)
		return *found;
	row = memcpy(alloc_zero(1, size), want, size);
	if (!tsearch(row, rows, compare)) /* out of memory */
		abort();
	return row;
}

static void free_row(void *row)
{
	free(((struct row *)row)->key);
	free(row);
}

void totals_free(struct totals *t)
{
	if (!t)
		return;
	tdestroy(t->by_key, free_row);
	tdestroy(t->readings, free);
	free(t->rows);
	free(t);
}

/* Appends a part to a row's key. */
static void key_add(char *key, size_t size, const char *part)
{
	size_t n = strlen(key);

	snprintf(key + n, size - n, "%s%s", n ? "  " : "", part);
}

static void key_process(const struct log_view *v, char *key, size_t size, uint32_t pid)
{
	char text[48];

	snprintf(text, sizeof(text), "%u %s", pid, stream_name(v->stream, pid, pid));
	key_add(key, size, text);
}

static void key_of_call(const struct log_view *v, struct stream_item *item, char *key, size_t size)
{
	const struct record_call *c = &item->record->call;
	const struct call_info *info = item->call;
	unsigned by = v->by ? v->by : v->errors ? BY_CALL | BY_ERROR : BY_CALL;
	const char *error = call_failed(c) ? call_error_name(c->result) : "ok";
	char absolute[16384], tag[VIEW_TAG];
	const struct fd_state *s;

	*key = '\0';
	if (by & BY_PROCESS)
		key_process(v, key, size, c->pid);
	if (by & BY_CALL && item->async)
		key_add(key, size, "async");
	if (by & BY_CALL)
		key_add(key, size, info ? info->name : "(unknown)");
	if (by & BY_ERROR)
		key_add(key, size, error ? error : "E?");
	if (by & BY_FILE) {
		s = item_fd(item);
		key_add(key, size,
			s && (s->now.tag.inode || s->now.tag.device) ? format_tag(&s->now.tag, tag)
								     : "(no file)");
	}
	if (by & (BY_PATH | BY_FILE)) {
		const char *path = call_file(item, false, absolute, sizeof(absolute));

		key_add(key, size, path && *path ? path : "(no path)");
	}
}

static void key_of_sum(const struct log_view *v, const struct record_sum *s, char *key, size_t size)
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
		key_add(key, size, s->bulk ? "bulk data" : "messages");
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

static void add_row(struct row *to, const struct row *from)
{
	to->count += from->count;
	to->errors += from->errors;
	to->bytes += from->bytes;
	to->total_ns += from->total_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (int i = 0; i < SUM_BUCKETS; i++)
		to->histogram[i] += from->histogram[i];
}

static void log_totals_add(struct totals *t, char *key, const struct row *from)
{
	const struct row want = {.key = key, .messages = from->messages};
	struct row *r = row_find(&t->by_key, &want, sizeof(want), by_key);

	if (r->key == key) { /* a new row */
		r->key = alloc_copy(key);
		if (t->n % 64 == 0)
			t->rows = alloc_resize(t->rows, t->n + 64, sizeof(*t->rows));
		t->rows[t->n++] = r;
	}
	add_row(r, from);
}

static void log_totals_add_call(struct log_view *v, struct stream_item *item)
{
	const struct record_call *c = &item->record->call;
	const int64_t moved = call_moved(item->call, c);
	uint64_t took_ns = c->service_ns > 0 ? (uint64_t)c->service_ns : 0;
	struct row one = {
		.count = 1, .errors = call_failed(c), .total_ns = took_ns, .max_ns = took_ns};
	char key[20000];

	one.histogram[histogram_bucket(took_ns)] = 1;
	one.bytes = moved > 0 ? (uint64_t)moved : 0;
	key_of_call(v, item, key, sizeof(key));
	log_totals_add(v->totals, key, &one);
}

static void add_sum(struct log_view *v, const struct record_sum *s)
{
	struct row one = {.messages = s->messages,
		.count = s->count,
		.errors = s->errors,
		.bytes = s->bytes,
		.total_ns = s->total_ns,
		.max_ns = s->max_ns};
	char key[1024];

	for (int i = 0; i < SUM_BUCKETS; i++)
		one.histogram[i] = s->histogram[i];
	key_of_sum(v, s, key, sizeof(key));
	log_totals_add(v->totals, key, &one);
	v->totals->sums = true;
}

void totals_add(struct log_view *v, struct stream_item *item)
{
	const struct record *rec = item->record;

	if (!v->totals)
		v->totals = alloc_zero(1, sizeof(*v->totals));
	if (rec->type == RECORD_CALL)
		log_totals_add_call(v, item);
	else if (rec->type == RECORD_READING)
		readings_add(&v->totals->readings, &rec->reading);
	else if (rec->type == RECORD_SUM)
		add_sum(v, &rec->sum);
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

/* Lists the keys in the order in which they are joined. */
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

void totals_print(struct log_view *v)
{
	const struct totals none = {0}, *t = v->totals ? v->totals : &none;
	struct row all = {.key = (char *)"total"};
	char what[96];

	if (t->readings) {
		readings_print(t->readings);
		if (!t->n)
			return;
		putchar('\n');
	}
	for (size_t i = 0; i < t->n; i++)
		if (!t->rows[i]->messages)
			add_row(&all, t->rows[i]);
	if (t->n)
		qsort(t->rows, t->n, sizeof(*t->rows), by_total);
	if (v->by)
		header(v->by, what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s",
			t->sums             ? "class, descriptor"
				: v->errors ? "call, error"
					    : "call");
	printf("%7s %11s %9s %9s %9s %10s %9s %7s %13s  %s\n", "% time", "seconds", "mean us",
		"p50 us", "p99 us", "max us", "calls", "errors", "bytes", what);
	for (size_t i = 0; i < t->n; i++)
		print_row(t->rows[i], &all);
	print_row(&all, &all);
}
