/* Talks to ClickHouse over HTTP. */
#include "diag/ship/clickhouse.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diag/import/http.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/text.h"

enum { SAID = 700, NAME_MOST = 64 };

struct clickhouse {
	struct http *http;
	char *url, *database;
	const char *settings;
};

/* Answers come whole or not at all: an error in their middle is an error of the request. Numbers
 * of 64 bits are numbers. */
#define SETTINGS "wait_end_of_query=1&output_format_json_quote_64bit_integers=0"

/* 18.16 has it behind this; later versions need it no longer, and may not know it. */
#define LOW_CARDINALITY "allow_experimental_low_cardinality_type"

static int wrong_url(const char *url, const char *why, struct err *e)
{
	return err_set(e, -EINVAL, "'%s' is no address of a database: %s; such as %s", url, why,
		"clickhouse://127.0.0.1:8123/culprit");
}

/* Splits the address: '*base' for HTTP, '*database'; both malloced. */
static int clickhouse_split(const char *url, char **base, char **database, struct err *e)
{
	static const char plain[] = "clickhouse://", secure[] = "clickhouses://";
	const bool tls = !strncmp(url, secure, sizeof(secure) - 1);
	const char *host, *slash, *name;
	size_t n;

	if (!tls && strncmp(url, plain, sizeof(plain) - 1) != 0)
		return wrong_url(
			url, "it begins with neither clickhouse:// nor clickhouses:// (TLS)", e);
	host = url + (tls ? sizeof(secure) : sizeof(plain)) - 1;
	slash = strchr(host, '/');
	if (memchr(host, '@', slash ? (size_t)(slash - host) : strlen(host)))
		return err_set(e, -EINVAL,
			"the address must hold no user and password: others can see the command "
			"line; put USER:PASSWORD into a file, --password-file FILE, or into "
			"CULPRIT_CLICKHOUSE_USER and CULPRIT_CLICKHOUSE_PASSWORD");
	if (!slash || slash == host || !slash[1])
		return wrong_url(url, "it names a host and a database", e);
	name = slash + 1;
	n = strlen(name);
	for (size_t i = 0; i < n; i++)
		if (n > NAME_MOST || !(isalnum((unsigned char)name[i]) || name[i] == '_') ||
			isdigit((unsigned char)name[0]))
			return wrong_url(url,
				"the database's name has at most 64 letters, digits and _, and "
				"begins with no digit",
				e);
	n = (size_t)(slash - host);
	*base = alloc_format("%s://%.*s%s", tls ? "https" : "http", (int)n, host,
		strrchr(host, ']') > strrchr(host, ':') ? (tls ? ":8443" : ":8123")
			: memchr(host, ':', n)          ? ""
			: tls                           ? ":8443"
							: ":8123");
	*database = alloc_copy(name);
	return 0;
}

static char *secret_of_environment(void)
{
	const char *user = getenv("CULPRIT_CLICKHOUSE_USER"),
		   *password = getenv("CULPRIT_CLICKHOUSE_PASSWORD");

	if (!user && !password)
		return NULL;
	return alloc_format("%s:%s", user ? user : "default", password ? password : "");
}

static int clickhouse_look(struct clickhouse *c, struct err *e)
{
	json_auto_t *rows = NULL;
	int rc;

	c->settings = SETTINGS;
	rc = clickhouse_ask(c,
		"SELECT count() FROM system.settings WHERE name = '" LOW_CARDINALITY "'", &rows, e);
	if (!rc && json_integer_value(json_array_get(json_array_get(rows, 0), 0)))
		c->settings = SETTINGS "&" LOW_CARDINALITY "=1";
	return rc;
}

int clickhouse_open(const struct clickhouse_options *o, struct clickhouse **out, struct err *e)
{
	struct clickhouse *c = alloc_zero(1, sizeof(*c));
	auto_free char *secret = o->password_file ? NULL : secret_of_environment();
	auto_free char *base = NULL;
	struct http_options how = {.timeout_s = o->timeout_s,
		.password_file = o->password_file,
		.secret = secret,
		.ca_file = o->ca_file,
		.stop = o->stop};
	int rc = clickhouse_split(o->url, &base, &c->database, e);

	c->url = alloc_copy(o->url);
	how.base = base;
	rc = rc ? err_blame(e, ERR_USAGE, rc) : 0;
	if (!rc) {
		rc = http_new(&how, &c->http, e);
		rc = rc ? err_blame(e, ERR_USAGE, rc) : 0;
	}
	rc = rc ?: clickhouse_look(c, e);
	if (rc)
		clickhouse_close(c);
	else
		*out = c;
	return rc;
}

void clickhouse_close(struct clickhouse *c)
{
	if (!c)
		return;
	http_free(c->http);
	free(c->url);
	free(c->database);
	free(c);
}

