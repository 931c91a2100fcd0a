/* Streams answers over HTTP and HTTPS with libcurl. */
#include "diag/import/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/text.h"

enum { BUFFER_FIRST = 64 * 1024, POST_FROM = 4000, SECRET_MAX = 64 * 1024, POLL_MS = 200 };

struct http {
	char *base, *site;
	double timeout_s;
	const volatile sig_atomic_t *stop;
	struct curl_slist *headers;
	CURLM *multi;
	CURL *easy;
	char *data; /* received but not yet read: from 'at' to 'size' */
	size_t at, size, room;
	double until_s; /* CLOCK_MONOTONIC */
	bool done, posts;
	CURLcode result;
	int failed; /* 0, -EINTR or -ETIMEDOUT */
	FILE *answer;
	char reason[CURL_ERROR_SIZE];
};

/* Reads a file with one line that holds a secret; messages never show it. */
static int read_secret(const char *path, char **secret, struct err *e)
{
	auto_free char *text = NULL;
	size_t size, n;
	int rc = file_read(path, &text, &size, e);

	if (rc)
		return rc;
	n = strcspn(text, "\r\n");
	if (!n || n > SECRET_MAX || text[n + strspn(text + n, "\r\n \t")] || strlen(text) != size)
		return err_set(e, -EINVAL, "'%s' must hold one line, the secret", path);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return err_set(e, -EINVAL,
				"'%s' has a blank or a control character inside its line", path);
	text[n] = '\0';
	*secret = AUTO_TAKE(text);
	return 0;
}

static int set_secrets(struct http *h, const struct http_options *o, struct err *e)
{
	auto_free char *secret = NULL, *header = NULL;
	int rc = 0;

	if (o->token_file && o->password_file)
		return err_set(e, -EINVAL, "give a token or a password, not both");
	if (o->token_file && !(rc = read_secret(o->token_file, &secret, e))) {
		header = alloc_format("Authorization: Bearer %s", secret);
		h->headers = curl_slist_append(h->headers, header);
		curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
	} else if (o->password_file && !(rc = read_secret(o->password_file, &secret, e))) {
		if (!strchr(secret, ':'))
			return err_set(
				e, -EINVAL, "'%s' must hold USER:PASSWORD", o->password_file);
		curl_easy_setopt(h->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(h->easy, CURLOPT_USERPWD, secret);
	} else if (!rc && o->secret) {
		curl_easy_setopt(h->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(h->easy, CURLOPT_USERPWD, o->secret);
	}
	return rc;
}

/* libcurl names no file in its messages: check first that each can be read. */
static int set_file(struct http *h, CURLoption option, const char *path, struct err *e)
{
	int rc = 0;

	if (!path)
		return 0;
	if (access(path, R_OK))
		rc = err_errno(e, -errno, "cannot open '%s'", path);
	rc = rc ?: file_check_readable(path, e);
	if (!rc)
		curl_easy_setopt(h->easy, option, path);
	return rc;
}

static size_t receive(char *data, size_t size, size_t n, void *ctx)
{
	struct http *h = ctx;

	size *= n;
	if (h->at == h->size)
		h->at = h->size = 0;
	if (h->size + size > h->room) {
		h->room = 2 * (h->size + size);
		h->data = alloc_resize(h->data, h->room, 1);
	}
	memcpy(h->data + h->size, data, size);
	h->size += size;
	return size;
}

static int check_url(struct http *h, const char *url, struct err *e)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *port = NULL, *user = NULL, *query = NULL;
	int rc = 0;

	if (curl_url_set(u, CURLUPART_URL, url, 0) || curl_url_get(u, CURLUPART_HOST, &host, 0) ||
		curl_url_get(u, CURLUPART_SCHEME, &scheme, 0))
		rc = err_set(e, -EINVAL, "'%s' is not a URL such as https://host:9090", url);
	else if (strcmp(scheme, "http") && strcmp(scheme, "https"))
		rc = err_set(e, -EINVAL, "the URL must begin with http:// or https://, not %s://",
			scheme);
	else if (!curl_url_get(u, CURLUPART_USER, &user, 0))
		rc = err_set(e, -EINVAL,
			"the URL must not contain user and password: others can see the command "
			"line; put USER:PASSWORD into a file, --password-file FILE");
	else if (!curl_url_get(u, CURLUPART_QUERY, &query, 0) ||
		!curl_url_get(u, CURLUPART_FRAGMENT, &query, 0))
		rc = err_set(e, -EINVAL,
			"the URL must end before '?' or '#'; the query is given by --query");
	if (!rc) {
		curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
		h->site = alloc_format("%s://%s:%s", scheme, host, port ? port : "");
		h->base = alloc_copy(url);
		while (*h->base && h->base[strlen(h->base) - 1] == '/')
			h->base[strlen(h->base) - 1] = '\0';
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(user);
	curl_free(query);
	curl_url_cleanup(u);
	return rc;
}

static void set_connection(struct http *h)
{
	double connect_s = fmin(h->timeout_s, 10);

	curl_easy_setopt(h->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(h->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h->easy, CURLOPT_USERAGENT, "culprit");
	curl_easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_s * 1000));
	curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->reason);
	curl_easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, receive);
	curl_easy_setopt(h->easy, CURLOPT_WRITEDATA, h);
}

