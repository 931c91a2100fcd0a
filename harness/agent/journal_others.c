/* What the journals of other sessions on this node say. They are read without their lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/agent/journal_impl.h"
#include "harness/agent/node_id.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

/* What is asked of each journal, that journal, and what was found. */
struct journal_search {
	const char *session; /* the asking one, which is left out; NULL: none is left out */
	json_t *list, *failed;
	int64_t since_ns;

	const char *path, *name;
	char *text;

	int found;
	bool working;
};

typedef void (*each_fn)(struct journal_search *s);

/* Of this node: the head of another node's journal names other namespaces. */
static bool is_here(const char *text)
{
	struct node_id id;

	return !node_id_read(&id, NULL) && (strstr(text, id.net) || !strstr(text, id.boot_id));
}

static int each(const char *state, each_fn fn, struct journal_search *s, struct err *e)
{
	char folder[PATH_MAX], path[PATH_MAX];
	auto_dir DIR *dir = NULL;
	struct dirent *d;

	snprintf(folder, sizeof(folder), "%s/undo", state);
	dir = opendir(folder);
	if (!dir)
		return errno == ENOENT ? 0 : err_errno(e, -errno, "cannot list '%s'", folder);
	while ((d = readdir(dir))) {
		auto_free char *text = NULL;
		size_t n = strlen(d->d_name);

		if (d->d_name[0] != '.' && n >= 5 && !strcmp(d->d_name + n - 5, ".json") &&
			!(s->session && strlen(s->session) == n - 5 &&
				!strncmp(d->d_name, s->session, n - 5)) &&
			snprintf(path, sizeof(path), "%s/%s", folder, d->d_name) < PATH_MAX &&
			!file_read(path, &text, NULL, NULL) && is_here(text)) {
			s->path = path;
			s->name = d->d_name;
			s->text = text;
			fn(s);
		}
	}
	return 0;
}

static void clean_each(struct journal_search *s)
{
	struct journal *j;
	struct err e;
	int rc = journal_open(s->path, 0, &j, &e);

	if (rc == -EWOULDBLOCK || rc == -ENOENT || rc == -EXDEV)
		return;
	if (!rc)
		rc = journal_finish(j, 0, s->list, &e);
	if (rc)
		json_array_append_new(s->failed, json_string(e.text));
}

void journal_clean_left(const char *state, json_t *cleaned, json_t *unclean)
{
	struct journal_search s = {.list = cleaned, .failed = unclean};
	struct err e;

	if (each(state, clean_each, &s, &e))
		json_array_append_new(unclean, json_string(e.text));
}

static void list_each(struct journal_search *s)
{
	json_array_append_new(s->list, json_string(s->name));
}

int journal_list(const char *state, const char *session, json_t *list, struct err *e)
{
	struct journal_search s = {.session = session, .list = list};

	return each(state, list_each, &s, e);
}

/* When it was last written, if somebody holds its lock; else 0. */
static int64_t locked_since_ns(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
			!fstat(fd, &st)
		? st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec
		: 0;
}

/* Its last word is that a slow undo has begun. */
static bool is_repairing(const char *text)
{
	const char *begun = NULL;

	for (const char *at = text; (at = strstr(at, "\n{\"repairing\"")); at++)
		begun = at;
	return begun && !strstr(begun, "\n{\"done\"");
}

static void silence_each(struct journal_search *s)
{
	int64_t heard_ns = locked_since_ns(s->path);

	if (heard_ns && !is_repairing(s->text) &&
		(strstr(s->text, "\n{\"ending\"") || heard_ns < s->since_ns))
		s->found++;
}

int journal_silent(const char *state, const char *session, int64_t since_ns)
{
	struct journal_search s = {.session = session, .since_ns = since_ns};

	each(state, silence_each, &s, NULL);
	return s.found;
}

static void quarantine_each(struct journal_search *s)
{
	auto_json json_t *begun = json_object(), *names = json_object();
	bool locked = locked_since_ns(s->path);
	const char *handle;
	json_t *what;

	PROCFS_EACH_LINE(line, s->text)
	{
		auto_json json_t *value = json_loads(line, 0, NULL);

		if (!json_unpack(value, "{s:s}", "add", &handle))
			json_object_set_new(
				names, handle, journal_describe(value) ?: json_string("?"));
		else if (!json_unpack(value, "{s:s}", "repairing", &handle))
			json_object_set(begun, handle, jget(names, handle));
		else if (!json_unpack(value, "{s:s}", "done", &handle))
			json_object_del(begun, handle);
	}
	json_object_foreach(begun, handle, what) {
		s->working = s->working || locked;
		json_array_append_new(s->list,
			json_sprintf("%s of session %.8s %s", json_string_value(what), s->name,
				locked ? "is still being undone" : "could not be undone yet"));
	}
}

int journal_quarantined(
	const char *state, const char *session, json_t *list, bool *working, struct err *e)
{
	struct journal_search s = {.session = session, .list = list};
	int rc = each(state, quarantine_each, &s, e);

	*working = s.working;
	return rc;
}
