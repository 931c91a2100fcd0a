#include "harness/agent/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "faults/primitives/primitive.h"
#include "harness/agent/node_id.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"

struct journal {
	char *path, *dir;
	int fd;
	bool rebooted;
	json_t *entries; /* [{handle, primitive, inverse}], oldest first */
};

/* 'line' stays the caller's. */
static int append(struct journal *j, json_t *line, bool sync, struct err *e)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	off_t size = lseek(j->fd, 0, SEEK_END);
	int rc = text && size >= 0 ? 0 : -ENOMEM;

	if (!rc) {
		size_t n = strlen(text);

		text[n] = '\n';
		rc = fd_write_all(j->fd, text, n + 1);
		if (!rc && sync && fdatasync(j->fd) < 0)
			rc = -errno;
		if (rc && ftruncate(j->fd, size) < 0)
			rc = -errno;
	}
	free(text);
	return rc ? err_errno(e, rc, "cannot write the undo journal '%s'", j->path) : 0;
}

static int sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int journal_new(const char *state, const char *session, struct journal **out, struct err *e)
{
	char *undo = NULL, *hidden = NULL;
	struct journal *j = calloc(1, sizeof(*j));
	struct node_id id;
	json_t *head = NULL;
	int rc = -ENOMEM;

	if (j)
		j->fd = -1;
	if (!j || asprintf(&undo, "%s/undo", state) < 0 ||
		asprintf(&hidden, "%s/.%s.new", undo, session) < 0 ||
		asprintf(&j->path, "%s/%s.json", undo, session) < 0 ||
		asprintf(&j->dir, "%s/%s", state, session) < 0) {
		err_errno(e, rc, "cannot make an undo journal");
		goto out;
	}
	rc = node_id_read(&id, e);
	if (!rc)
		rc = file_mkdirs(state, 0755, e);
	if (!rc)
		rc = file_mkdirs(undo, 0700, e);
	if (rc)
		goto out;
	j->entries = json_array();
	head = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "journal", 1, "session", session,
		"boot_id", id.boot_id, "net", id.net, "pid", id.pid, "dir", j->dir);
	/* It appears under its name only when it is locked: nobody takes it for a left one. */
	j->fd = open(hidden, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (j->fd < 0 || flock(j->fd, LOCK_EX | LOCK_NB) < 0) {
		rc = err_errno(e, -errno, "cannot make the undo journal '%s'", j->path);
		goto out;
	}
	rc = append(j, head, true, e);
	if (!rc && rename(hidden, j->path) < 0)
		rc = err_errno(e, -errno, "cannot make the undo journal '%s'", j->path);
	if (!rc && (rc = sync_folder(undo)))
		err_errno(e, rc, "cannot make the undo journal '%s'", j->path);
	if (!rc && mkdir(j->dir, 0700) < 0)
		rc = err_errno(e, -errno, "cannot make the folder '%s'", j->dir);
	if (rc) {
		unlink(hidden);
		unlink(j->path);
		goto out;
	}
	*out = j;
	j = NULL;
out:
	free(undo);
	free(hidden);
	json_decref(head);
	journal_free(j);
	return rc;
}

static size_t find(const struct journal *j, const char *handle)
{
	json_t *entry;
	size_t i;

	json_array_foreach(j->entries, i,
		entry) if (!strcmp(json_string_value(json_object_get(entry, "handle")),
				   handle)) return i;
	return SIZE_MAX;
}

/* One line after the head. */
static int replay(struct journal *j, json_t *line)
{
	const char *handle, *primitive;
	json_t *inverse;
	size_t i;

	if (json_object_get(line, "ending"))
		return 0;
	if (!json_unpack(line, "{s:s}", "done", &handle)) {
		i = find(j, handle);
		if (i != SIZE_MAX)
			json_array_remove(j->entries, i);
		return 0;
	}
	if (json_object_get(line, "repairing"))
		return 0;
	if (json_unpack(line, "{s:s, s:s, s:o}", "add", &handle, "primitive", &primitive, "inverse",
		    &inverse) < 0 ||
		!primitive_find(primitive))
		return -EBADMSG;
	return json_array_append_new(j->entries,
		       json_pack("{s:s, s:s, s:O}", "handle", handle, "primitive", primitive,
			       "inverse", inverse))
		? -ENOMEM
		: 0;
}