int http_new(const struct http_options *o, struct http **out, struct err *e)
{
	struct http *h = alloc_zero(1, sizeof(*h));
	int rc;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	h->timeout_s = o->timeout_s;
	h->stop = o->stop;
	h->room = BUFFER_FIRST;
	h->data = alloc_zero(1, h->room);
	h->multi = curl_multi_init();
	h->easy = curl_easy_init();
	if (!h->multi || !h->easy)
		alloc_end();
	set_connection(h);
	rc = check_url(h, o->base, e) ?: set_secrets(h, o, e)
		?: set_file(h, CURLOPT_CAINFO, o->ca_file, e)
		?: set_file(h, CURLOPT_SSLCERT, o->cert_file, e)
		?: set_file(h, CURLOPT_SSLKEY, o->key_file, e);
	if (rc)
		http_free(h);
	else
		*out = h;
	return rc;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	if (h->answer)
		http_end(h, 0, NULL);
	curl_easy_cleanup(h->easy);
	curl_multi_cleanup(h->multi);
	curl_slist_free_all(h->headers);
	free(h->data);
	free(h->base);
	free(h->site);
	free(h);
	curl_global_cleanup();
}

const char *http_site(const struct http *h)
{
	return h->site;
}

/* Continues the transfer until there is data to read, or it has ended. */
static void pump(struct http *h)
{
	CURLMsg *m;
	int running, left;

	while (!h->done && h->at == h->size) {
		if (h->stop && *h->stop)
			h->failed = -EINTR;
		else if (clock_mono_s() > h->until_s)
			h->failed = -ETIMEDOUT;
		if (h->failed) {
			h->done = true;
			return;
		}
		curl_multi_perform(h->multi, &running);
		while ((m = curl_multi_info_read(h->multi, &left))) {
			if (m->msg == CURLMSG_DONE) {
				h->done = true;
				h->result = m->data.result;
			}
		}
		if (!h->done && h->at == h->size)
			curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
}

static ssize_t answer_read(void *ctx, char *out, size_t size)
{
	struct http *h = ctx;

	/* The time limit also applies to a server that never stops sending. */
	if (!h->done && clock_mono_s() > h->until_s) {
		h->failed = -ETIMEDOUT;
		h->done = true;
	}
	if (!h->failed)
		pump(h);
	if (h->failed || (h->done && h->result)) {
		errno = EIO;
		return -1;
	}
	if (size > h->size - h->at)
		size = h->size - h->at;
	memcpy(out, h->data + h->at, size);
	h->at += size;
	return (ssize_t)size;
}

/* Translates libcurl's codes. */
static int code_of(CURLcode c)
{
	switch (c) {
	case CURLE_COULDNT_CONNECT: return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY: return -EHOSTUNREACH;
	case CURLE_OPERATION_TIMEDOUT: return -ETIMEDOUT;
	default: return -EPROTO;
	}
}

static bool is_tls(CURLcode c)
{
	return c == CURLE_SSL_CONNECT_ERROR || c == CURLE_PEER_FAILED_VERIFICATION ||
		c == CURLE_SSL_CERTPROBLEM || c == CURLE_SSL_CACERT_BADFILE ||
		c == CURLE_SSL_CIPHER || c == CURLE_SSL_ISSUER_ERROR;
}

static int explain(struct http *h, struct err *e)
{
	char reason[CURL_ERROR_SIZE];

	if (h->failed == -EINTR)
		return err_blame(e, ERR_INTERRUPTED, err_set(e, -EINTR, "interrupted"));
	if (h->failed == -ETIMEDOUT)
		return err_blame(e, ERR_CLUSTER,
			err_set(e, -ETIMEDOUT,
				"%s did not answer to the end in %g s; ask for less at a time or "
				"raise --timeout",
				h->site, h->timeout_s));
	text_clean(*h->reason ? h->reason : curl_easy_strerror(h->result), reason, sizeof(reason));
	return err_blame(e, ERR_CLUSTER,
		err_set(e, code_of(h->result), "%s: %s%s", h->site,
			is_tls(h->result) ? "TLS: " : "", reason));
}

/* The request's method and body are already set. */
static int import_http_begin(
	struct http *h, const char *url, FILE **answer, long *status, struct err *e)
{
	h->done = false;
	h->failed = 0;
	h->result = CURLE_OK;
	h->at = h->size = 0;
	*h->reason = '\0';
	h->until_s = clock_mono_s() + h->timeout_s;
	curl_easy_setopt(h->easy, CURLOPT_URL, url);
	curl_multi_add_handle(h->multi, h->easy);
	h->answer = fopencookie(h, "r", (cookie_io_functions_t){.read = answer_read});
	if (!h->answer)
		alloc_end();
	pump(h);
	if (h->failed || h->result)
		return http_end(h, 0, e);
	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, status);
	*answer = h->answer;
	return 0;
}

