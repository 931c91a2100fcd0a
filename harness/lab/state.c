#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/internal.h"

int state_lock(const char *dir, bool make, int *fd, struct err *e)
{
	char path[PATH_MAX + 16];
	struct stat held, named;
	int lock, rc;

	snprintf(path, sizeof(path), "%s/lock", dir);
	for (;;) {
		lock = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600);
		if (lock < 0)
			return err_errno(e, -errno, "cannot open '%s'", path);
		if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
			rc = errno == EWOULDBLOCK ? err_set(e, -EBUSY, "another 'culprit lab' is at work on '%s'", dir)
						  : err_errno(e, -errno, "cannot lock '%s'", path);
			close(lock);
			return rc;
		}
		/* 'down' removes the lock with the rest: then this one is no lock any more. */
		if (!fstat(lock, &held) && !stat(path, &named) && held.st_ino == named.st_ino &&
		    held.st_dev == named.st_dev) {
			*fd = lock;
			return 0;
		}
		close(lock);
	}
}

static int save(const char *dir, const char *name, const char *text, struct err *e)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_write_atomic(path, 0644, text, strlen(text), e);
}

int state_save(const struct lab_options *o, const struct child *children, size_t n, struct err *e)
{
	json_t *list = json_array(), *all;
	char *text;
	int rc;

	for (size_t i = 0; i < n; i++) {
		uint64_t start = 0;

		proc_start_time(children[i].pid, &start);
		json_array_append_new(list, json_pack("{ss si sI}", "name", children[i].name, "pid",
						      (int)children[i].pid, "start", (json_int_t)start));
	}
	all = json_pack("{sI so}", "since", (json_int_t)time(NULL), "processes", list);
	text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
	rc = text ? save(o->dir, "state.json", text, e) : err_errno(e, -ENOMEM, "cannot save the lab's state");
	free(text);
	json_decref(all);
	return rc;
}

int state_load(const char *dir, json_t **state, struct err *e)
{
	char path[PATH_MAX + 32];
	json_error_t je;

	snprintf(path, sizeof(path), "%s/state.json", dir);
	*state = json_load_file(path, 0, &je);
	return *state ? 0 : err_set(e, -ENOENT, "there is no whole lab in '%s'", dir);
}

static pid_t live_pid(const json_t *process)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(process, "pid"));
	uint64_t start;

	if (pid <= 0 || proc_start_time(pid, &start) ||
	    start != (uint64_t)json_integer_value(json_object_get(process, "start")))
		return 0;
	return pid;
}

pid_t state_pid(const json_t *state, const char *name)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(state, "processes"), i, process)
	{
		const char *its = json_string_value(json_object_get(process, "name"));

		if (its && !strcmp(its, name))
			return live_pid(process);
	}
	return 0;
}

const char *state_dead(const json_t *state)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(state, "processes"), i, process)
	{
		if (!live_pid(process))
			return json_string_value(json_object_get(process, "name"));
	}
	return NULL;
}

int state_inventory(const struct lab_options *o, const dev_t *spares, struct err *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = 0;

	if (!f)
		return err_errno(e, -errno, "cannot write the inventory");
	fprintf(f, "-- Written by 'culprit lab up'.\nreturn {\n"
		   "  file_system = { type = \"glusterfs\", layout = \"%s\" },\n  nodes = {\n",
		o->layout == LAB_DISPERSE ? "disperse" : "distribute");
	for (unsigned i = 0; i < lab_node_count(o) && !rc; i++) {
		struct lab_node n = lab_node_at(o, i);
		char *key = NULL;

		rc = keys_host_key(o->dir, n.name, &key, e);
		if (rc)
			break;
		fprintf(f, "    { name = \"%s\", role = \"%s\", address = \"%s\",\n"
			   "      host_key = \"%s\", identity = \"id_ed25519\"",
			n.name, lab_role_name(n.role), n.address, key);
		if (n.role == ROLE_SERVER)
			fprintf(f, ",\n      storage = \"%s\", service_port = %d, spare = \"/dev/loop%u\"", LAB_STORAGE,
				LAB_PORT, minor(spares[i]));
		if (n.role == ROLE_CLIENT)
			fprintf(f, ", mount = \"%s\"", LAB_MOUNT);
		fputs(" },\n", f);
		free(key);
	}
	fputs("  },\n}\n", f);
	fclose(f);
	if (!rc)
		rc = save(o->dir, "inventory.lua", text, e);
	free(text);
	return rc;
}