static int load(struct journal *j, struct err *e)
{
	const char *boot, *net, *pid, *dir, *session;
	char *text = NULL, *line, *save = NULL, *slash;
	struct node_id id;
	json_t *head = NULL;
	int rc;

	rc = node_id_read(&id, e);
	if (!rc)
		rc = file_read(j->path, &text, NULL, e);
	if (rc)
		goto out;
	line = strtok_r(text, "\n", &save);
	head = line ? json_loads(line, 0, NULL) : NULL;
	if (json_unpack(head, "{s:s, s:s, s:s, s:s, s:s}", "boot_id", &boot, "net", &net, "pid",
		    &pid, "dir", &dir, "session", &session) < 0 ||
		!(slash = strrchr(dir, '/')) || !*session || strcmp(slash + 1, session)) {
		rc = err_set(e, -EBADMSG, "the undo journal '%s' is damaged", j->path);
		goto out;
	}
	j->rebooted = strcmp(boot, id.boot_id) != 0;
	if (!j->rebooted && (strcmp(net, id.net) || strcmp(pid, id.pid))) {
		rc = err_set(e, -EXDEV, "the undo journal '%s' is another node's", j->path);
		goto out;
	}
	j->dir = strdup(dir);
	j->entries = json_array();
	rc = j->dir && j->entries ? 0 : err_errno(e, -ENOMEM, "cannot read '%s'", j->path);
	while (!rc && (line = strtok_r(NULL, "\n", &save))) {
		json_t *value = json_loads(line, 0, NULL);

		/* A last line cut short was never acknowledged: nothing was done for it. */
		if (!value && !*save)
			break;
		rc = value ? replay(j, value) : -EBADMSG;
		json_decref(value);
		if (rc)
			err_set(e, rc, "the undo journal '%s' is damaged", j->path);
	}
out:
	json_decref(head);
	free(text);
	return rc;
}

int journal_open(const char *path, double wait_s, struct journal **out, struct err *e)
{
	struct timespec nap = {.tv_nsec = 10000000};
	double deadline = clock_mono_s() + wait_s;
	struct journal *j = calloc(1, sizeof(*j));
	struct stat st;
	int rc = 0;

	if (!j || !(j->path = strdup(path))) {
		free(j);
		return err_errno(e, -ENOMEM, "cannot open '%s'", path);
	}
	j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	if (j->fd < 0) {
		rc = err_errno(e, -errno, "cannot open '%s'", path);
		goto out;
	}
	while (flock(j->fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_mono_s() >= deadline) {
			rc = err_errno(e, -errno, "cannot lock '%s'", path);
			goto out;
		}
		nanosleep(&nap, NULL);
	}
	if (fstat(j->fd, &st) < 0 || !st.st_nlink) {
		rc = err_errno(e, -ENOENT, "cannot open '%s'", path);
		goto out;
	}
	rc = load(j, e);
	if (!rc) {
		*out = j;
		j = NULL;
	}
out:
	journal_free(j);
	return rc;
}

const char *journal_dir(const struct journal *j)
{
	return j->dir;
}

int journal_add(struct journal *j, const char *handle, const char *primitive, const json_t *inverse,
	struct err *e)
{
	json_t *line = json_pack(
		"{s:s, s:s, s:O}", "add", handle, "primitive", primitive, "inverse", inverse);
	json_t *entry = json_pack(
		"{s:s, s:s, s:O}", "handle", handle, "primitive", primitive, "inverse", inverse);
	int rc = -ENOMEM;

	if (!primitive_find(primitive)) {
		rc = err_set(e, -EINVAL, "there is no primitive '%s'", primitive);
	} else if (find(j, handle) != SIZE_MAX) {
		rc = err_set(e, -EEXIST, "there is a '%s' already", handle);
	} else if (!line || !entry || json_array_append(j->entries, entry)) {
		err_errno(e, rc, "cannot record '%s'", handle);
	} else {
		/* What outlives no reboot need not be on disk: the page cache outlives everything
		 * else. Thus a saturated disk, which may be the fault's doing, does not hold up the
		 * next act. */
		rc = append(j, line, !primitive_find(primitive)->ends_with_boot, e);
		if (rc)
			json_array_remove(j->entries, json_array_size(j->entries) - 1);
	}
	json_decref(line);
	json_decref(entry);
	return rc;
}

