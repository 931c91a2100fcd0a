/* Tests the reader of CSV: the samples of each form, and refusals. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/formats.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

/* A sink that writes its input to a text: "group/member metric time value" in each line. */
struct seen {
	FILE *f;
	char *text;
	size_t size;
	char **series;
	uint32_t n;
	struct import_said said;
	struct err e;
};

static int on_series(void *ctx, const struct series_key *key, uint32_t *id, struct err *e)
{
	struct seen *s = ctx;
	char name[2000] = "";

	for (size_t g = 0; g < key->n_groups; g++)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s/", key->group[g]);
	snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s %s", key->member,
		key->metric);
	for (*id = 0; *id < s->n; ++*id)
		if (!strcmp(s->series[*id], name))
			return 0;
	if (!strcmp(key->member, "refused"))
		return err_set(e, -E2BIG, "no such member");
	s->series = alloc_resize(s->series, s->n + 1, sizeof(*s->series));
	s->series[s->n++] = alloc_copy(name);
	return 0;
}

static int on_sample(void *ctx, uint32_t id, double time_s, double value, struct err *e)
{
	struct seen *s = ctx;

	if (value > 1e300)
		return err_set(e, -EINVAL, "too much of it");
	fprintf(s->f, "%s %.15g ", s->series[id], time_s);
	fprintf(s->f, isnan(value) ? "none\n" : "%.15g\n", value);
	return 0;
}

static int on_metric(void *ctx, const char *declaration, struct err *e)
{
	struct seen *s = ctx;

	fprintf(s->f, "metric [%s]\n", declaration);
	return strstr(declaration, "bad") ? err_set(e, -EINVAL, "it is bad") : 0;
}

static const struct import_options find_out;

static int take(struct seen *s, const char *text, size_t size, const char *source,
	const struct import_options *o)
{
	struct import_sink sink = {
		.ctx = s, .series = on_series, .sample = on_sample, .metric = on_metric};
	FILE *f = fmemopen((void *)text, size, "r");
	int rc;

	*s = (struct seen){0};
	s->f = alloc_text(&s->text, &s->size);
	rc = csv_read(f, source, o, &sink, &s->said, &s->e);
	fclose(f);
	fclose(s->f);
	return rc;
}

static void clear(struct seen *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->series[i]);
	free(s->series);
	free(s->text);
	import_said_clear(&s->said);
}

/* Expects that 'text' gives the samples 'want', and that the described form contains 'form'. */
static void gives(
	const char *text, const struct import_options *o, const char *want, const char *form)
{
	struct seen s;
	int rc = take(&s, text, strlen(text), "/tmp/read_ms.csv.gz", o ? o : &find_out);

	if (rc)
		fail_msg("%s\n%s", s.e.text, text);
	assert_string_equal(s.text, want);
	if (!strstr(s.said.form, form))
		fail_msg("'%s' is not in '%s'", form, s.said.form);
	clear(&s);
}

static void refuses(const char *text, const struct import_options *o, const char *want)
{
	struct seen s;
	int rc = take(&s, text, strlen(text), "x.csv", o ? o : &find_out);

	if (!rc || strncmp(s.e.text, want, strlen(want)))
		fail_msg("%s\n%d '%s', not '%s'", text, rc, rc ? s.e.text : "", want);
	assert_int_equal(s.e.class, ERR_SCENARIO);
	clear(&s);
}

static void long_form(void **state)
{
	const char *const only[] = {"w"};
	const struct import_options named = {.time = "when_ms",
		.member = "unit",
		.metric = "what",
		.value = "amount",
		.group = {"place", "box"}};
	const struct import_options writes = {.metrics = only, .n_metrics = 1};

	(void)state;
	gives("time,server,metric,value\n0,s1,r,1\n0,s2,r,\n1.5,s1,w,-2e1\n", NULL,
		"s1 r 0 1\ns2 r 0 none\ns1 w 1.5 -20\n",
		"long CSV: time in column 'time' (numbers are s), member in 'server', metric in "
		"'metric', value in 'value'");
	/* The disk is the member, its host and rack are groups; other columns are not read. */
	gives("metric,disk,value,firmware,host,time_ms,rack\nr,a,1,F1,h1,1000,x\nr,a,2,F1,h2,1000,"
	      "x\nr,a,3,,h1,2000,x\n",
		NULL, "x/h1/a r 1 1\nx/h2/a r 1 2\nx/h1/a r 2 3\n",
		"groups in 'rack', 'host', metric");
	gives("box,unit,what,place,amount,when_ms,host\nb,u,m,p,5,1500,h\n", &named,
		"p/b/u m 1.5 5\n", "(numbers are ms), member in 'unit', groups in 'place', 'box'");
	gives("time,server,metric,value\n0,s,r,1\n0,s,w,2\n1,s,r,3\n1,s,w,4\n", &writes,
		"s w 0 2\ns w 1 4\n", "long CSV");
	gives("time,server,metric,value\n0,s,r,1\n", &writes, "", "long CSV");
	/* The same member, written in different ways. */
	gives("time,server,metric,value\n0,s,r,1\n1,\"s\",r,2\n2, s ,r, 3 \n\"3\",s,r,\"4\"\n",
		NULL, "s r 0 1\ns r 1 2\ns r 2 3\ns r 3 4\n", "long CSV");
}

