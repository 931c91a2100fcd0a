/* Reads view files: a query and how it is drawn. */
#include "harness/web/serve/views.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/near.h"

enum { FILE_MAX = 64 << 10, ORDER = 100 };

const char *const view_charts[VIEW_CHARTS] = {"line", "area", "bars", "heat", "dots", "table"};

const struct query_param view_params[] = {{.name = ":slot_s"}, {.name = ":from_s"},
	{.name = ":to_s"}, {.name = ":attempt"}, {.name = ":cell"}, {.name = NULL}};

static void views_wrong(struct view *v, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Only the first error is reported. */
static void views_wrong(struct view *v, int line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (v->wrong)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v->wrong = alloc_format("%s:%d: %s", v->path, line, text);
}

void view_clear(struct view *v)
{
	free(v->name);
	free(v->path);
	free(v->title);
	free(v->unit);
	free(v->about);
	free(v->sql);
	free(v->wrong);
	memset(v, 0, sizeof(*v));
}

static char *trimmed(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return s;
}

static void take_text(char **to, const char *value)
{
	free(*to);
	*to = alloc_copy(value);
}

static void take_chart(struct view *v, const char *value, int line)
{
	for (int i = 0; i < VIEW_CHARTS; i++)
		if (!strcmp(value, view_charts[i])) {
			v->chart = (enum view_chart)i;
			return;
		}
	views_wrong(
		v, line, "chart must be line, area, bars, heat, dots or table, not '%.40s'", value);
}

static void take_word(
	struct view *v, const char *key, const char *value, const char *word, bool *to, int line)
{
	if (strcmp(value, word) != 0)
		views_wrong(v, line, "%s must be %s or omitted, not '%.40s'", key, word, value);
	*to = true;
}

static void take_order(struct view *v, const char *value, int line)
{
	char *end;

	errno = 0;
	v->order = strtol(value, &end, 10);
	if (!*value || *end || errno || v->order < 0)
		views_wrong(v, line, "order must be a whole number, not '%.40s'", value);
}

static void views_take(struct view *v, const char *key, const char *value, int line)
{
	static const char *const keys[] = {
		"title", "chart", "unit", "about", "scale", "needs", "order", "query", NULL};
	const char *near;

	if (!strcmp(key, "title"))
		take_text(&v->title, value);
	else if (!strcmp(key, "unit"))
		take_text(&v->unit, value);
	else if (!strcmp(key, "about"))
		take_text(&v->about, value);
	else if (!strcmp(key, "chart"))
		take_chart(v, value, line);
	else if (!strcmp(key, "scale"))
		take_word(v, key, value, "log", &v->logarithmic, line);
	else if (!strcmp(key, "needs"))
		take_word(v, key, value, "run", &v->of_runs, line);
	else if (!strcmp(key, "order"))
		take_order(v, value, line);
	else if ((near = near_match(key, keys)))
		views_wrong(
			v, line, "there is no '%.40s' in a view; did you mean '%s'?", key, near);
	else
		views_wrong(v, line,
			"there is no '%.40s' in a view: title, chart, unit, about, scale, "
			"needs, order, query",
			key);
}

/* Reads the lines before the query. Returns the text after "query:", or NULL. */
static char *views_read_head(struct view *v, char *text)
{
	char *next, *colon, *line;
	int n = 0;

	for (; text; text = next) {
		n++;
		text += strspn(text, " \t\r");
		if (!strncmp(text, "query:", strlen("query:"))) {
			v->sql_line = n;
			return text + strlen("query:");
		}
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		line = trimmed(text);
		if (!*line || *line == '#')
			continue;
		colon = strchr(line, ':');
		if (!colon) {
			views_wrong(v, n, "a line must be 'key: value', not '%.40s'", line);
			return NULL;
		}
		*colon = '\0';
		views_take(v, trimmed(line), trimmed(colon + 1), n);
	}
	views_wrong(v, n, "there is no 'query:'");
	return NULL;
}

static void parse(struct view *v, char *text)
{
	char *sql = views_read_head(v, text);

	if (!v->title)
		v->title = alloc_copy(v->name);
	if (!sql)
		return;
	v->sql = alloc_copy(sql);
	if (!v->sql[strspn(v->sql, " \t\r\n;")])
		views_wrong(v, v->sql_line, "nothing follows 'query:'");
}

static char *views_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = alloc_copy(slash ? slash + 1 : path), *dot = strrchr(name, '.');

	if (dot && !strcmp(dot, ".view"))
		*dot = '\0';
	return name;
}