int http_begin(struct http *h, const char *path, const char *form, FILE **answer, long *status,
	struct err *e)
{
	bool post = strlen(form) > POST_FROM;
	auto_free char *url = post ? alloc_format("%s%s", h->base, path)
				   : alloc_format("%s%s?%s", h->base, path, form);

	if (post)
		curl_easy_setopt(h->easy, CURLOPT_COPYPOSTFIELDS, form);
	else
		curl_easy_setopt(h->easy, CURLOPT_HTTPGET, 1L);
	return import_http_begin(h, url, answer, status, e);
}

/* Bodies are not forms, and are sent without waiting for the server's consent. */
static void set_post_headers(struct http *h)
{
	static const char *const headers[] = {"Content-Type: application/octet-stream", "Expect:"};

	if (h->posts)
		return;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		h->headers = curl_slist_append(h->headers, headers[i]);
		if (!h->headers)
			alloc_end();
	}
	curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
	h->posts = true;
}

int http_post(struct http *h, const char *path, const char *form, const void *body, size_t size,
	FILE **answer, long *status, struct err *e)
{
	auto_free char *url = alloc_format("%s%s?%s", h->base, path, form);

	set_post_headers(h);
	curl_easy_setopt(h->easy, CURLOPT_POST, 1L);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, body);
	return import_http_begin(h, url, answer, status, e);
}

int http_end(struct http *h, int rc, struct err *e)
{
	bool broken = h->failed || h->result;

	fclose(h->answer);
	h->answer = NULL;
	curl_multi_remove_handle(h->multi, h->easy);
	return broken ? explain(h, e) : rc;
}

char *http_encode(const char *text)
{
	char *encoded = curl_easy_escape(NULL, text, 0), *copy;

	if (!encoded)
		alloc_end();
	copy = alloc_copy(encoded);
	curl_free(encoded);
	return copy;
}