static int revert_at(struct journal *j, size_t i, bool *was_there, struct err *e)
{
	json_t *entry = json_array_get(j->entries, i), *line;
	const struct primitive *p = primitive_find(
		json_string_value(json_object_get(entry, "primitive")));
	int rc = 0;

	*was_there = false;
	if (p->slow && (!j->rebooted || !p->ends_with_boot)) {
		line = json_pack("{s:O}", "repairing", json_object_get(entry, "handle"));
		append(j, line, false, NULL);
		json_decref(line);
	}
	if (!j->rebooted || !p->ends_with_boot)
		rc = primitive_revert(p, json_object_get(entry, "inverse"), was_there, e);
	if (rc)
		return rc;
	/* If this line is lost, the entry is undone once more, which does no harm. */
	line = json_pack("{s:O}", "done", json_object_get(entry, "handle"));
	append(j, line, false, NULL);
	json_decref(line);
	json_array_remove(j->entries, i);
	return 0;
}

int journal_revert(struct journal *j, const char *handle, bool *was_there, struct err *e)
{
	size_t i = find(j, handle);

	if (i == SIZE_MAX)
		return err_set(e, -ENOENT, "there is no '%s'", handle);
	return revert_at(j, i, was_there, e);
}

static char *describe(const json_t *entry)
{
	const char *primitive = json_string_value(json_object_get(entry, "primitive"));
	const json_t *inverse = json_object_get(entry, "inverse");
	const char *name = json_string_value(json_object_get(inverse, "tag"));
	char *text;

	if (!name)
		name = json_string_value(json_object_get(inverse, "table"));
	if (!name)
		name = json_string_value(json_object_get(inverse, "point"));
	if (!name)
		name = json_string_value(
			json_object_get(json_object_get(inverse, "server"), "exe"));
	return asprintf(&text, "%s %s", primitive, name ? name : "") < 0 ? NULL : text;
}

int journal_revert_all(struct journal *j, double retry_s, json_t *cleaned, struct err *e)
{
	struct timespec nap = {.tv_nsec = 300000000};
	double deadline = clock_mono_s() + retry_s;
	int rc;

	for (;;) {
		rc = 0;
		for (size_t i = json_array_size(j->entries); i-- > 0;) {
			char *name = describe(json_array_get(j->entries, i));
			bool was_there;
			int one = revert_at(j, i, &was_there, rc ? NULL : e);

			if (!one && was_there && cleaned && name)
				json_array_append_new(cleaned, json_string(name));
			free(name);
			rc = rc ? rc : one;
		}
		if (!rc || clock_mono_s() > deadline)
			return rc;
		nanosleep(&nap, NULL);
	}
}

void journal_heard(struct journal *j)
{
	int64_t now_ns = clock_real_ns();
	struct timespec now = {.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};

	/* Given, since what the kernel would take by itself is a tick behind. */
	futimens(j->fd, (struct timespec[]){now, now});
}

void journal_ending(struct journal *j)
{
	json_t *line = json_pack("{s:b}", "ending", true);

	append(j, line, false, NULL);
	json_decref(line);
}

int journal_end(struct journal *j, struct err *e)
{
	int rc;

	rc = file_remove_tree(j->dir, e);
	if (!rc && unlink(j->path) < 0 && errno != ENOENT)
		rc = err_errno(e, -errno, "cannot remove '%s'", j->path);
	journal_free(j);
	return rc;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	json_decref(j->entries);
	free(j->path);
	free(j->dir);
	free(j);
}

static void clean_one(const char *path, json_t *cleaned, json_t *unclean)
{
	struct journal *j;
	struct err e;
	int rc;

	rc = journal_open(path, 0, &j, &e);
	if (rc == -EWOULDBLOCK || rc == -ENOENT || rc == -EXDEV)
		return;
	if (!rc) {
		rc = journal_revert_all(j, 0, cleaned, &e);
		if (rc)
			journal_free(j);
		else
			rc = journal_end(j, &e);
	}
	if (rc)
		json_array_append_new(unclean, json_string(e.text));
}

typedef void (*each_fn)(const char *path, const char *name, void *ctx);

