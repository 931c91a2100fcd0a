/* culprit ship: logs and runs sent to ClickHouse or as JSON lines, a dashboard for what is there,
 * and runs packed as corpora. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "diag/ship/sender.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/cli/subject.h"
#include "harness/cli/shards.h"
#include "harness/cli/cmd.h"
#include "harness/run/signals.h"
#include "harness/judging/run_logs.h"
#include "harness/store/lock.h"
#include "harness/web/serve/dashboard.h"

struct options {
	const char *to, *pack, *dashboard, *database, *views;
	long cell, blocks;
	double timeout_s;
	bool json, follow, whole;
	struct clickhouse_given clickhouse;
};

struct shipping {
	const struct options *o;
	struct run_logs *recorded, **seen; /* seen: what --follow read of a run that continues */
	size_t n_seen;
	struct run_requests *requests;
	char *run_id;
	json_t *tables;
	struct query_log *logs; /* of logs by themselves */
	size_t n;
	const struct query_log *all;
	struct clickhouse *clickhouse;
	struct sender *sender;
	struct ship_lines *lines;
	struct ship_sink sink;
	struct ship_spec spec;
	struct ship_counts sum;
	int code;
};

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Two runs may have the same name. */
static char *name_run(struct store *store)
{
	char key[80];

	if (store_blind_key(store, key, NULL))
		return alloc_copy(store_run_id(store));
	return alloc_format("%s (%08llx)", store_run_id(store),
		(unsigned long long)ship_text_id(key) & 0xffffffff);
}

static int read_tables(struct shipping *s, struct store *store, struct err *e)
{
	int rc = 0;

	free(s->run_id);
	json_decref(s->tables);
	s->run_id = name_run(store);
	s->tables = json_object();
	for (const struct run_logs_table *t = run_logs_tables; !rc && t->name; t++) {
		json_t *rows = NULL;

		rc = run_logs_rows(store, t, &rows, e);
		if (!rc)
			json_object_set_new(s->tables, t->name, rows);
	}
	return rc;
}

static int name_and_tables(struct shipping *s, const char *folder, struct err *e)
{
	struct store *store = NULL;
	int rc = store_open(folder, &store, e);

	rc = rc ?: read_tables(s, store, e);
	store_close(store);
	return rc;
}

