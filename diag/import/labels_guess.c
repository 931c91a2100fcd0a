/* Guesses which label is the member and which labels are groups. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/labels_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/hash.h"

enum { GUESS_SERIES_MAX = 200000 }; /* more give no more information */

/* Labels of things that can be slow, narrowest first; then those of their hosts. */
static const char *const known[] = {"device", "disk", "disk_name", "disk_id", "ceph_daemon", "osd",
	"osd_id", "drive", "volume", "brick", "name", "worker", "rank", "instance", "instance_id",
	"host", "hostname", "node", "node_id", "nodename", "server", "machine", "pod", "vm", "ip"};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

/* One label over all series. */
struct column {
	const char *name;
	uint64_t *value; /* hash of its value in each series */
	size_t distinct;
};

struct table {
	struct column *columns;
	size_t n, rows;
	uint64_t *scratch;
};

static int by_hash(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Counts the combinations of values of the columns in 'set'. */
static size_t distinct(const struct table *t, const struct column *const *set, size_t n)
{
	size_t different = 0;

	for (size_t r = 0; r < t->rows; r++) {
		uint64_t h = 1;

		for (size_t i = 0; i < n; i++)
			h = hash_mix(h, set[i]->value[r]);
		t->scratch[r] = h;
	}
	qsort(t->scratch, t->rows, sizeof(*t->scratch), by_hash);
	for (size_t r = 0; r < t->rows; r++)
		different += !r || t->scratch[r] != t->scratch[r - 1];
	return different;
}

static struct column *column_find(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->columns[i].name, name))
			return &t->columns[i];
	return NULL;
}

static int by_column_name(const void *a, const void *b)
{
	return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

static void table_fill(struct table *t, const struct labels *l)
{
	t->rows = l->n_series < GUESS_SERIES_MAX ? l->n_series : GUESS_SERIES_MAX;
	t->scratch = alloc_zero(t->rows, sizeof(*t->scratch));
	for (size_t r = 0; r < t->rows; r++) {
		const struct labels_series *s = &l->series[r];
		const char *p = s->text + strlen(s->text) + 1, *value;
		struct column *c;

		for (; p < s->text + s->size; p = value + strlen(value) + 1) {
			value = p + strlen(p) + 1;
			c = column_find(t, p);
			if (!c && t->n < LABELS_MAX) {
				t->columns = alloc_resize(
					t->columns, t->n + 1, sizeof(*t->columns));
				c = &t->columns[t->n++];
				*c = (struct column){p, alloc_zero(t->rows, sizeof(*c->value)), 0};
			}
			if (c)
				c->value[r] = hash_text(value);
		}
	}
	if (t->n)
		qsort(t->columns, t->n, sizeof(*t->columns), by_column_name);
	for (size_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];

		t->columns[i].distinct = distinct(t, &c, 1);
	}
}

static void table_clear(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->columns[i].value);
	free(t->columns);
	free(t->scratch);
}

static bool named(const struct labels *l, const char *label)
{
	for (size_t i = 0; i < IMPORT_GROUPS_MAX && l->how->group[i]; i++)
		if (!strcmp(l->how->group[i], label))
			return true;
	return l->how->member && !strcmp(l->how->member, label);
}

/* The member: the first known label that differs, or the one with the most values. */
static const struct column *guess_member(const struct labels *l, const struct table *t, bool most)
{
	const struct column *best = NULL;

	for (size_t k = 0; k < N_KNOWN && !most; k++) {
		const struct column *c = column_find(t, known[k]);

		if (c && c->distinct > 1 && !named(l, c->name))
			return c;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];

		if (!named(l, c->name) && (!best || c->distinct > best->distinct))
			best = c;
	}
	for (size_t k = 0; k < N_KNOWN && (!best || best->distinct == 1); k++) {
		const struct column *c = column_find(t, known[k]);

		if (c && !named(l, c->name))
			return c;
	}
	return best;
}

static unsigned rank(const char *name)
{
	unsigned k = 0;

	while (k < N_KNOWN && strcmp(known[k], name))
		k++;
	return k;
}