static void a_column_for_each_metric(void **state)
{
	const char *const only[] = {"w"};
	const struct import_options writes = {.metrics = only, .n_metrics = 1},
				    one = {.only_metric = "lat"}, value = {.value = "w"},
				    model = {.group = {"model"}};
	struct seen s;
	const char *text = "Timestamp,host,Disk,r,w,model,empty\n1,h1,a,,2,X,\n1,h1,b,3,4,Y,\n";

	(void)state;
	/* The model is the widest group. */
	gives(text, NULL, "X/h1/a w 1 2\nY/h1/b r 1 3\nY/h1/b w 1 4\n",
		"one column a metric: time in column 'Timestamp' (numbers are s), member in 'Disk',"
		" groups in 'model', 'host', metrics in columns 'r', 'w', 'empty'");
	gives(text, &writes, "X/h1/a w 1 2\nY/h1/b w 1 4\n", "metric in column 'w'");
	gives(text, &value, "X/h1/a w 1 2\nY/h1/b w 1 4\n", "metric in column 'w'");
	gives(text, &model, "X/a w 1 2\nY/b r 1 3\nY/b w 1 4\n", "groups in 'model'");
	/* A metric that a member has once has gaps later. */
	gives("time,osd,a,b\n0,1,,5\n1,1,2,\n2,1,,\n", NULL,
		"1 b 0 5\n1 a 1 2\n1 b 1 none\n1 a 2 none\n1 b 2 none\n", "'osd'");
	gives("time,server,value\n0,s,1\n", NULL, "s value 0 1\n", "column 'value'");
	gives("time,server,value\n0,s,1\n", &one, "s lat 0 1\n", "called 'lat'");
	gives("time,disk,model,value\n0,s,M,1\n", NULL, "M/s value 0 1\n", "groups in 'model'");
	text = "Timestamp,host,Disk,r,w,remark,empty\n1,h1,a,,2,X,\n1,h1,b,3,4,Y,\n";
	assert_int_equal(take(&s, text, strlen(text), "x", &find_out), 0);
	assert_int_equal(s.said.n_notes, 1);
	assert_string_equal(s.said.notes[0],
		"column 'remark' is not read: 'X' is not a number. If it groups members, name it "
		"by --group");
	assert_int_equal(s.said.samples, 3);
	clear(&s);
	/* A table without numbers. */
	refuses("time,disk,r,w\n0,a,10m,1G\n", NULL,
		"x.csv:2: value '1G' of column 'w' is not a decimal number (a number with a unit?");
	refuses("time,disk,r\n0,a,1\n1,a,slow\n", NULL,
		"x.csv:3: value 'slow' of column 'r' is not a decimal number");
	refuses("time,disk,model\n0,a,X\n",
		&(struct import_options){.metrics = only, .n_metrics = 1},
		"x.csv:1: there is no column 'w'; the columns are 'time', 'disk', 'model'");
}

static void usual_names_are_members(void **state)
{
	static const char *const names[] = {"disk_id", "osd_id", "node_id", "vm", "pod", "worker",
		"rank", "machine", "instance_id", "ip", "disk_name", "instance", "device", "name"};
	char text[200], form[100];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "time,%s,r\n0,a,1\n0,b,2\n", names[i]);
		snprintf(form, sizeof(form), "member in '%s', metric in column 'r'", names[i]);
		gives(text, NULL, "a r 0 1\nb r 0 2\n", form);
	}
	/* A number that names a member is not a sample. */
	gives("time,host,osd_id,r\n0,h1,0,1\n0,h2,1,2\n", NULL, "h1/0 r 0 1\nh2/1 r 0 2\n",
		"member in 'osd_id', groups in 'host'");
	gives("time,machine,disk_name,r\n0,h1,a,1\n", NULL, "h1/a r 0 1\n", "groups in 'machine'");
	gives("time,instance,device,r\n0,h1,a,1\n0,h2,a,2\n", NULL, "h1/a r 0 1\nh2/a r 0 2\n",
		"member in 'device', groups in 'instance'");
	gives("\"Series\";\"Time\";\"Value\"\n\"h1 a\";\"2026-11-22T14:00:00Z\";1\n"
	      "\"h1 b\";\"2026-11-22T14:00:00Z\";2\n",
		NULL, "h1 a Value 1795356000 1\nh1 b Value 1795356000 2\n", "member in 'Series'");
}

