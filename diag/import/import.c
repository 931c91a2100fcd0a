/* Recognises a file's format and runs its reader. */
#include "diag/import/import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "diag/import/formats.h"
#include "diag/import/input.h"
#include "harness/base/alloc.h"
#include "harness/base/text.h"

/* CSV is the last: almost any text with a separator could be CSV. */
const struct import_format import_formats[] = {
	{"sar", "text of sar -d", sar_looks, sar_read},
	{"sadf", "columns of sadf -d", sadf_looks, sadf_read},
	{"iostat", "JSON of iostat -x -t -o JSON, or of sadf -j", iostat_looks, iostat_read},
	{"ceph", "dumps of ceph osd perf -f json, with times", ceph_looks, ceph_read},
	{"prometheus-json", "saved answers of range queries, and of promtool query range -o json",
		prometheus_json_looks, prometheus_json_read},
	{"prometheus-text", "scrapes of exporters (text format, OpenMetrics), with times",
		prometheus_text_looks, prometheus_text_read},
	{"csv", "table with a head line, separated by comma, semicolon or tab", csv_looks,
		csv_read},
	{0},
};

bool import_name(const char *text)
{
	size_t size = strnlen(text, IMPORT_NAME_MAX + 1);
	char clean[IMPORT_NAME_MAX + 8];

	return size && size <= IMPORT_NAME_MAX && text_clean(text, clean, sizeof(clean)) == size;
}

void import_note(struct import_said *said, const char *fmt, ...)
{
	char note[1024];
	va_list ap;

	if (!said)
		return;
	va_start(ap, fmt);
	vsnprintf(note, sizeof(note), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < said->n_notes; i++)
		if (!strcmp(said->notes[i], note))
			return;
	said->notes = alloc_room(said->notes, said->n_notes, sizeof(*said->notes));
	said->notes[said->n_notes++] = alloc_copy(note);
}

void import_note_partial(struct import_said *said, const char *why)
{
	char *before = said ? said->partial : NULL;

	import_note(said, "%s", why);
	if (!said || (before && strstr(before, why)))
		return;
	said->partial = before ? alloc_format("%s; %s", before, why) : alloc_copy(why);
	free(before);
}

void import_said_clear(struct import_said *said)
{
	free(said->form);
	free(said->partial);
	free(said->member);
	for (size_t g = 0; g < IMPORT_GROUPS_MAX; g++)
		free(said->group[g]);
	for (size_t i = 0; i < said->n_notes; i++)
		free(said->notes[i]);
	free(said->notes);
	*said = (struct import_said){0};
}

/* "csv, sar, iostat" */
static void list_formats(char *text, size_t size)
{
	size_t n = 0;

	*text = '\0';
	for (const struct import_format *f = import_formats; f->name && n < size; f++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", f->name);
}

static const struct import_format *import_by_name(const char *name)
{
	for (const struct import_format *f = import_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

/* Names a kind of file that cannot be read, recognised by its first bytes; or NULL. */
static const char *recognised(const char *head)
{
	static const struct {
		const char *begin, *has, *what;
	} others[] = {
		{"PAR1", "",
			"Parquet, which is not read here; print it as CSV with any program "
			"('... | culprit diagnose --csv -')"},
		{"<!", "", "a web page; is there a login before the server?"},
		{"<html", "", "a web page; is there a login before the server?"},
		{"groups:", "rules:", "rules of Prometheus, not series"},
		{"global:", "", "a configuration of Prometheus, not series"},
		{"scrape_configs:", "", "a configuration of Prometheus, not series"},
		{"{", "\"panels\"",
			"a dashboard of Grafana, without series; export a panel's data as CSV "
			"(Inspect, Data), or ask its queries with --prometheus"},
		{"{", "\"frames\"",
			"an answer of Grafana's own API; export the panel's data as CSV (Inspect, "
			"Data)"},
		{"{", "\"statement_id\"",
			"an answer of InfluxDB in JSON; ask for it as CSV ('Accept: "
			"application/csv')"},
		{"[", "\"generatorURL\"", "a list of alerts, not series"},
		{"{", "\"alerts\"", "a list of alerts, not series"},
		{"{", "\"groups\"", "rules of Prometheus, not series"},
		{"+--", "--+\n|",
			"a table with borders, as mysql draws it; print it by 'mysql --batch', or "
			"by 'psql --csv'"},
		{"|", "", "a table with borders, as Markdown has them; export it as CSV"},
		{"\u250c", "\u2502",
			"a table with borders, as ClickHouse draws it; end the query with 'FORMAT "
			"CSVWithNames'"},
		{"", "\n----------  --",
			"a table in columns, as sqlite3 draws it; print it by 'sqlite3 -csv "
			"-header'"},
	};

	if (!memcmp(head, "\xff\xfe", 2) || !memcmp(head, "\xfe\xff", 2))
		return "UTF-16, as PowerShell and spreadsheets write it; convert it with 'iconv "
		       "-f UTF-16 -t UTF-8'";
	head += strspn(head, " \t\r\n");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncasecmp(head, others[i].begin, strlen(others[i].begin)) &&
			strstr(head, others[i].has))
			return others[i].what;
	return NULL;
}

static int import_choose(const struct input *in, const struct import_options *o,
	const struct import_format **format, struct err *e)
{
	char names[300];
	size_t size;
	const char *head = input_head(in, &size), *what;

	list_formats(names, sizeof(names));
	if (o->format) {
		*format = import_by_name(o->format);
		return *format ? 0
			       : err_set(e, -EINVAL, "there is no format '%.60s'; there are %s",
					 o->format, names);
	}
	if (!size)
		return err_set(e, -EINVAL, "%s:1: it is empty", input_name(in));
	what = recognised(head);
	for (const struct import_format *f = import_formats; f->name; f++)
		/* CSV may be any text, the other formats are certain. */
		if (f->looks(head, size) && !(what && !strcmp(f->name, "csv"))) {
			*format = f;
			return 0;
		}
	if (what)
		return err_set(e, -EINVAL, "%s:1: this is %s", input_name(in), what);
	if (*head == '#' && (strstr(head, "[CPU]") || strstr(head, "[DSK")))
		return err_set(e, -EINVAL,
			"%s:1: this is output of collectl with blanks between the columns; print "
			"it with collectl -P -oU --sep ,",
			input_name(in));
	return err_set(e, -EINVAL, "%s:1: this looks like none of %s; name its format by --format",
		input_name(in), names);
}

int import_file(const char *path, const struct import_options *o, const struct import_sink *sink,
	struct import_said *said, struct err *e)
{
	static const struct import_options find_out;
	const struct import_format *format = NULL;
	struct input *in = NULL;
	FILE *f = NULL;
	int rc = input_open(path, &in, e), failed;

	o = o ? o : &find_out;
	if (!rc)
		rc = err_blame(e, ERR_SCENARIO, import_choose(in, o, &format, e));
	if (!rc && !(f = input_file(in, e)))
		rc = -ENOMEM;
	if (!rc) {
		rc = format->read(f, input_name(in), o, sink, said, e);
		/* The reader may have taken damaged data as the end of the text. */
		failed = input_failure(in, NULL);
		if (failed && (!rc || rc == -EIO || ferror(f)))
			rc = input_failure(in, e);
		if (rc == -EINVAL)
			err_blame(e, ERR_SCENARIO, rc);
	}
	input_close(in);
	return rc;
}