/* Fewest values first; with equal numbers, known labels first and then by name. */
static int by_values(const void *a, const void *b)
{
	const struct column *x = *(const struct column *const *)a,
			    *y = *(const struct column *const *)b;

	if (x->distinct != y->distinct)
		return x->distinct < y->distinct ? -1 : 1;
	if (rank(x->name) != rank(y->name))
		return rank(x->name) < rank(y->name) ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool same_as_one(
	const struct table *t, const struct column *c, const struct column *const *set, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (set[i]->distinct == c->distinct &&
			distinct(t, (const struct column *[]){c, set[i]}, 2) == c->distinct)
			return true;
	return false;
}

/* Fills 'set' (of LABELS_MAX) with the groups, without 'member'; returns their number. */
static size_t guess_groups(const struct table *t, const struct column *member,
	const struct column *const *all, size_t n_all, const struct column **set)
{
	size_t total = distinct(t, all, n_all), n = 0;

	for (size_t i = 0; i < n_all; i++) {
		const struct column *c = all[i];

		if (c == member || same_as_one(t, c, &member, 1) || same_as_one(t, c, set, n))
			continue;
		set[n] = c;
		if (distinct(t, set, n + 1) < total)
			n++;
	}
	return n;
}

static void join_names(const struct table *t, bool differing, char *out, size_t size)
{
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < t->n && at < size; i++)
		if (!differing || t->columns[i].distinct > 1)
			at += (size_t)snprintf(
				out + at, size - at, "%s%s", at ? ", " : "", t->columns[i].name);
}

static int check_named(const struct labels *l, const struct table *t, struct err *e)
{
	char names[500];

	for (size_t i = 0; i <= IMPORT_GROUPS_MAX; i++) {
		const char *label = i == IMPORT_GROUPS_MAX ? l->how->member : l->how->group[i];

		if (!label || column_find(t, label))
			continue;
		join_names(t, false, names, sizeof(names));
		return err_set(e, -EINVAL, "no series has a label '%s'; %s%s", label,
			t->n ? "there are " : "there are no labels", names);
	}
	return 0;
}

/* Guesses the groups, and the member if the user did not name it. */
static int guess(struct labels *l, const struct table *t, const struct column **member,
	const struct column **set, size_t *n, struct err *e)
{
	const struct column *all[LABELS_MAX + 1], *key[LABELS_MAX + 1];
	size_t n_all = 0, total;
	char names[500];

	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].distinct > 1)
			all[n_all++] = &t->columns[i];
	if (n_all)
		qsort(all, n_all, sizeof(*all), by_values);
	total = distinct(t, all, n_all);
	for (int most = 0; most < 2; most++) {
		if (!l->how->member)
			*member = guess_member(l, t, most);
		if (!*member)
			return 0;
		*n = guess_groups(t, *member, all, n_all, set);
		memcpy(key, set, *n * sizeof(*key));
		key[*n] = *member;
		if (distinct(t, key, *n + 1) == total || l->how->member)
			break;
	}
	if (*n <= IMPORT_GROUPS_MAX)
		return 0;
	join_names(t, true, names, sizeof(names));
	return err_set(e, -EINVAL,
		"series differ in too many labels (%s): choose some with --member and --group, or "
		"take fewer metrics",
		names);
}

static int decide(struct labels *l, const struct table *t, struct err *e)
{
	const struct column *member = NULL, *set[LABELS_MAX + 1];
	size_t n = 0;
	int rc = check_named(l, t, e);

	if (rc)
		return rc;
	if (l->how->member)
		member = column_find(t, l->how->member);
	if (l->how->group[0]) {
		while (n < IMPORT_GROUPS_MAX && l->how->group[n]) {
			set[n] = column_find(t, l->how->group[n]);
			n++;
		}
		if (!member)
			member = guess_member(l, t, false);
	} else {
		rc = guess(l, t, &member, set, &n, e);
	}
	if (rc)
		return rc;
	l->member = member ? alloc_copy(member->name) : NULL;
	for (size_t i = 0; i < n; i++)
		l->group[i] = alloc_copy(set[i]->name);
	l->n_groups = n;
	l->decided = true;
	return 0;
}

char *labels_describe(const struct labels *l)
{
	char *text;
	size_t size;
	FILE *f = alloc_text(&text, &size);

	if (l->member)
		fprintf(f, "member in label '%s'", l->member);
	else
		fputs("one member a metric", f);
	fputs(l->n_groups ? ", groups in" : ", no groups", f);
	for (size_t i = 0; i < l->n_groups; i++)
		fprintf(f, "%s '%s'", i ? "," : "", l->group[i]);
	fclose(f);
	return text;
}

int labels_decide(struct labels *l, struct import_said *said, struct err *e)
{
	struct table t = {0};
	char *text;
	int rc;

	if (l->decided || !l->n_series)
		return 0;
	table_fill(&t, l);
	rc = decide(l, &t, e) ?: labels_separate(l, said, e);
	table_clear(&t);
	if (rc || (l->how->member && l->how->group[0]))
		return rc;
	text = labels_describe(l);
	import_note(said,
		"%s (guessed from the labels that differ; set them with --member and --group)",
		text);
	free(text);
	return 0;
}
