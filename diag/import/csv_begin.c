/* Reads the part before the rows of a CSV text: comments and the head. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/import/csv_impl.h"
#include "diag/import/formats.h"
#include "diag/import/number.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

/* Bytes that are searched for repeated times. */
enum { AHEAD = 16 << 20 };

/* Handles a line before the head that begins with '#'. */
static int take_comment(struct csv *c, const char *line, size_t n)
{
	char *text = alloc_zero(n + 1, 1), *p, *word = NULL;
	int rc = 0;

	memcpy(text, line, n);
	text[strcspn(text, "\r")] = '\0';
	p = text + 1 + strspn(text + 1, " \t");
	if (!strncmp(p, "metric", 6) && (p[6] == ' ' || p[6] == '\t'))
		word = p + 6 + strspn(p + 6, " \t");
	if (word && *word && c->sink->metric)
		rc = c->sink->metric(c->sink->ctx, word, c->e);
	free(text);
	return rc ? csv_refused(c, rc) : 0;
}

bool csv_head_in_comment(const char *comment, size_t n, const char *line, size_t n_line)
{
	char separator = csv_separator(comment, n);
	size_t fields = 0, length = 0;
	double x;

	if (!separator || separator != csv_separator(line, n_line))
		return false;
	for (size_t i = 0; i < n; i++)
		fields += comment[i] == separator;
	for (size_t i = 0; i < n_line; i++)
		fields -= line[i] == separator;
	while (length < n_line && line[length] != separator)
		length++;
	return !fields &&
		(number_read(line, length, &x) == NUMBER_OK ||
			iso_time_read(line, length, &x, NULL));
}

/* Searches for rows that repeat a time of their series. If columns separate them, reads the head
 * again: the row of 'head', or at 'begin' if it is in the same buffer. */
static int distinguish(struct csv *c, struct csv_rows *head, char *begin)
{
	struct csv_roles roles;
	struct import_options o = *c->o;
	struct csv_rows *r = &c->rows;
	unsigned long lines = r->lines;
	struct csv_table old;
	int rc = csv_repeats(&c->table, r, c->o, &roles, c->said, c->e);

	c->part = roles.part && !c->o->settled;
	if (rc <= 0)
		return rc ? csv_refused(c, rc) : 0;
	o.member = roles.member;
	memcpy(o.group, roles.group, sizeof(o.group));
	old = c->table;
	c->table = (struct csv_table){0};
	if (head == r) {
		char *rows = r->next;

		r->next = begin;
		r->lines = c->head_lines;
		csv_rows_next(r);
		r->next = rows;
		r->lines = lines;
	}
	rc = csv_head(&c->table, head, c->source, &o, NULL, c->e);
	if (c->said && !rc) {
		c->said->member = alloc_copy(roles.member);
		for (size_t g = 0; g < roles.n_groups; g++)
			c->said->group[g] = alloc_copy(roles.group[g]);
	}
	csv_table_clear(&old);
	return rc ? csv_refused(c, rc) : 0;
}

/* Reads the head from the comment before the table. */
static int read_commented_head(struct csv *c, char *head, size_t n)
{
	struct csv_rows r;
	FILE *f = fmemopen(head + 1, n - 1, "r");
	int rc;

	if (!f)
		alloc_end();
	csv_rows_init(&r, f);
	csv_rows_separator(&r, c->rows.separator);
	c->rows.line--;
	if (!csv_rows_next(&r))
		rc = csv_wrong(c, "%s", r.wrong ? r.wrong : "it is empty");
	else if ((rc = csv_head(&c->table, &r, c->source, c->o, c->said, c->e)))
		rc = csv_refused(c, rc);
	if (!rc)
		rc = distinguish(c, &r, NULL);
	csv_rows_clear(&r);
	fclose(f);
	return rc;
}

/* "sep=;" before the head, for spreadsheets: Grafana's download for Excel. */
static bool names_separator(const char *line, size_t n)
{
	return n >= 5 && n <= 6 && !strncasecmp(line, "sep=", 4);
}

int csv_begin(struct csv *c)
{
	struct csv_rows *r = &c->rows;
	auto_free char *comment = NULL;
	const char *line;
	size_t n, n_comment = 0;
	char *head;
	int rc = 0;

	/* All of it is in the buffer, which does not move until the rows are read. */
	csv_rows_ahead(r, AHEAD);

	for (;;) {
		r->line = r->lines + 1;
		line = csv_rows_line(r, &n);
		if (!line)
			return r->failed ? err_set(c->e, -EIO, "cannot read '%s'", c->source)
					 : csv_wrong(c, "%s", r->wrong ? r->wrong : "it is empty");
		if (!r->lines && n >= 3 && !memcmp(line, "\xef\xbb\xbf", 3)) {
			r->next += 3;
			continue;
		}
		if (*line == '#') {
			rc = take_comment(c, line, n);
			free(comment);
			comment = memcpy(alloc_zero(n + 1, 1), line, n);
			n_comment = n;
		} else if (n > strspn(line, " \t\r\n") && !names_separator(line, n))
			break;
		if (rc)
			return rc;
		csv_rows_skip_line(r);
	}
	csv_rows_separator(r, csv_separator(line, n) ?: ',');
	if (comment && csv_head_in_comment(comment, n_comment, line, n))
		return read_commented_head(c, comment, n_comment);
	head = r->next;
	c->head_lines = r->lines;
	if (!csv_rows_next(r))
		return csv_wrong(c, "%s", r->wrong ? r->wrong : "it is empty");
	rc = csv_head(&c->table, r, c->source, c->o, c->said, c->e);
	return rc ? csv_refused(c, rc) : distinguish(c, r, head);
}