static int open_run(struct shipping *s, const char *folder, struct err *e)
{
	struct store *store;
	int rc = store_open(folder, &store, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	rc = run_logs_new(store, s->o->cell, 0, &s->recorded, e)
		?: run_requests_new(store, s->o->cell, 0, &s->requests, e)
		?: read_tables(s, store, e);
	if (!rc)
		s->all = run_logs_list(s->recorded, &s->n);
	store_close(store);
	return rc;
}

static int take_logs(struct shipping *s, int n, char **args, struct err *e)
{
	if (s->o->cell)
		return err_set(e, -EINVAL, "--cell is for runs");
	s->logs = alloc_zero((size_t)n, sizeof(*s->logs));
	for (int i = 0; i < n; i++) {
		if (is_folder(args[i]))
			return err_set(e, -EINVAL, "'%s': one run at a time, or logs", args[i]);
		s->logs[i].path = s->logs[i].name = args[i];
	}
	s->all = s->logs;
	s->n = (size_t)n;
	return 0;
}

static bool is_clickhouse(const char *to)
{
	return strstr(to, "://") != NULL;
}

static int open_sink(struct shipping *s, struct err *e)
{
	const char *to = s->o->to;
	int rc;

	if (!is_clickhouse(to)) {
		rc = ship_lines_new(to, &s->lines, e);
		if (!rc)
			s->sink = ship_lines_sink(s->lines);
		return rc;
	}
	rc = clickhouse_given_open(&s->o->clickhouse, to, s->o->timeout_s, &s->clickhouse, e)
		?: sender_new(s->clickhouse, s->run_id, &s->sender, e);
	if (!rc)
		s->sink = sender_sink(s->sender);
	return rc ?: s->run_id ? sender_run(s->sender, s->tables, e) : 0;
}

/* Says what became of the records of one log. */
static void ship_tell(
	struct shipping *s, const char *name, const struct ship_counts *c, const char *what)
{
	FILE *out = s->lines ? stderr : stdout;

	s->sum.records += c->records;
	s->sum.sent += c->sent;
	s->sum.before += c->before;
	s->sum.plain += c->plain;
	s->sum.lost += c->lost;
	if (s->o->json) {
		json_t *v = json_pack("{s:s*, s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "log", name,
			"of", what, "records", (json_int_t)c->records, "sent", (json_int_t)c->sent,
			"before", (json_int_t)c->before, "not_rows", (json_int_t)c->plain,
			"lost_by_tracer", (json_int_t)c->lost, "whole", c->whole);

		json_dumpf(v, out, JSON_COMPACT);
		fputc('\n', out);
		json_decref(v);
	} else {
		text_print_clean(out, name);
		fprintf(out, ": %llu %s: %llu sent, %llu there before",
			(unsigned long long)c->records, what, (unsigned long long)c->sent,
			(unsigned long long)c->before);
		if (c->plain)
			fprintf(out, ", %llu no rows (marks, the end)",
				(unsigned long long)c->plain);
		if (c->lost)
			fprintf(out, "; the tracer lost %llu", (unsigned long long)c->lost);
		fputc('\n', out);
	}
	if (!c->whole && !c->grows)
		s->code = cmd_fail("ship", CULPRIT_EXIT_USAGE, "%s", c->problem);
}

static int send_logs(struct shipping *s, struct err *e)
{
	struct ship_counts c;
	int rc = 0;

	for (size_t i = 0; !rc && i < s->n; i++) {
		rc = ship_log(&s->all[i], (int64_t)i, &s->spec, &s->sink, &c, e);
		if (!rc)
			ship_tell(s, s->all[i].name, &c, "records");
	}
	return rc;
}

static int send_requests(struct shipping *s, struct err *e)
{
	const size_t n = s->requests ? run_requests_count(s->requests) : 0;
	struct ship_counts c;
	const char *why;
	bool none;
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		rc = ship_requests(s->requests, i, s->recorded, &s->spec, &s->sink, &c, &none, e);
		if (!rc && !none)
			ship_tell(s, run_requests_log(s->requests, i)->name, &c, "requests");
		for (size_t k = 0; !rc && (why = run_requests_trouble(s->requests, i, k)); k++)
			s->code = cmd_fail("ship", CULPRIT_EXIT_USAGE, "requests of %s: %s",
				run_requests_log(s->requests, i)->name, why);
	}
	return rc;
}

/* ---- --follow ---- */

/* A log's own sender: several logs grow at once. */
static int open_one(void *ctx, struct ship_sink *sink, struct err *e)
{
	struct shipping *s = ctx;
	struct sender *sender;
	int rc;

	*sink = s->sink;
	if (s->lines)
		return 0;
	rc = sender_new(s->clickhouse, s->run_id, &sender, e);
	if (!rc)
		*sink = sender_sink(sender);
	return rc;
}

static void close_one(void *ctx, struct ship_sink *sink)
{
	struct shipping *s = ctx;

	if (!s->lines)
		sender_free(sink->ctx);
}

static void tell_one(void *ctx, const char *name, const struct ship_counts *c)
{
	ship_tell(ctx, name, c, "records");
}