static int each(const char *state, each_fn fn, void *ctx, struct err *e)
{
	char *folder, *path;
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

		if (d->d_name[0] == '.' || n < 5 || strcmp(d->d_name + n - 5, ".json"))
			continue;
		if (asprintf(&path, "%s/%s", folder, d->d_name) < 0)
			continue;
		fn(path, d->d_name, ctx);
		free(path);
	}
	if (dir)
		closedir(dir);
	free(folder);
	return rc;
}

struct lists {
	json_t *a, *b;
	const char *session;
};

static void clean_each(const char *path, const char *name, void *ctx)
{
	struct lists *l = ctx;

	(void)name;
	clean_one(path, l->a, l->b);
}

void journal_clean_left(const char *state, json_t *cleaned, json_t *unclean)
{
	struct lists l = {.a = cleaned, .b = unclean};
	struct err e;

	if (each(state, clean_each, &l, &e))
		json_array_append_new(unclean, json_string(e.text));
}

/* Of another session, and this node's: the head of another node's names other namespaces. '*text'
 * is what is in it, the caller's. */
static bool is_other(const char *path, const char *name, const char *session, char **text)
{
	size_t n = strlen(session);
	struct node_id id;

	if (!strncmp(name, session, n) && !strcmp(name + n, ".json"))
		return false;
	if (node_id_read(&id, NULL) || file_read(path, text, NULL, NULL))
		return false;
	if (strstr(*text, id.net) || !strstr(*text, id.boot_id))
		return true;
	free(*text);
	return false;
}

/* Its last word is that a long undo has begun. */
static bool is_repairing(const char *text)
{
	const char *begun = NULL;

	for (const char *at = text; (at = strstr(at, "\n{\"repairing\"")); at++)
		begun = at;
	return begun && !strstr(begun, "\n{\"done\"");
}

struct silence {
	const char *session;
	int64_t since_ns;
	int found;
};

static void silence_each(const char *path, const char *name, void *ctx)
{
	struct silence *s = ctx;
	struct stat st;
	char *text;
	int fd;

	if (!is_other(path, name, s->session, &text))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
		!fstat(fd, &st) && !is_repairing(text) &&
		(strstr(text, "\n{\"ending\"") ||
			st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec < s->since_ns))
		s->found++;
	if (fd >= 0)
		close(fd);
	free(text);
}

int journal_silent(const char *state, const char *session, int64_t since_ns)
{
	struct silence s = {.session = session, .since_ns = since_ns};

	each(state, silence_each, &s, NULL);
	return s.found;
}

static void list_each(const char *path, const char *name, void *ctx)
{
	struct lists *l = ctx;
	char *text;

	if (!is_other(path, name, l->session, &text))
		return;
	json_array_append_new(l->a, json_string(name));
	free(text);
}

int journal_list(const char *state, const char *session, json_t *list, struct err *e)
{
	struct lists l = {.a = list, .session = session};

	return each(state, list_each, &l, e);
}

static bool is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

struct quarantine {
	json_t *list;
	const char *session;
	bool working;
};

/* Read without the lock, which whoever repairs holds. */
static void quarantine_each(const char *path, const char *name, void *ctx)
{
	struct quarantine *q = ctx;
	char *text = NULL, *line, *save = NULL;
	json_t *begun, *names, *what;
	const char *handle;

	if (!is_other(path, name, q->session, &text))
		return;
	begun = json_object();
	names = json_object();
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *value = json_loads(line, 0, NULL);

		if (!json_unpack(value, "{s:s}", "add", &handle)) {
			char *described = describe(value);

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
		bool working = is_locked(path);
		char *sentence;

		q->working = q->working || working;
		if (asprintf(&sentence, "%s of session %.8s %s", json_string_value(what), name,
			    working ? "is still being undone" : "could not be undone yet") < 0)
			continue;
		json_array_append_new(q->list, json_string(sentence));
		free(sentence);
	}
	json_decref(begun);
	json_decref(names);
	free(text);
}

int journal_quarantined(
	const char *state, const char *session, json_t *list, bool *working, struct err *e)
{
	struct quarantine q = {.list = list, .session = session};
	int rc = each(state, quarantine_each, &q, e);

	*working = q.working;
	return rc;
}