static void wide_form(void **state)
{
	static const char *const units[] = {"10m", "30%", "1G", "1.2ms", "1.5 s"};
	const struct import_options name = {.only_metric = "lat"}, host = {.group = {"host"}};
	char text[100], want[300];

	(void)state;
	gives("time,a,b\n0,1,2\n1,,nan\n", NULL,
		"a read_ms 0 1\nb read_ms 0 2\na read_ms 1 none\nb read_ms 1 none\n",
		"wide CSV (one column a member): time in column 'time' (numbers are s), 2 members, "
		"metric 'read_ms'");
	gives("time,h1/a,h2/a,r/h2/b\n0,1,2,3\n", &name,
		"h1/a lat 0 1\nh2/a lat 0 2\nr/h2/b lat 0 3\n", "group before the last '/'");
	gives("time,h1/a,b\n0,1,2\n", &name, "h1/a lat 0 1\nb lat 0 2\n", "metric 'lat'");
	gives("time,host,sda,sdb\n0,h1,1,2\n0,h2,3,4\n", &host,
		"h1/sda read_ms 0 1\nh1/sdb read_ms 0 2\nh2/sda read_ms 0 3\nh2/sdb read_ms 0 4\n",
		"wide CSV");
	gives("time,a,b\n0,+Inf,2\n1,-Infinity,\"inf\"\n", NULL,
		"a read_ms 0 none\nb read_ms 0 2\na read_ms 1 none\nb read_ms 1 none\n", "wide");
	/* A text that names members, in a column with an unknown name. */
	refuses("time,thing,a\n0,x,1\n", NULL,
		"x.csv:2: value 'x' of column 'thing' is not a decimal number; if it names members "
		"(disks, hosts ...), give --member 'thing', or --group if it groups them");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		snprintf(text, sizeof(text), "time,a\n0,%s\n", units[i]);
		snprintf(want, sizeof(want),
			"x.csv:2: value '%s' of column 'a' is not a decimal number (a number with "
			"a unit? Write only the number; the column's name ends with its unit: _s, "
			"_ms, _us, _ns, _bytes, _pct)",
			units[i]);
		refuses(text, NULL, want);
	}
	refuses("time\n0\n", NULL, "x.csv:1: there is no column of values, only the times");
}

static void separators_quotes_and_ends(void **state)
{
	(void)state;
	gives("time;a;b\n0;1;2\n", NULL, "a read_ms 0 1\nb read_ms 0 2\n", "wide");
	gives("time\ta, b\tc\n0\t1\t2\n", NULL, "a, b read_ms 0 1\nc read_ms 0 2\n", "wide");
	gives("\xef\xbb\xbf\"time\",\"a;;;b\"\r\n0,1\r\n\r\n1,2", NULL,
		"a;;;b read_ms 0 1\na;;;b read_ms 1 2\n", "wide");
	gives("time,server,metric,value\n0,\"a \"\"b\"\", c\",m,1\r\n", NULL, "a \"b\", c m 0 1\n",
		"long");
	gives("\n# a comment\r\n# metric lat unit=ms worse=more\r\n#\n#metric x\ntime,a\n0,1\n",
		NULL, "metric [lat unit=ms worse=more]\nmetric [x]\na read_ms 0 1\n", "wide");
	refuses("#\n# metric bad\ntime,a\n", NULL, "x.csv:2: it is bad");
	refuses("time,a\n0,1\n\n0,\"1\n\n\n", NULL, "x.csv:4: a quote is not closed");
	refuses("time,a\n\"0\n\",1\n", NULL, "x.csv:2: time '0\\n' is neither");
	refuses("time,a,b\n0,1,\"2\n\"\n", NULL, "x.csv:2: value '2\\n' of column 'b'");
	refuses("time,a\n0,\"1\"\n0,\"1\"2\n", NULL, "x.csv:3: a misplaced quote");
	refuses("time,a\n0,1\"\n", NULL, "x.csv:2: a misplaced quote");
	refuses("time,a\n0,1\n1,1e301\n", NULL, "x.csv:3: too much of it");
	refuses("time,refused\n0,1\n", NULL, "x.csv:2: no such member");
	refuses("time,a,b\n0,1\n", NULL, "x.csv:2: fewer fields than the head has: 2, not 3");
	refuses("time,a\n0,1,2\n", NULL, "x.csv:2: more fields than the head has: 3, not 2");
	refuses("\n\n", NULL, "x.csv:3: it is empty");
}