/* The run's attempts until now; what was read before stays, since logs in it are being followed. */
static int look_again(struct shipping *s, const char *folder, struct err *e)
{
	struct run_logs *r;
	struct store *store;
	int rc = store_open(folder, &store, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	rc = run_logs_new(store, s->o->cell, 0, &r, e);
	store_close(store);
	if (rc)
		return (rc == -EINVAL || rc == -ENODATA) && run_is_locked(folder, NULL) ? 0 : rc;
	s->seen = alloc_room(s->seen, s->n_seen, sizeof(*s->seen));
	s->seen[s->n_seen++] = r;
	s->all = run_logs_list(r, &s->n);
	return 0;
}

/* Changes with the run's store. */
static int64_t store_stamp(const char *folder)
{
	static const char *const names[] = {"run.db", "run.db-wal"};
	int64_t sum = 0;
	struct stat st;

	for (int i = 0; i < 2; i++) {
		auto_free char *path = alloc_format("%s/%s", folder, names[i]);

		if (!stat(path, &st))
			sum = sum * 31 + st.st_size + st.st_mtim.tv_sec * 1000000007 +
				st.st_mtim.tv_nsec;
	}
	return sum;
}

/* Until nothing grows any more, or a signal. 'folder': of a run, or NULL. */
static int follow(struct shipping *s, const char *folder, struct err *e)
{
	const struct ship_followed of = {
		.ctx = s, .spec = &s->spec, .open = open_one, .close = close_one, .tell = tell_one};
	struct ship_follow *f = ship_follow_new(&of);
	int64_t stamp = 0, was = 0;
	size_t left = 1;
	bool goes_on = true;
	int rc = 0;

	while (!rc && (left || goes_on)) {
		goes_on = folder && run_is_locked(folder, NULL);
		stamp = folder ? store_stamp(folder) : 1;
		if (stamp != was && folder)
			rc = look_again(s, folder, e);
		if (!rc && stamp != was)
			ship_follow_add(f, s->all, s->n);
		was = stamp;
		rc = rc ?: ship_follow_step(f, &left, e);
		if (!rc && *s->spec.interrupted)
			rc = signals_interrupted(e);
		if (!rc && (left || goes_on))
			signals_nap();
	}
	ship_follow_free(f);
	return rc;
}

/* Once the run has ended: its tables as they are then, and its requests. */
static int send_the_rest(struct shipping *s, const char *folder, struct err *e)
{
	int rc = 0;

	if (folder)
		rc = open_run(s, folder, e);
	if (!rc && s->sender && s->run_id)
		rc = sender_run(s->sender, s->tables, e);
	return rc ?: send_requests(s, e);
}

static int follow_all(struct shipping *s, const struct call *c, struct err *e)
{
	const char *folder = c->n == 1 && is_folder(c->args[0]) ? c->args[0] : NULL;
	int rc = folder ? name_and_tables(s, folder, e) : take_logs(s, c->n, c->args, e);

	if (rc)
		return err_blame(e, ERR_USAGE, rc);
	return open_sink(s, e) ?: follow(s, folder, e) ?: send_the_rest(s, folder, e);
}

static void ship_close_all(struct shipping *s)
{
	sender_free(s->sender);
	clickhouse_close(s->clickhouse);
	ship_lines_free(s->lines);
	run_requests_free(s->requests);
	run_logs_free(s->recorded);
	for (size_t i = 0; i < s->n_seen; i++)
		run_logs_free(s->seen[i]);
	free(s->seen);
	json_decref(s->tables);
	free(s->run_id);
	free(s->logs);
}

static int send_all(struct shipping *s, const struct call *c, struct err *e)
{
	int rc = c->n == 1 && is_folder(c->args[0]) ? open_run(s, c->args[0], e)
						    : take_logs(s, c->n, c->args, e);

	if (rc)
		err_blame(e, ERR_USAGE, rc);
	return rc ?: open_sink(s, e) ?: send_logs(s, e) ?: send_requests(s, e);
}

static int ship_pack(const struct call *c)
{
	const struct options *o = c->options;
	struct store *s = NULL;
	struct err e;
	int code = CULPRIT_EXIT_OK;

	if (shards_open("ship", c->n, c->args, &s, &e) || store_pack(s, o->pack, o->whole, &e))
		code = cmd_error("ship", &e, ERR_USAGE);
	store_close(s);
	return code;
}

/* ---- --dashboard ---- */

static int write_dashboard(const char *path, const json_t *dashboard, struct err *e)
{
	struct file_text t;
	int rc = file_text_open(&t, e);

	if (rc)
		return rc;
	json_dumpf(dashboard, t.f, JSON_INDENT(2));
	fputc('\n', t.f);
	return file_text_save(&t, path, 0644, e);
}

/* Compiles the queries that ask for no run's own tables: those need a run. */
static int check_views(struct views *views, struct err *e)
{
	const struct query_spec spec = {.params = view_params};
	struct query *q = NULL;
	int rc = query_new(&spec, &q, e);

	for (size_t i = 0; !rc && i < views->n; i++)
		if (!views->v[i].of_runs && !views->v[i].wrong)
			view_check(&views->v[i], q);
	query_free(q);
	return rc;
}

static int ship_dashboard(const struct options *o)
{
	auto_json json_t *dashboard = NULL, *left_out = json_array();
	struct views views = {0};
	const json_t *why;
	struct err e;
	size_t i;
	int rc;

	if (!*o->database ||
		o->database[strspn(o->database,
			"abcdefghijklmnopqrstuvwxyz"
			"ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")])
		return cmd_fail("ship", CULPRIT_EXIT_USAGE,
			"--database takes letters, digits and _, not '%s'", o->database);
	rc = views_read(o->views, &views, &e) ?: check_views(&views, &e);
	if (!rc) {
		dashboard = dashboard_grafana(&views, o->database, left_out);
		rc = write_dashboard(o->dashboard, dashboard, &e);
	}
	json_array_foreach(left_out, i, why)
		if (!rc)
			cmd_fail("ship", 0, "%s", json_string_value(why));
	views_clear(&views);
	return rc ? cmd_error("ship", &e, ERR_USAGE) : CULPRIT_EXIT_OK;
}

static int ship_run(const struct call *c)
{
	const struct options *o = c->options;
	struct shipping s = {.o = o, .spec = {.batch_blocks = (uint64_t)o->blocks}};
	struct err e = {.text = ""};
	int rc;

	if (!c->n == !o->dashboard)
		return cmd_fail("ship", CULPRIT_EXIT_USAGE,
			o->dashboard ? "--dashboard takes no run and no logs"
				     : "which logs, or run? 'culprit ship RUN --to WHERE'");
	if (o->dashboard)
		return ship_dashboard(o);
	if (o->pack)
		return ship_pack(c);
	if (!o->to)
		return cmd_fail("ship", CULPRIT_EXIT_USAGE,
			"needs --to clickhouse://HOST:PORT/DATABASE, --to FILE.jsonl or --to -, or "
			"--pack FOLDER");
	s.spec.interrupted = signals_catch();
	rc = o->follow ? follow_all(&s, c, &e) : send_all(&s, c, &e);
	if (s.lines)
		rc = ship_lines_end(s.lines, rc, &e);
	if (rc)
		s.code = cmd_error("ship", &e,
			rc == -EINVAL || rc == -ENODATA || rc == -ENOENT || rc == -EBADMSG
				? ERR_USAGE
				: ERR_HARNESS);
	ship_close_all(&s);
	return s.code;
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"to", 0, OPTION_TEXT, AT(to), "WHERE",
		"clickhouse://HOST[:PORT]/DATABASE (clickhouses:// for TLS), a file of JSON lines, "
		"or - for standard output"},
	{"cell", 0, OPTION_WHOLE, AT(cell), "N", "of a run: only this cell's logs", 1, 1e9},
	{"blocks", 0, OPTION_WHOLE, AT(blocks), "N",
		"blocks of a log (64 KiB) that are sent at once (default: 128)", 1, 4096},
	{"timeout", 0, OPTION_QUANTITY, AT(timeout_s), "TIME",
		"the longest wait for one answer of the store (default: 1min)", 0.1, 3600,
		UNIT_SECONDS},
	{"follow", 0, OPTION_FLAG, AT(follow), NULL,
		"go on while the logs are being written, or the run goes on, once a second"},
	{"json", 0, OPTION_FLAG, AT(json), NULL, "tell what was sent as one JSON object per log"},
	{"", 0, OPTION_GROUP, AT(clickhouse), NULL, "", .group = clickhouse_rows},
	{"pack", 0, OPTION_TEXT, AT(pack), "FOLDER",
		"pack what judging and scoring need of a run, a corpus, into FOLDER/run.db.gz: "
		"plan, attempts, samples and events, but no traces, hosts or verdicts",
		.allows = "whole"},
	{"whole", 0, OPTION_FLAG, AT(whole), NULL,
		"with --pack: also verdicts, hosts and all details, as 'culprit report' needs them",
		.needs = "pack"},
	{"dashboard", 0, OPTION_TEXT, AT(dashboard), "FILE",
		"write the views of 'culprit serve', culprit's own and yours, as a dashboard of "
		"Grafana for such a database ('-': standard output)",
		.allows = "database|views"},
	{"database", 0, OPTION_TEXT, AT(database), "NAME",
		"with --dashboard: the database that it shows at first (default: culprit)",
		.needs = "dashboard"},
	{"views", 0, OPTION_TEXT, AT(views), "DIR",
		"with --dashboard: folder of your views (default: ~/.config/culprit/views)",
		.needs = "dashboard"},
	{0},
};