const char *clickhouse_database(const struct clickhouse *c)
{
	return c->database;
}

const char *clickhouse_url(const struct clickhouse *c)
{
	return c->url;
}

/* The server's words, in one line; what kind of refusal they are. */
static int explain(const struct clickhouse *c, FILE *answer, long status, struct err *e)
{
	char raw[SAID + 1], said[2 * SAID], code[32];
	size_t n = fread(raw, 1, SAID, answer);
	int number = 0, rc = -EREMOTEIO;

	raw[n] = '\0';
	for (char *s = raw; *s; s++)
		if (*s == '\n')
			*s = ' ';
	sscanf(raw, "Code: %31[0-9]", code) == 1 ? number = atoi(code) : 0;
	text_clean(raw, said, sizeof(said));
	/* NOT_ENOUGH_SPACE; a write that failed says it in words. */
	if (number == 243 || strstr(raw, "No space left") || strstr(raw, "ot enough space"))
		rc = err_set(e, -ENOSPC, "the store at %s is full: %s", http_site(c->http), said);
	else if (status == 401 || status == 403 || number == 192 || number == 193 ||
		number == 194 || number == 195 || number == 497 || number == 516)
		rc = err_set(e, -EACCES,
			"the store at %s does not let this user in; --password-file FILE holds "
			"USER:PASSWORD, or CULPRIT_CLICKHOUSE_USER and "
			"CULPRIT_CLICKHOUSE_PASSWORD do: %s",
			http_site(c->http), said);
	else
		err_set(e, rc, "the store at %s refuses (HTTP %ld): %s", http_site(c->http), status,
			*said ? said : "it says nothing");
	return err_blame(e, ERR_CLUSTER, rc);
}

/* Posts; 0 with the answer, until clickhouse_end. */
static int post(struct clickhouse *c, const char *form, const void *body, size_t size,
	FILE **answer, struct err *e)
{
	long status = 0;
	int rc = http_post(c->http, "/", form, body, size, answer, &status, e);

	if (rc || status == 200)
		return rc;
	rc = explain(c, *answer, status, e);
	return clickhouse_end(c, rc, e);
}

int clickhouse_end(struct clickhouse *c, int rc, struct err *e)
{
	struct err said = {.text = ""};
	int broken = http_end(c->http, rc, &said);

	if (*said.text)
		*e = said;
	return broken;
}

int clickhouse_do(struct clickhouse *c, const char *sql, struct err *e)
{
	char rest[512];
	FILE *answer;
	int rc = post(c, c->settings, sql, strlen(sql), &answer, e);

	if (rc)
		return rc;
	while (fread(rest, 1, sizeof(rest), answer) > 0)
		;
	return clickhouse_end(c, 0, e);
}

int clickhouse_ask(struct clickhouse *c, const char *sql, json_t **rows, struct err *e)
{
	auto_free char *whole = alloc_format("%s FORMAT JSONCompact", sql);
	json_auto_t *v = NULL;
	json_t *data;
	json_error_t why;
	FILE *answer;
	int rc = post(c, c->settings, whole, strlen(whole), &answer, e);

	if (rc)
		return rc;
	v = json_loadf(answer, JSON_ALLOW_NUL, &why);
	data = json_object_get(v, "data");
	if (!json_is_array(data))
		rc = err_blame(e, ERR_CLUSTER,
			err_set(e, -EPROTO, "what answers at %s is no ClickHouse: %s",
				http_site(c->http), v ? "no data" : why.text));
	rc = clickhouse_end(c, rc, e);
	if (!rc)
		*rows = json_incref(data);
	return rc;
}

int clickhouse_insert(
	struct clickhouse *c, const char *into, const void *body, size_t size, struct err *e)
{
	auto_free char *sql = alloc_format("INSERT INTO %s FORMAT RowBinary", into);
	auto_free char *encoded = http_encode(sql);
	auto_free char *form = alloc_format("%s&query=%s", c->settings, encoded);
	char rest[512];
	FILE *answer;
	int rc = post(c, form, body, size, &answer, e);

	if (rc)
		return rc;
	while (fread(rest, 1, sizeof(rest), answer) > 0)
		;
	return clickhouse_end(c, 0, e);
}

int clickhouse_begin(struct clickhouse *c, const char *sql, FILE **answer, struct err *e)
{
	auto_free char *whole = alloc_format("%s FORMAT RowBinary", sql);
	/* The statement is sent before the answer begins; so it need not outlive this. */
	return post(c, c->settings, whole, strlen(whole), answer, e);
}

void clickhouse_quote(FILE *out, const char *s)
{
	fputc('\'', out);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputc('\'', out);
}