/* Expects that 'text' gives the samples 'want' and a note with 'note'; 'partial': also partial
 * data. */
static void notes(const char *text, const char *want, const char *note, bool partial)
{
	struct seen s;
	bool found = false;

	if (take(&s, text, strlen(text), "x.csv", &find_out))
		fail_msg("%s\n%s", s.e.text, text);
	assert_string_equal(s.text, want);
	for (size_t i = 0; i < s.said.n_notes; i++)
		found |= strstr(s.said.notes[i], note) != NULL;
	if (!found)
		fail_msg("no note '%s'", note);
	assert_int_equal(partial, s.said.partial != NULL);
	clear(&s);
}

static void tables_of_other_programs(void **state)
{
	(void)state;
	/* Grafana's download for Excel. */
	gives("sep=;\ntime;a\n0;1\n", NULL, "a read_ms 0 1\n", "wide");
	/* Telegraf. */
	gives("timestamp,measurement,host,read\n0,diskio,h,1\n1,diskio,h,2\n", NULL,
		"h read 0 1\nh read 1 2\n", "one column a metric");
	refuses("time,host,metric,reading\n0,h,r,1\n", NULL,
		"x.csv:1: there is a column 'metric' of metrics, but none of values");
	/* Numbers of tables and members are not samples. */
	gives("#group,false\n,result,table,_time,host,read\n,,3,0,h,1\n,,4,0,g,2\n", NULL,
		"h read 0 1\ng read 0 2\n", "metric in column 'read'");
	/* psql, with its decoration. */
	gives(" time | device | await \n------+--------+-------\n    0 | sda    |   1.5\n"
	      "    1 | sda    |     2\n(2 rows)\n\n",
		NULL, "sda await 0 1.5\nsda await 1 2\n", "metric in column 'await'");
	gives("time|device|await\n0|sda|1\n(1 row)\n", NULL, "sda await 0 1\n", "'await'");
	gives("time,get|put|all\n0,1\n", NULL, "get|put|all read_ms 0 1\n", "wide");
	refuses("time|a|b\n0|1|2\n(1 rose)\n", NULL, "x.csv:3: fewer fields");
	refuses("time|a|b\n0|1|2\n(rows)\n", NULL, "x.csv:3: fewer fields");
	refuses("time|a|b\n0|1|2\n-\n", NULL, "x.csv:3: fewer fields");
	notes("time,disk,osd_id,read\n0,a,17,1\n", "a read 0 1\n",
		"column 'osd_id' is not read: its name is one of members", false);
}

static void tables_may_follow_one_another(void **state)
{
	static const char more[] = "time,disk,read\n0,a,1\n\n#datatype,long,string\n";
	char text[300];

	(void)state;
	/* cat *.csv */
	gives("time,disk,read\n0,a,1\ntime,disk,read\r\n0,b,2\n", NULL, "a read 0 1\nb read 0 2\n",
		"metric in column 'read'");
	/* Answers of InfluxDB: comments in between, other columns, an error at the end. */
	snprintf(text, sizeof(text), "%sdisk,write,time\nb,2,1\na,4,1\n", more);
	gives(text, NULL, "a read 0 1\nb write 1 2\na write 1 4\n", "member in 'disk'");
	snprintf(text, sizeof(text), "%s,error,reference\n,it is late,576\n", more);
	notes(text, "a read 0 1\n", "ends with an error at line 5: it is late", true);
	snprintf(text, sizeof(text), "%stime,host,read\n0,h,1\n", more);
	refuses(text, NULL, "x.csv:5: another table begins here, with other columns");
	/* Members of a wide table have no name for their metric. */
	refuses("time,a,b\n0,1,2\ntime,c,d\n0,3,4\n", NULL, "x.csv:3: another table begins");
}