void view_read(const char *path, struct view *out)
{
	auto_free char *text = NULL;
	size_t size = 0;
	struct stat st;
	struct err e;

	*out = (struct view){.name = views_name_of(path),
		.path = alloc_copy(path),
		.order = ORDER,
		.chart = VIEW_TABLE};
	if (!stat(path, &st) && (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX))
		views_wrong(out, 1, "a view is a file of at most %d KiB", FILE_MAX >> 10);
	else if (file_read(path, &text, &size, &e))
		views_wrong(out, 1, "%s", e.text);
	else if (strlen(text) != size)
		views_wrong(out, 1, "a view is text, without NUL");
	if (out->wrong)
		out->title = alloc_copy(out->name);
	else
		parse(out, text);
}

static int is_view(const struct dirent *d)
{
	const size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && !strcmp(d->d_name + n - 5, ".view");
}

static void views_put(struct views *views, struct view *v)
{
	for (size_t i = 0; i < views->n; i++)
		if (!strcmp(views->v[i].name, v->name)) {
			view_clear(&views->v[i]);
			views->v[i] = *v;
			return;
		}
	views->v = alloc_room(views->v, views->n, sizeof(*views->v));
	views->v[views->n++] = *v;
}

static int read_folder(const char *folder, bool own, struct views *views, struct err *e)
{
	struct dirent **files;
	const int n = scandir(folder, &files, is_view, alphasort);

	if (n < 0)
		return err_errno(e, -errno, "cannot read the views in '%s'", folder);
	for (int i = 0; i < n; i++) {
		auto_free char *path = alloc_format("%s/%s", folder, files[i]->d_name);
		struct view v;

		view_read(path, &v);
		v.own = own;
		views_put(views, &v);
		free(files[i]);
	}
	free(files);
	return 0;
}

static int by_order(const void *a, const void *b)
{
	const struct view *x = a, *y = b;

	return x->order != y->order ? (x->order < y->order ? -1 : 1) : strcmp(x->name, y->name);
}

/* NULL: there is no home folder. */
static char *users_folder(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		return alloc_format("%s/culprit/views", config);
	return home && *home ? alloc_format("%s/.config/culprit/views", home) : NULL;
}

int views_read(const char *folder, struct views *out, struct err *e)
{
	auto_free char *built_in = NULL, *users = folder ? NULL : users_folder();
	struct views views = {0};
	struct stat st;
	int rc = home_path("harness/web/serve/views", &built_in, e)
		?: read_folder(built_in, false, &views, e);

	if (!rc && folder)
		rc = read_folder(folder, true, &views, e);
	else if (!rc && users && !stat(users, &st))
		rc = read_folder(users, true, &views, e);
	if (rc) {
		views_clear(&views);
		return rc;
	}
	qsort(views.v, views.n, sizeof(*views.v), by_order);
	*out = views;
	return 0;
}

void views_clear(struct views *views)
{
	for (size_t i = 0; i < views->n; i++)
		view_clear(&views->v[i]);
	free(views->v);
	*views = (struct views){0};
}

const struct view *views_find(const struct views *views, const char *name)
{
	for (size_t i = 0; name && i < views->n; i++)
		if (!strcmp(views->v[i].name, name))
			return &views->v[i];
	return NULL;
}

void view_check(struct view *v, struct query *q)
{
	int at = -1, line = v->sql_line;
	struct err e;

	if (v->wrong || !query_check(q, v->sql, &at, &e))
		return;
	if (at < 0)
		line += v->sql[0] == '\n';
	for (int i = 0; i < at && v->sql[i]; i++)
		line += v->sql[i] == '\n';
	views_wrong(v, line, "%s", e.text);
}
