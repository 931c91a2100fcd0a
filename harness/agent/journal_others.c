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

/* What is asked of each journal, and what was found. */
struct journal_search {
	const char *session; /* the asking one, which is left out; NULL: none is left out */
	json_t *list, *failed;
	int64_t since_ns;
	int found;
	bool working;
};

/* 'text' is the journal's. */
typedef void (*each_fn)(const char *path, const char *name, char *text, struct journal_search *s);

/* Of this node: the head of another node's journal names other namespaces. */
static bool is_here(const char *text)
{
	struct node_id id;

	return !node_id_read(&id, NULL) && (strstr(text, id.net) || !strstr(text, id.boot_id));
}

static int each(const char *state, each_fn fn, struct journal_search *s, struct err *e)
{
	char *folder, *path, *text;
	struct dirent *d;
	DIR *dir;
	int rc = 0;

	if (asprintf(&folder, "%s/undo", state) < 0)
		return err_errno(e, -ENOMEM, "cannot list journals");
	dir = opendir(folder);
	if (!dir && errno != ENOENT)
		rc = err_errno(e, -errno, "cannot list '%s'", folder);
	while (dir && (d = readdir(dir))) {
		size_t n = strlen(d->d_name);

		if (d->d_name[0] == '.' || n < 5 || strcmp(d->d_name + n - 5, ".json") ||
			(s->session && strlen(s->session) == n - 5 &&
				!strncmp(d->d_name, s->session, n - 5)) ||
			asprintf(&path, "%s/%s", folder, d->d_name) < 0)
			continue;
		if (!file_read(path, &text, NULL, NULL)) {
			if (is_here(text))
				fn(path, d->d_name, text, s);
			free(text);
		}
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
	return rc;
}

static void clean_each(const char *path, const char *name, char *text, struct journal_search *s)
{
	struct journal *j;
	struct err e;
	int rc = journal_open(path, 0, &j, &e);

	(void)name;
	(void)text;
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

static void list_each(const char *path, const char *name, char *text, struct journal_search *s)
{
	(void)path;
	(void)text;
	json_array_append_new(s->list, json_string(name));
}

int journal_list(const char *state, const char *session, json_t *list, struct err *e)
{
	struct journal_search s = {.session = session, .list = list};

	return each(state, list_each, &s, e);
}

/* When it was last written, if somebody holds its lock; else 0. */
static int64_t locked_since_ns(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	struct stat st;
	int64_t ns = 0;

	if (locked && !fstat(fd, &st))
		ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	fd_close(fd);
	return ns;
}

/* Its last word is that a slow undo has begun. */
static bool is_repairing(const char *text)
{
	const char *begun = NULL;

	for (const char *at = text; (at = strstr(at, "\n{\"repairing\"")); at++)
		begun = at;
	return begun && !strstr(begun, "\n{\"done\"");
}

static void silence_each(const char *path, const char *name, char *text, struct journal_search *s)
{
	int64_t heard_ns = locked_since_ns(path);

	(void)name;
	if (heard_ns && !is_repairing(text) &&
		(strstr(text, "\n{\"ending\"") || heard_ns < s->since_ns))
		s->found++;
}

int journal_silent(const char *state, const char *session, int64_t since_ns)
{
	struct journal_search s = {.session = session, .since_ns = since_ns};

	each(state, silence_each, &s, NULL);
	return s.found;
}

static void quarantine_each(
	const char *path, const char *name, char *text, struct journal_search *s)
{
	json_t *begun = json_object(), *names = json_object(), *what;
	bool locked = locked_since_ns(path);
	const char *handle;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *value = json_loads(line, 0, NULL);

		if (!json_unpack(value, "{s:s}", "add", &handle)) {
			char *described = journal_describe(value);

			json_object_set_new(
				names, handle, json_string(described ? described : "?"));
			free(described);
		} else if (!json_unpack(value, "{s:s}", "repairing", &handle)) {
			json_object_set(begun, handle, json_object_get(names, handle));
		} else if (!json_unpack(value, "{s:s}", "done", &handle)) {
			json_object_del(begun, handle);
		}
		json_decref(value);
	}
	json_object_foreach(begun, handle, what)
	{
		s->working = s->working || locked;
		json_array_append_new(s->list,
			json_sprintf("%s of session %.8s %s", json_string_value(what), name,
				locked ? "is still being undone" : "could not be undone yet"));
	}
	json_decref(begun);
	json_decref(names);
}

int journal_quarantined(
	const char *state, const char *session, json_t *list, bool *working, struct err *e)
{
	struct journal_search s = {.session = session, .list = list};
	int rc = each(state, quarantine_each, &s, e);

	*working = s.working;
	return rc;
}