static void zones_and_jumps(void **state)
{
	(void)state;
	notes("time,disk,read\n1970-01-02 00:00:00,a,1\n", "a read 86400 1\n",
		"times without a zone are taken as UTC", false);
	gives("time,tz,disk,read\n1970-01-02 00:00:00,CET,a,1\n1970-01-02 00:00:00,EST,b,2\n"
	      "1970-01-02 00:00:00Z,CET,c,3\n",
		NULL, "a read 82800 1\nb read 104400 2\nc read 86400 3\n", "member in 'disk'");
	refuses("time,tz,disk,read\n1970-01-02 00:00:00,CST,a,1\n", NULL,
		"x.csv:2: zone 'CST' is unknown or ambiguous");
	refuses("date,time,disk,read\n1970-01-02,00:00:00,a,1\n", NULL,
		"x.csv:2: time '00:00:00' is neither a number nor of ISO 8601 "
		"(2026-11-22T14:00:00Z); write date and time in one column");
	notes("time,disk,read\n9,a,1\n3,b,1\n8,a,1\n7,a,1\n",
		"a read 9 1\nb read 3 1\na read 8 1\na read 7 1\n",
		"rows whose time is before that of their series' last row: 2, the first at line 4",
		false);
	notes("time,disk,read\n0,a,1\n86401,a,1\n", "a read 0 1\na read 86401 1\n",
		"gaps of more than a day in a series: 1, the first at line 3", false);
}

static void heads_of_collectl(void **state)
{
	const char *const only[] = {"WrWait"};
	const struct import_options writes = {.metrics = only, .n_metrics = 1};
	const char *text = "################\n#UTC,[CPU]User%,[DSK:sda]RdWait,[DSK:sda]WrWait,"
			   "[DSK:sdb]WrWait\n1795219200,3,7,8,9\n1795219500,3,1,2,4\n";

	(void)state;
	gives("#UTC,[DSK:sda]RdWait,[DSK:sdb]RdWait\n0,7,8\n1,9,1\n", NULL,
		"sda RdWait 0 7\nsdb RdWait 0 8\nsda RdWait 1 9\nsdb RdWait 1 1\n", "collectl");
	gives(text, NULL,
		"sda RdWait 1795219200 7\nsda WrWait 1795219200 8\nsdb WrWait 1795219200 9\n"
		"sda RdWait 1795219500 1\nsda WrWait 1795219500 2\nsdb WrWait 1795219500 4\n",
		"3 columns '[KIND:MEMBER]METRIC' of collectl");
	gives(text, &writes,
		"sda WrWait 1795219200 8\nsdb WrWait 1795219200 9\n"
		"sda WrWait 1795219500 2\nsdb WrWait 1795219500 4\n",
		"2 columns");
	refuses("#Date,Time,[DSK:sda]RdWait\n20261121,00:00:00,7\n", NULL,
		"x.csv:1: this is output of collectl with dates and times in two columns; print it "
		"with collectl -P -oU --sep ,");
	/* A comment with a separator is not a head. */
	gives("# read, in ms\ntime,a\n0,1\n", NULL, "a read_ms 0 1\n", "wide");
	gives("#group,false\n#default,x\ntime,a\n0,1\n", NULL, "a read_ms 0 1\n", "wide");
}

/* Makes a table of 4 times: after each time the rows "TIME,ROW"; a '#' in a row is a digit that
 * grows with time. */
static char *table(const char *head, const char *const rows[])
{
	size_t size;
	char *text;
	FILE *f = alloc_text(&text, &size);

	fprintf(f, "time,%s\n", head);
	for (int t = 0; t < 4; t++)
		for (const char *const *row = rows; *row; row++) {
			fprintf(f, "%d,", t);
			for (const char *p = *row; *p; p++)
				fputc(*p == '#' ? '1' + t : *p, f);
			fputc('\n', f);
		}
	fclose(f);
	return text;
}

/* Expects that the key of a table is described by 'form' and that its samples begin with 'want';
 * 'note' is contained in the first note, or NULL: no note. */
static void keys(const char *head, const char *const rows[], const struct import_options *o,
	const char *want, const char *form, const char *note)
{
	auto_free char *text = table(head, rows);
	struct seen s;

	if (take(&s, text, strlen(text), "x.csv", o ? o : &find_out))
		fail_msg("%s\n%s", s.e.text, text);
	if (!strstr(s.said.form, form))
		fail_msg("'%s' is not in '%s'", form, s.said.form);
	if (strncmp(s.text, want, strlen(want)) != 0)
		fail_msg("'%s' does not begin with '%s'", s.text, want);
	if (note ? !s.said.n_notes || !strstr(s.said.notes[0], note) : s.said.n_notes)
		fail_msg("'%s' is not in '%s'", note, s.said.n_notes ? s.said.notes[0] : "");
	clear(&s);
}

static void unclear(const char *head, const char *const rows[], const struct import_options *o,
	const char *want)
{
	auto_free char *text = table(head, rows);

	refuses(text, o, want);
}