static bool field_is(const struct csv_rows *r, size_t field, const char *text)
{
	char room[CSV_NAME_ROOM + 1];

	return csv_unquote(r, field, room, sizeof(room)) < sizeof(room) && !strcmp(room, text);
}

enum csv_again csv_head_again(const struct csv_table *t, const struct csv_rows *r)
{
	bool head = false, same = r->n_fields == t->n_columns;

	for (size_t i = 0; i < r->n_fields && !head; i++)
		head = field_is(r, i, t->names[t->time]);
	for (size_t i = 0; i < t->n_columns && same && head; i++)
		same = field_is(r, i, t->names[i]);
	return !head ? CSV_NO_HEAD : same ? CSV_SAME_HEAD : CSV_OTHER_HEAD;
}

/* Do the roles of two tables have the same names, so that their keys mean the same? */
static bool same_roles(const struct csv_table *a, const struct csv_table *b)
{
	bool same = a->form == b->form && a->form != CSV_WIDE && a->n_groups == b->n_groups &&
		!strcmp(a->names[a->member], b->names[b->member]);

	for (size_t g = 0; g < a->n_groups && same; g++)
		same = !strcmp(a->names[a->group[g]], b->names[b->group[g]]);
	return same;
}

/* Continues with a table that has other columns, or the same ones in another order. */
static int next_table(struct csv *c)
{
	struct import_options o = *c->o;
	struct csv_table *t = &c->table, next = {0};
	int rc;

	if (t->form != CSV_WIDE)
		o.member = t->names[t->member];
	for (size_t g = 0; g < t->n_groups; g++)
		o.group[g] = t->names[t->group[g]];
	rc = csv_head(&next, &c->rows, c->source, &o, NULL, NULL);
	if (rc || !same_roles(t, &next)) {
		csv_table_clear(&next);
		return csv_wrong(c,
			"another table begins here, with other columns; keep each table in a "
			"separate file");
	}
	csv_table_clear(t);
	*t = next;
	csv_keys_clear(&c->keys);
	c->time_n = 0;
	return 1;
}

/* InfluxDB ends its answer with a table of the error, if any. */
static int server_error(struct csv *c)
{
	char text[CSV_NAME_ROOM + 1], note[CSV_NAME_ROOM + 100];
	unsigned long line = c->rows.line;

	if (csv_rows_next(&c->rows) && c->rows.n_fields > 1)
		csv_unquote(&c->rows, 1, text, sizeof(text));
	else
		*text = '\0';
	snprintf(note, sizeof(note), "the server's answer ends with an error at line %lu: %s", line,
		text);
	import_note_partial(c->said, note);
	c->ended = true;
	return 1;
}

/* Decoration of psql and others: a line below the head, and "(1440 rows)". */
static bool is_drawn(const struct csv_rows *r)
{
	char text[CSV_NAME_ROOM + 1];
	size_t n = csv_unquote(r, 0, text, sizeof(text)),
	       digits = n ? strspn(text + 1, "0123456789") : 0;

	if (r->n_fields != 1 || n < 2 || n >= sizeof(text))
		return false;
	return strspn(text, "-+ ") == n ||
		(*text == '(' && digits &&
			(!strcmp(text + 1 + digits, " rows)") ||
				!strcmp(text + 1 + digits, " row)")));
}

int csv_between(struct csv *c)
{
	struct csv_rows *r = &c->rows;
	enum csv_again head;

	if (*r->row == '#' || is_drawn(r))
		return 1;
	if (r->n_fields == 3 && !r->fields[0].n && field_is(r, 1, "error"))
		return server_error(c);
	head = csv_head_again(&c->table, r);
	return head == CSV_OTHER_HEAD ? next_table(c) : head == CSV_SAME_HEAD;
}

/* A table: its first line that is not a comment has a separator. */
bool csv_looks(const char *head, size_t size)
{
	const char *p = head, *end = head + size;

	if (size >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		p += 3;
	while (p < end) {
		size_t n = strcspn(p, "\n");

		if (*p != '#' && n > strspn(p, " \t\r"))
			return *p != '{' && *p != '[' && csv_separator(p, n);
		p += n < (size_t)(end - p) ? n + 1 : n;
		if (!n && !*p)
			break;
	}
	return false;
}
