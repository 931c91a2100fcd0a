/* Appends inverses of acts to the undo journal, and reads it back. */
#include "harness/agent/journal_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "faults/primitives/primitive.h"
#include "faults/primitives/procfs.h"
#include "harness/agent/node_id.h"
#include "harness/agent/wire.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"

struct journal {
	char path[PATH_MAX], dir[PATH_MAX];
	int fd;
	bool rebooted;
	json_t *entries; /* [{add, primitive, inverse}], the lines themselves, oldest first */
};

AUTO_DEFINE(journal, struct journal *, journal_free)

static struct journal *journal_alloc(void)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (j)
		j->fd = -1;
	return j;
}

/* 'line' stays the caller's. */
static int append(struct journal *j, const json_t *line, bool sync, struct err *e)
{
	auto_free char *text = wire_text(line);
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
	return rc ? err_errno(e, rc, "cannot write the undo journal '%s'", j->path) : 0;
}

static int sync_folder(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Gives the journal its name only when it is locked, so that no other agent undoes it. */
static int publish(
	struct journal *j, const char *undo, const char *hidden, const json_t *head, struct err *e)
{
	int rc;

	j->fd = open(hidden, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (j->fd < 0)
		return err_errno(e, -errno, "cannot make the undo journal '%s'", j->path);
	if (flock(j->fd, LOCK_EX | LOCK_NB) < 0)
		rc = err_errno(e, -errno, "cannot make the undo journal '%s'", j->path);
	else
		rc = append(j, head, true, e);
	if (!rc && (rc = rename(hidden, j->path) < 0 ? -errno : sync_folder(undo)))
		err_errno(e, rc, "cannot make the undo journal '%s'", j->path);
	if (!rc && mkdir(j->dir, 0700) < 0)
		rc = err_errno(e, -errno, "cannot make the folder '%s'", j->dir);
	if (rc) {
		unlink(hidden);
		unlink(j->path);
	}
	return rc;
}

int journal_new(const char *state, const char *session, struct journal **out, struct err *e)
{
	auto_of(journal) struct journal *j = journal_alloc();
	auto_json json_t *head = NULL;
	char undo[PATH_MAX], hidden[PATH_MAX];
	struct node_id id;
	int rc;

	if (!j)
		return err_errno(e, -ENOMEM, "cannot make an undo journal");
	j->entries = json_array();
	snprintf(undo, sizeof(undo), "%s/undo", state);
	snprintf(j->path, sizeof(j->path), "%s/undo/%s.json", state, session);
	snprintf(j->dir, sizeof(j->dir), "%s/%s", state, session);
	if (snprintf(hidden, sizeof(hidden), "%s/undo/.%s.new", state, session) >= PATH_MAX)
		return err_errno(e, -ENAMETOOLONG, "cannot make an undo journal");
	rc = node_id_read(&id, e) ?: file_mkdirs(state, 0755, e) ?: file_mkdirs(undo, 0700, e);
	if (rc)
		return rc;
	head = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "journal", 1, "session", session,
		"boot_id", id.boot_id, "net", id.net, "pid", id.pid, "dir", j->dir);
	rc = publish(j, undo, hidden, head, e);
	if (!rc)
		*out = AUTO_TAKE(j);
	return rc;
}

/* SIZE_MAX if there is none. */
static size_t journal_find(const struct journal *j, const char *handle)
{
	json_t *entry;
	size_t i;

	json_array_foreach(j->entries, i, entry) {
		if (!strcmp(jget_text(entry, "add"), handle))
			return i;
	}
	return SIZE_MAX;
}

/* Best effort: if the line is lost, an undo is done once more, which does no harm. */
static void append_word(struct journal *j, const char *word, const json_t *entry)
{
	auto_json json_t *line = json_pack("{s:O}", word, jget(entry, "add"));

	append(j, line, false, NULL);
}

/* One line after the head. */
static int replay(struct journal *j, json_t *line)
{
	const char *handle, *primitive;
	json_t *inverse;
	size_t i;

	if (json_object_get(line, "ending") || json_object_get(line, "repairing"))
		return 0;
	if (!json_unpack(line, "{s:s}", "done", &handle)) {
		i = journal_find(j, handle);
		if (i != SIZE_MAX)
			json_array_remove(j->entries, i);
		return 0;
	}
	if (json_unpack(line, "{s:s, s:s, s:o}", "add", &handle, "primitive", &primitive, "inverse",
		    &inverse) < 0 ||
		!primitive_find(primitive))
		return -EBADMSG;
	return json_array_append(j->entries, line) ? -ENOMEM : 0;
}

static int journal_load(struct journal *j, struct err *e)
{
	const char *boot, *net, *pid, *dir, *session, *slash;
	size_t size;
	bool whole;
	auto_json json_t *head = NULL;
	auto_free char *text = NULL;
	char *line, *save = NULL;
	struct node_id id;
	int rc = node_id_read(&id, e) ?: file_read(j->path, &text, &size, e);

	if (rc)
		return rc;
	whole = size && text[size - 1] == '\n';
	line = strtok_r(text, "\n", &save);
	head = line ? wire_parse(line, strlen(line)) : NULL;
	if (json_unpack(head, "{s:s, s:s, s:s, s:s, s:s}", "boot_id", &boot, "net", &net, "pid",
		    &pid, "dir", &dir, "session", &session) < 0 ||
		!(slash = strrchr(dir, '/')) || !*session || strcmp(slash + 1, session) ||
		snprintf(j->dir, sizeof(j->dir), "%s", dir) >= PATH_MAX)
		return err_set(e, -EBADMSG, "the undo journal '%s' is damaged", j->path);
	j->rebooted = strcmp(boot, id.boot_id) != 0;
	if (!j->rebooted && (strcmp(net, id.net) || strcmp(pid, id.pid)))
		return err_set(e, -EXDEV, "the undo journal '%s' is another node's", j->path);
	j->entries = json_array();
	if (!j->entries)
		return err_errno(e, -ENOMEM, "cannot read '%s'", j->path);
	while ((line = strtok_r(NULL, "\n", &save))) {
		auto_json json_t *value = wire_parse(line, strlen(line));

		/* A last line that is cut short was never acknowledged, so nothing was done. */
		if (!value && !*save && !whole)
			break;
		rc = value ? replay(j, value) : -EBADMSG;
		if (rc)
			return err_set(e, rc, "the undo journal '%s' is damaged", j->path);
	}
	return 0;
}

int journal_open(const char *path, double wait_s, struct journal **out, struct err *e)
{
	auto_of(journal) struct journal *j = journal_alloc();
	double deadline = clock_mono_s() + wait_s;
	struct stat st;
	int rc;

	if (!j)
		return err_errno(e, -ENOMEM, "cannot open '%s'", path);
	j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	if (j->fd < 0)
		return err_errno(e, -errno, "cannot open '%s'", path);
	snprintf(j->path, sizeof(j->path), "%s", path);
	while (flock(j->fd, LOCK_EX | LOCK_NB) < 0) {
		rc = -errno;
		if (rc != -EWOULDBLOCK || wait_s <= 0 || !procfs_nap(deadline))
			return err_errno(e, rc, "cannot lock '%s'", path);
	}
	if (fstat(j->fd, &st) < 0 || !st.st_nlink)
		return err_errno(e, -ENOENT, "cannot open '%s'", path);
	rc = journal_load(j, e);
	if (!rc)
		*out = AUTO_TAKE(j);
	return rc;
}

int journal_add(struct journal *j, const char *handle, const char *primitive, const json_t *inverse,
	struct err *e)
{
	const struct primitive *p = primitive_find(primitive);
	auto_json json_t *line = json_pack(
		"{s:s, s:s, s:O}", "add", handle, "primitive", primitive, "inverse", inverse);
	int rc;

	if (!p)
		return err_set(e, -EINVAL, "there is no primitive '%s'", primitive);
	if (journal_find(j, handle) != SIZE_MAX)
		return err_set(e, -EEXIST, "there is a '%s' already", handle);
	if (!line || json_array_append(j->entries, line))
		return err_errno(e, -ENOMEM, "cannot record '%s'", handle);
	/* Only an act that outlives a reboot must be on disk. Others do not wait for a disk that
	 * the fault itself may have saturated. */
	rc = append(j, line, !p->ends_with_boot, e);
	if (rc)
		json_array_remove(j->entries, json_array_size(j->entries) - 1);
	return rc;
}

static int revert_at(struct journal *j, size_t i, bool *was_there, struct err *e)
{
	json_t *entry = json_array_get(j->entries, i);
	const struct primitive *p = primitive_find(jget_text(entry, "primitive"));
	bool needed = !j->rebooted || !p->ends_with_boot;
	int rc = 0;

	*was_there = false;
	if (p->slow && needed)
		append_word(j, "repairing", entry);
	if (needed)
		rc = primitive_revert(p, jget(entry, "inverse"), was_there, e);
	if (rc)
		return rc;
	append_word(j, "done", entry);
	json_array_remove(j->entries, i);
	return 0;
}

int journal_revert(struct journal *j, const char *handle, bool *was_there, struct err *e)
{
	size_t i = journal_find(j, handle);

	if (i == SIZE_MAX)
		return err_set(e, -ENOENT, "there is no '%s'", handle);
	return revert_at(j, i, was_there, e);
}

json_t *journal_describe(const json_t *entry)
{
	json_t *inverse = jget(entry, "inverse");
	const char *name = "";

	/* A process, a packet drop, a file system, or a server. */
	json_unpack(inverse, "{s:{s:s}}", "server", "exe", &name);
	json_unpack(inverse, "{s?s, s?s, s?s}", "tag", &name, "table", &name, "point", &name);
	return json_sprintf("%s %s", jget_text(entry, "primitive"), name);
}

void journal_heard(struct journal *j)
{
	int64_t now_ns = clock_real_ns();
	struct timespec now = {.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};

	/* Given explicitly, since the kernel's own value is up to a tick old. */
	futimens(j->fd, (struct timespec[]){now, now});
}

static int revert_all(struct journal *j, double retry_s, json_t *cleaned, struct err *e)
{
	double deadline = clock_mono_s() + retry_s;
	int rc;

	do {
		rc = 0;
		for (size_t i = json_array_size(j->entries); i-- > 0;) {
			auto_json json_t *name = journal_describe(json_array_get(j->entries, i));
			bool was_there;
			int one = revert_at(j, i, &was_there, rc ? NULL : e);

			if (!one && was_there && cleaned)
				json_array_append(cleaned, name);
			rc = rc ? rc : one;
		}
		if (!rc || clock_mono_s() > deadline)
			return rc;
		nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
	} while (true);
}

int journal_finish(struct journal *j, double retry_s, json_t *cleaned, struct err *e)
{
	auto_json json_t *line = json_pack("{s:b}", "ending", true);
	int rc;

	append(j, line, false, NULL);
	rc = revert_all(j, retry_s, cleaned, e);
	if (!rc)
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
	fd_close(j->fd);
	json_decref(j->entries);

	free(j);
}