#define ROWS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_key_distinguishes_rows(void **state)
{
	(void)state;
	/* Telegraf's diskio: the tag 'name' is a disk of the host. */
	keys("host,name,read_ms", ROWS("h1,sda,1", "h1,sdb,2", "h2,sda,3", "h2,sdb,4"), NULL,
		"h1/sda read_ms 0 1\nh1/sdb read_ms 0 2\nh2/sda read_ms 0 3\n",
		"member in 'name', groups in 'host', metric in column 'read_ms'",
		"8 of 16 rows repeat a time of their series; 'name' separates them: member in "
		"'name', groups in 'host' (--member and --group change this)");
	/* If no time repeats, a name is only a name. */
	keys("host,name,read_ms", ROWS("h1,mail,1", "h2,web,2"), NULL, "h1 read_ms 0 1\n",
		"member in 'host', metric", "column 'name' is not read");
	/* Reads and writes are separate series, compared among themselves. */
	keys("host,disk,op,metric,value",
		ROWS("h1,a,read,ms,2", "h1,a,write,ms,20", "h1,b,read,ms,3", "h1,b,write,ms,30"),
		NULL, "read/h1/a ms 0 2\nwrite/h1/a ms 0 20\nread/h1/b ms 0 3\n",
		"member in 'disk', groups in 'op', 'host'", "8 of 16 rows repeat");
	keys("host,op,ms", ROWS("h1,read,2", "h1,write,20", "h2,read,3", "h2,write,30"), NULL,
		"read/h1 ms 0 2\nwrite/h1 ms 0 20\n", "member in 'host', groups in 'op'",
		"'op' separates");
	/* Two hosts with the same name. */
	keys("site,host,ms", ROWS("A,h1,2", "A,h2,20", "B,h1,3", "B,h2,30"), NULL,
		"A/h1 ms 0 2\nA/h2 ms 0 20\nB/h1 ms 0 3\n", "member in 'host', groups in 'site'",
		"'site' separates");
	/* Also numbers, if they are the same ones at each time. */
	keys("host,slot,ms", ROWS("h1,0,1.5", "h1,1,2", "h1,2,3", "h2,0,4", "h2,1,5", "h2,2,6"),
		NULL, "h1/0 ms 0 1.5\nh1/1 ms 0 2\nh1/2 ms 0 3\nh2/0 ms 0 4\n",
		"member in 'slot', groups in 'host', metric in column 'ms'", "'slot' separates");
	/* Two columns. */
	keys("host,name,op,ms",
		ROWS("h1,a,read,1", "h1,a,write,2", "h1,b,read,3", "h1,b,write,4", "h2,a,read,5",
			"h2,a,write,6", "h2,b,read,7", "h2,b,write,8"),
		NULL, "read/h1/a ms 0 1\nwrite/h1/a ms 0 2\nread/h1/b ms 0 3\n",
		"member in 'name', groups in 'op', 'host'", "'name', 'op' separates");
	/* The member named by the user stays. */
	keys("host,name,ms", ROWS("h1,a,1", "h1,b,2"), &(struct import_options){.member = "host"},
		"a/h1 ms 0 1\nb/h1 ms 0 2\n", "member in 'host', groups in 'name'", "'name'");
	/* Metrics in separate rows are not repeats. */
	keys("host,job,r,w", ROWS("h1,x,1,", "h1,y,,2"), NULL, "h1 r 0 1\n",
		"member in 'host', metric", "column 'job' is not read");
}

/* The rows of one series after those of another, as from InfluxDB, with names in comments. */
static void keys_of_series_one_after_another(void **state)
{
	const char *text = "#datatype,string,long,dateTime:RFC3339,double,string,string,string\n"
			   "#default,_result,,,,,,\n"
			   ",result,table,_time,_value,_field,host,name\n"
			   ",,0,2026-11-22T14:00:00Z,1,ms,h1,a\n"
			   ",,0,2026-11-22T14:00:01Z,2,ms,h1,a\n"
			   ",,1,2026-11-22T14:00:00Z,3,ms,h1,b\n"
			   ",,1,2026-11-22T14:00:01Z,4,ms,h1,b\n";
	struct seen s;

	(void)state;
	gives(text, NULL,
		"h1/a ms 1795356000 1\nh1/a ms 1795356001 2\nh1/b ms 1795356000 3\n"
		"h1/b ms 1795356001 4\n",
		"member in 'name', groups in 'host'");
	/* Names in a comment before the rows. */
	text = "#time,host,name,ms\n0,h1,a,1\n0,h1,b,2\n1,h1,a,3\n1,h1,b,4\n";
	gives(text, NULL, "h1/a ms 0 1\nh1/b ms 0 2\nh1/a ms 1 3\nh1/b ms 1 4\n",
		"member in 'name', groups in 'host'");
	assert_int_equal(take(&s, text, strlen(text), "x", &find_out), 0);
	assert_string_equal(s.said.member, "name");
	assert_string_equal(s.said.group[0], "host");
	assert_null(s.said.group[1]);
	clear(&s);
}

