/* Reads labels of ill members and applies them to a recording. */
#include "diag/judge/ground_truth.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/import/import.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/near.h"
#include "harness/base/text.h"

enum { COLUMNS_MAX = 64 };

/* Reads a file, whose rows or lines become labels. */
struct reader {
	struct ground_truth *labels;
	const char *path;
	char *field[COLUMNS_MAX];   /* of the line */
	size_t n_fields, n_columns; /* of this row; of the head, 0 before it */
	int member, ill, from, to;  /* columns; -1: missing */
	bool group[COLUMNS_MAX];
	unsigned line;
	int rc;
	struct err *e;
};

static int ground_truth_complain(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int ground_truth_complain(struct reader *r, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!r->rc)
		r->rc = err_blame(r->e, ERR_SCENARIO,
			err_set(r->e, -EINVAL, "%s:%u: %s", r->path, r->line, text));
	return r->rc;
}

void ground_truth_clear(struct ground_truth *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].member);
	free(l->v);
	free(l->path);
	*l = (struct ground_truth){0};
}

static void ground_truth_add(struct reader *r, char *member, double from_s, double to_s, bool ill)
{
	struct ground_truth *l = r->labels;

	l->v = alloc_room(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = (struct ground_truth_label){member, from_s, to_s, ill, r->line};
}

/* Removes blanks at both ends; changes 's'. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r\n");
	n = strlen(s);
	while (n && strchr(" \t\r\n", s[n - 1]))
		s[--n] = '\0';
	return s;
}

/* The first column with one of these names, earlier names first; -1: none. */
static int column(const struct reader *r, const char *const names[])
{
	for (size_t k = 0; names[k]; k++)
		for (size_t i = 0; i < r->n_fields; i++)
			if (!strcasecmp(r->field[i], names[k]))
				return (int)i;
	return -1;
}

static const char *const member_words[] = {
	"member", "name", "path", "series", "disk", "device", "server", "host", "osd", NULL};

static void take_head(struct reader *r)
{
	static const char *const ill[] = {"ill", NULL}, *const from[] = {"from", "since", NULL},
				 *const to[] = {"to", "until", NULL};

	r->n_columns = r->n_fields;
	r->member = column(r, member_words);
	r->ill = column(r, ill);
	r->from = column(r, from);
	r->to = column(r, to);
	r->labels->complete = r->ill < 0;
	if (r->member < 0)
		ground_truth_complain(r,
			"the head has no column of members: name it 'member'; columns of groups "
			"come before it, 'from', 'to' and 'ill' after it");
	for (int i = 0; i < r->member; i++)
		r->group[i] = i != r->ill && i != r->from && i != r->to;
}

static bool take_time(struct reader *r, int at, double *time_s)
{
	if (at < 0 || !*r->field[at])
		return true;
	if (!import_time(r->field[at], 1, time_s))
		return true;
	ground_truth_complain(r,
		"'%.60s' is not a time: write Unix seconds or 2026-11-22T14:00:00Z", r->field[at]);
	return false;
}

static bool take_ill(struct reader *r, bool *ill)
{
	static const struct {
		const char *word;
		bool ill;
	} words[] = {{"1", true}, {"0", false}, {"yes", true}, {"no", false}, {"true", true},
		{"false", false}};

	*ill = true;
	if (r->ill < 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcasecmp(r->field[r->ill], words[i].word)) {
			*ill = words[i].ill;
			return true;
		}
	ground_truth_complain(r, "'%.60s' in column 'ill' is neither 1 nor 0", r->field[r->ill]);
	return false;
}

static void take_row(struct reader *r)
{
	double from = -INFINITY, to = INFINITY;
	char *member = NULL;
	size_t size;
	FILE *f;
	bool ill;

	if (r->n_fields != r->n_columns) {
		ground_truth_complain(
			r, "%zu columns; the head has %zu", r->n_fields, r->n_columns);
		return;
	}
	if (!take_time(r, r->from, &from) || !take_time(r, r->to, &to) || !take_ill(r, &ill))
		return;
	if (!*r->field[r->member]) {
		ground_truth_complain(r, "no member");
		return;
	}
	if (from > to) {
		ground_truth_complain(r, "'from' is later than 'to'");
		return;
	}
	f = alloc_text(&member, &size);
	for (int i = 0; i < r->member; i++)
		if (r->group[i] && *r->field[i])
			fprintf(f, "%s/", r->field[i]);
	fputs(r->field[r->member], f);
	fclose(f);
	ground_truth_add(r, member, from, to, ill);
}

/* Reads the field at 's' into '*field', unquoted in place; returns the start of the next field, or
 * NULL after the last. A quoted field must end on its line. */
static char *next_field(struct reader *r, char *s, char **field)
{
	char *end = s + strcspn(s, ","), *out;

	*field = s;
	s += strspn(s, " \t");
	if (*s == '"') {
		*field = out = ++s;
		for (; *s && (*s != '"' || s[1] == '"'); s++) {
			s += *s == '"';
			*out++ = *s;
		}
		end = s + !!*s;
		end += strspn(end, " \t\r\n");
		if (!*s)
			ground_truth_complain(r, "a quote is not closed");
		else if (*end && *end != ',')
			ground_truth_complain(r, "text after a closing quote");
		*out = '\0';
	} else if (memchr(s, '"', (size_t)(end - s))) {
		ground_truth_complain(r, "a quote inside an unquoted field");
	}
	if (!*end)
		return NULL;
	*end = '\0';
	return end + 1;
}

static void take_csv(struct reader *r, char *line)
{
	for (char *s = line, *field; s && !r->rc;) {
		s = next_field(r, s, &field);
		if (r->n_fields == COLUMNS_MAX)
			ground_truth_complain(r, "more than %d columns", COLUMNS_MAX);
		else
			r->field[r->n_fields++] = trim(field);
	}
	if (!r->rc && !r->n_columns)
		take_head(r);
	else if (!r->rc)
		take_row(r);
	r->n_fields = 0;
}

/* Is the first line the head of a CSV? */
static bool is_head(const char *line)
{
	auto_free char *copy = alloc_copy(line);
	const char *word = trim(copy);

	for (size_t i = 0; member_words[i]; i++)
		if (!strcasecmp(word, member_words[i]))
			return true;
	return strchr(word, ',') != NULL;
}

static void take_line(struct reader *r, char *line)
{
	char *text;

	line[strcspn(line, "#")] = '\0';
	text = trim(line);
	if (strchr(text, ','))
		ground_truth_complain(r, "a comma in a list: a CSV file must begin with a head");
	else if (*text)
		ground_truth_add(r, alloc_copy(text), -INFINITY, INFINITY, true);
}

static void take_all(struct reader *r, FILE *f)
{
	auto_free char *line = NULL;
	enum { NOT_KNOWN, LIST, CSV } form = NOT_KNOWN;
	size_t room = 0;
	ssize_t n;

	while (!r->rc && (n = getline(&line, &room, f)) > 0) {
		char *start = line + (r->line ? 0 : strspn(line, "\xef\xbb\xbf"));
		char *first = start + strspn(start, " \t\r\n");

		r->line++;
		if (strlen(line) != (size_t)n)
			ground_truth_complain(r, "a zero byte");
		else if (*first && *first != '#') {
			form = form ? form : is_head(start) ? CSV : LIST;
			if (form == CSV)
				take_csv(r, start);
			else
				take_line(r, start);
		}
	}
}

int ground_truth_read(const char *path, struct ground_truth *l, struct err *e)
{
	const int fd = file_open_readable(path, "", e);
	auto_file FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct ground_truth fresh = {.path = alloc_copy(path), .complete = true};
	struct reader r = {.labels = &fresh, .path = path, .e = e};

	if (fd < 0)
		r.rc = err_blame(e, ERR_SCENARIO, fd);
	else if (!f)
		r.rc = err_blame(e, ERR_SCENARIO, err_errno(e, -errno, "cannot read '%s'", path));
	else
		take_all(&r, f);
	if (!r.rc && ferror(f))
		r.rc = err_blame(e, ERR_SCENARIO, err_errno(e, -EIO, "cannot read '%s'", path));
	if (r.rc) {
		ground_truth_clear(&fresh);
		return r.rc;
	}
	ground_truth_clear(l);
	*l = fresh;
	return 0;
}

/* The ends of all paths, sorted: "rack1/h7/sda", "h7/sda", "sda". */
struct ends {
	struct end {
		const char *text;
		uint32_t member;
	} * v;
	size_t n;
};

static int ground_truth_by_text(const void *a, const void *b)
{
	return strcmp(((const struct end *)a)->text, ((const struct end *)b)->text);
}

static struct ends ends_of(const struct ranked *members, size_t n)
{
	struct ends ends = {NULL, 0};

	for (size_t i = 0; i < n; i++)
		for (const char *s = members[i].path; s; s = strchr(s, '/'), s = s ? s + 1 : NULL) {
			ends.v = alloc_room(ends.v, ends.n, sizeof(*ends.v));
			ends.v[ends.n++] = (struct end){s, (uint32_t)i};
		}
	if (ends.n)
		qsort(ends.v, ends.n, sizeof(*ends.v), ground_truth_by_text);
	return ends;
}

static int not_known(const struct ground_truth *l, const struct ground_truth_label *label,
	const struct ends *ends, struct err *e)
{
	const char **names = alloc_zero(ends->n + 1, sizeof(*names));
	char hint[96], text[256];
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		names[i] = ends->v[i].text;
	text_clean(label->member, text, sizeof(text));
	rc = err_set(e, -EINVAL, "%s:%u: no member '%s'%s", l->path, label->line, text,
		near_hint(label->member, names, hint));
	free(names);
	return err_blame(e, ERR_SCENARIO, rc);
}

static int ambiguous(const struct ground_truth *l, const struct ground_truth_label *label,
	const char *one, const char *other, struct err *e)
{
	char name[128], path1[128], path2[128];

	text_clean(label->member, name, sizeof(name));
	text_clean(one, path1, sizeof(path1));
	text_clean(other, path2, sizeof(path2));
	return err_blame(e, ERR_SCENARIO,
		err_set(e, -EINVAL, "%s:%u: '%s' may be '%s' or '%s': add its groups", l->path,
			label->line, name, path1, path2));
}

static int ground_truth_find(const struct ground_truth *l, const struct ground_truth_label *label,
	const struct ends *ends, const struct ranked *members, uint32_t *member, struct err *e)
{
	const struct end key = {label->member, 0};
	const struct end *found = ends->n
		? bsearch(&key, ends->v, ends->n, sizeof(key), ground_truth_by_text)
		: NULL;
	const struct end *last = ends->v + ends->n;

	if (!found)
		return not_known(l, label, ends, e);
	while (found > ends->v && !ground_truth_by_text(found - 1, &key))
		found--;
	*member = found->member;
	/* The whole path of one member may be the end of another's. */
	for (const struct end *other = found; other < last && !ground_truth_by_text(other, &key);
		other++)
		if (!strcmp(members[other->member].path, label->member)) {
			*member = other->member;
			return 0;
		}
	for (const struct end *other = found; other < last && !ground_truth_by_text(other, &key);
		other++)
		if (other->member != *member)
			return ambiguous(
				l, label, members[*member].path, members[other->member].path, e);
	return 0;
}

static bool ground_truth_holds(const struct ground_truth_label *l, double from_s, double to_s)
{
	if (from_s == 0 && to_s == 0)
		return true;
	return l->from_s < to_s && l->to_s >= from_s;
}

int ground_truth_apply(const struct ground_truth *l, double from_s, double to_s,
	struct ranked *members, size_t n, struct err *e)
{
	struct ends ends = ends_of(members, n);
	uint32_t *of = alloc_zero(l->n, sizeof(*of));
	int rc = 0;

	for (size_t i = 0; i < l->n && !rc; i++)
		rc = ground_truth_find(l, &l->v[i], &ends, members, &of[i], e);
	for (size_t i = 0; i < n && !rc; i++)
		members[i].truth = l->complete ? TRUTH_HEALTHY : TRUTH_UNKNOWN;
	for (size_t i = 0; i < l->n && !rc; i++) {
		enum truth *truth = &members[of[i]].truth;

		if (l->v[i].ill && ground_truth_holds(&l->v[i], from_s, to_s))
			*truth = TRUTH_ILL;
		else if (*truth == TRUTH_UNKNOWN)
			*truth = TRUTH_HEALTHY;
	}
	free(of);
	free(ends.v);
	return rc;
}