const struct command ship_command = {.name = "ship",
	.summary = "send or pack logs and runs",
	.arguments = "LOG ... --to WHERE\nRUN --to WHERE\nRUN ... --pack FOLDER\n--dashboard FILE",
	.about =
		"Sends the records of trace logs, or of all logs of a run's attempts, as rows "
		"of the "
		"tables of 'culprit query --schema'. 'culprit query --on' then asks them there.\n\n"
		"A shipper that was stopped or killed goes on where it was: run the same command "
		"again. Each record is in the store exactly once. What the tracer lost, and "
		"where a "
		"log is damaged, is told.\n\n"
		"The database is made if it is not there. It holds one run, or logs outside of "
		"runs. "
		"User and password come from the environment or a file, never from the command "
		"line.\n\n"
		"'rescore', 'diagnose' and 'table' read what --pack wrote as they read a run, and "
		"give the same verdicts. It cannot be written to. Several runs must be shards of "
		"one ('culprit run --shard'); they become one run, in which each shard is judged "
		"with its own training.\n\n"
		"A dashboard is for the data source grafana-clickhouse-datasource. Data source, "
		"database and attempt are its variables; its time range is the recording's. Times "
		"are whole seconds; p50 and p99 are exact. Views of what is not shipped as a table "
		"are left out, and named. Views of yours may use only what SQLite and ClickHouse "
		"share.",
	.examples = "culprit ship RUN --to clickhouse://127.0.0.1:8123/myrun\n"
		    "culprit query --on clickhouse://127.0.0.1:8123/myrun \"select ...\"\n"
		    "culprit ship RUN --follow --to clickhouse://127.0.0.1:8123/live\n"
		    "culprit ship LOG --to events.jsonl\n"
		    "culprit ship runs/NAME --pack corpora/NAME\n"
		    "culprit ship --dashboard culprit.json --database myrun --views ./views",
	.exits = "0 all is there; 2 usage error, or a log is damaged or cut short (what could be "
		 "read "
		 "is there); 3 the store is gone, full, slow or refuses, or an interrupt: run it "
		 "again.",
	ARGUMENTS(0, 1000),
	OPTIONS(rows, struct options),
	.defaults = &(const struct options){.timeout_s = 60, .blocks = 128, .database = "culprit"},
	.run = ship_run};