static void repeats_that_no_column_separates(void **state)
{
	const struct import_options rack = {.group = {"rack"}}, settled = {.settled = true};
	struct seen s;
	size_t size;
	char *text;
	FILE *f;

	(void)state;
	unclear("host,ms", ROWS("h1,1", "h1,2", "h2,3"), NULL,
		"x.csv:1: 4 of 12 rows repeat a time of their series, and no column separates "
		"them: keep one for each time, or give --member and --group");
	/* Neither measured numbers nor a text that never recurs separate rows. */
	unclear("host,depth,id,ms", ROWS("h1,#,x#1,1.5", "h1,3,x#2,2.5"), NULL,
		"x.csv:1: 4 of 8 rows repeat a time of their series, and no column separates them; "
		"tried 'depth', 'id': keep one");
	/* The user has chosen. */
	unclear("rack,host,name,ms", ROWS("r,h1,a,1", "r,h1,b,2"), &rack,
		"x.csv:1: 4 of 8 rows repeat a time of their series, separated by "
		"'name': add it by --group, or name it by --member");
	/* A wide table has no key of rows. */
	unclear("thing,ms", ROWS("a,1", "b,2"), NULL,
		"x.csv:1: 4 of 8 rows repeat a time, separated by 'thing': give it by --member if "
		"it names members (disks, hosts ...), else by --group");
	/* Identical rows count once; a few repeats are tolerated. */
	keys("host,ms", ROWS("h1,#", "h1,#"), NULL, "h1 ms 0 1\nh1 ms 0 1\nh1 ms 1 2\n",
		"member in 'host'", NULL);
	f = alloc_text(&text, &size);
	fputs("time,host,ms\n", f);
	for (int t = 0; t < 100; t++)
		fprintf(f, "%d,h1,%d\n", t == 50 ? 49 : t, t);
	fclose(f);
	assert_int_equal(take(&s, text, strlen(text), "x.csv", &find_out), 0);
	assert_int_equal(s.said.samples, 100);
	assert_int_equal(s.said.n_notes, 1);
	assert_string_equal(
		s.said.notes[0], "1 of 100 rows repeat a time of their series; their mean is used");
	clear(&s);
	free(text);
	/* A later piece of a file keeps its key. */
	unclear("host,name,ms", ROWS("h1,a,1", "h1,b,2", "h2,a,1", "h2,b,2", "h3,a,1", "h3,b,2"),
		&settled,
		"x.csv:1: 12 of 24 rows repeat a time of their series, separated by "
		"'name'");
}

static void times(void **state)
{
	struct seen s;
	const char *text = "ts,a\n1700000000123,1\n";
	const struct import_options part = {.from_s = 1, .to_s = 3};

	(void)state;
	gives("time_us,a\n1500000,1\n", NULL, "a read_ms 1.5 1\n", "are us");
	gives("TIME_NS,a\n1700000000123000000,1\n", NULL, "a read_ms 1700000000.123 1\n", "ns");
	/* The unit is in the name: not guessed. */
	gives("time_s,a\n1700000000123,1\n", NULL, "a read_ms 1700000000123 1\n", "are s");
	gives("date,a\n2026-11-22T14:00:00Z,1\n\"2026-11-22 15:00:01.5+01:00\",2\n", NULL,
		"a read_ms 1795356000 1\na read_ms 1795356001.5 2\n", "wide");
	gives("time,a\n0,1\n1,2\n2,3\n3,4\n", &part, "a read_ms 1 2\na read_ms 2 3\n", "wide");
	assert_int_equal(take(&s, text, strlen(text), "x.csv", &find_out), 0);
	assert_string_equal(s.text, "a x 1700000000.123 1\n");
	assert_int_equal(s.said.n_notes, 1);
	assert_non_null(strstr(s.said.notes[0], "read as milliseconds"));
	clear(&s);
	refuses("time,a\n,1\n", NULL, "x.csv:2: time '' is neither");
	refuses("time,a\n1,1\nnan,1\n", NULL, "x.csv:3: time 'nan' is neither");
	refuses("time,a\n0x10,1\n", NULL, "x.csv:2: time '0x10' is neither");
}

static void heads_are_refused(void **state)
{
	const struct import_options near = {.member = "dsk"},
				    twice = {.member = "disk", .group = {"disk"}},
				    none = {.group = {"rack"}};

	(void)state;
	refuses("server,metric,value\n", NULL,
		"x.csv:1: there is no column of times (time, time_ms, timestamp ...); name it by "
		"--time; the columns are 'server', 'metric', 'value'");
	refuses("0,1.5,2\n", NULL,
		"x.csv:1: the first line must name the columns, such as 'time,host,disk,read_ms'; "
		"it holds '0', '1.5', '2'");
	/* Equal values are not columns that occur twice. */
	refuses("2026-11-22T14:00:00Z,h1,sda,7,7\n", NULL,
		"x.csv:1: the first line must name the columns");
	refuses("0, 7872059, 0, 4096, 0\n100, 7166968, 1, 4096, 4096\n", NULL,
		"x.csv:1: the first line must name the columns; it holds '0', '7872059', '0', "
		"'4096', '0'. For each log of fio: (echo time_ms,JOB; cut -d, -f1,2 'x.csv') "
		">JOB.csv");
	/* Names may be numbers. */
	gives("time,50,99\n0,1,2\n", NULL, "50 read_ms 0 1\n99 read_ms 0 2\n", "wide");
	refuses("time,disk,metric,value\n", &near,
		"x.csv:1: there is no column 'dsk'; the columns are 'time', 'disk', 'metric', "
		"'value'; did you mean 'disk'?");
	refuses("time,disk,value\n", &none, "x.csv:1: there is no column 'rack'; the columns are");
	refuses("time,disk,value\n", &twice, "x.csv:1: column 'disk' cannot be two things");
	refuses("time,a,b,a\n", NULL, "x.csv:1: column 'a' occurs twice");
	refuses("time,metric,value\n", NULL, "x.csv:1: there is no column of members");
	refuses("time,disk,metric\n", NULL, "x.csv:1: there is a column 'metric' of metrics");
}

static void names_are_checked(void **state)
{
	char text[1000], name[300];
	struct seen s;

	(void)state;
	refuses("time,server,value\n0,,1\n", NULL, "x.csv:2: the name of the member is empty");
	refuses("time,rack,disk,value\n0,,a,1\n", NULL, "x.csv:2: the name of the group is empty");
	refuses("time,server,value\n0,a\x1b[2J,1\n", NULL,
		"x.csv:2: 'a\\x1b[2J' cannot name a member");
	refuses("time,server,value\n0,a\xff,1\n", NULL, "x.csv:2: 'a\\xff' cannot name a member");
	refuses("time,server,value\n0,\"a\nb\",1\n", NULL, "x.csv:2: 'a\\nb' cannot name a member");
	memset(name, 'n', 299);
	name[200] = '\0';
	snprintf(text, sizeof(text), "time,server,value\n0,%s,1\n", name);
	assert_int_equal(take(&s, text, strlen(text), "x", &find_out), 0);
	clear(&s);
	name[200] = 'n';
	name[201] = '\0';
	snprintf(text, sizeof(text), "time,server,value\n0,%s,1\n", name);
	refuses(text, NULL, "x.csv:2: 'nnnn");
	/* In the wide form group and member may each have this length. */
	name[200] = '\0';
	snprintf(text, sizeof(text), "time,%s/%s\n0,1\n", name, name);
	assert_int_equal(take(&s, text, strlen(text), "x", &find_out), 0);
	clear(&s);
	snprintf(text, sizeof(text), "time,%s/%sn\n0,1\n", name, name);
	refuses(text, NULL, "x.csv:2: 'nnnn");
	assert_int_equal(take(&s, "time,a\n0,1\0002\n", 13, "x.csv", &find_out), -EINVAL);
	assert_string_equal(s.e.text, "x.csv:2: the row has a zero byte");
	clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_form),
		cmocka_unit_test(a_column_for_each_metric),
		cmocka_unit_test(usual_names_are_members),
		cmocka_unit_test(wide_form),
		cmocka_unit_test(separators_quotes_and_ends),
		cmocka_unit_test(heads_of_collectl),
		cmocka_unit_test(tables_of_other_programs),
		cmocka_unit_test(tables_may_follow_one_another),
		cmocka_unit_test(zones_and_jumps),
		cmocka_unit_test(a_key_distinguishes_rows),
		cmocka_unit_test(keys_of_series_one_after_another),
		cmocka_unit_test(repeats_that_no_column_separates),
		cmocka_unit_test(times),
		cmocka_unit_test(heads_are_refused),
		cmocka_unit_test(names_are_checked),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
