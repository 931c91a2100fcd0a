#include <dirent.h>
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
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

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
			rc = errno == EWOULDBLOCK
				? err_blame(e, ERR_USAGE,
					  err_set(e, -EBUSY,
						  "another 'culprit lab' is at work on '%s'", dir))
				: err_errno(e, -errno, "cannot lock '%s'", path);
			close(lock);
			return rc;
		}
		/* 'down' removes the file: then this lock protects nothing. */
		if (!fstat(lock, &held) && !stat(path, &named) && held.st_ino == named.st_ino &&
			held.st_dev == named.st_dev) {
			*fd = lock;
			return 0;
		}
		close(lock);
	}
}

int lab_save(const char *dir, const char *name, bool secret, const char *text, struct err *e)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return file_write_atomic(path, secret ? 0600 : 0644, text, strlen(text), e);
}

int lab_save_json(const char *dir, const char *name, json_t *v, struct err *e)
{
	char *text = v ? json_dumps(v, JSON_INDENT(2)) : NULL;
	int rc = text ? lab_save(dir, name, false, text, e)
		      : err_errno(e, -ENOMEM, "cannot write '%s/%s'", dir, name);

	free(text);
	json_decref(v);
	return rc;
}

int state_save(const struct lab_options *o, const struct child *children, size_t n, struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		uint64_t start = 0;

		proc_start_time(children[i].pid, &start);
		json_array_append_new(list,
			json_pack("{ss si sI}", "name", children[i].name, "pid",
				(int)children[i].pid, "start", (json_int_t)start));
	}
	return lab_save_json(o->dir, "state.json",
		json_pack("{sI so}", "since", (json_int_t)time(NULL), "processes", list), e);
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
	pid_t pid = (pid_t)jget_int(process, "pid");
	uint64_t start;

	if (pid <= 0 || proc_start_time(pid, &start) ||
		start != (uint64_t)jget_int(process, "start"))
		return 0;
	return pid;
}

pid_t state_pid(const json_t *state, const char *name)
{
	json_t *process;
	size_t i;

	json_array_foreach(json_object_get(state, "processes"), i, process)
	{
		const char *its = jget_text(process, "name");

		if (its && !strcmp(its, name))
			return live_pid(process);
	}
	return 0;
}

/* Is a GlusterFS daemon running in the pid namespace of 'init'? Found by its name, not by the lab's
 * tag: it may have been started again over SSH. */
static bool has_daemon(pid_t init)
{
	char path[64], wanted[64], its[64];
	struct dirent *d;
	bool found = false;
	DIR *proc;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)init);
	n = readlink(path, wanted, sizeof(wanted) - 1);
	proc = n > 0 ? opendir("/proc") : NULL;
	if (!proc)
		return false;
	wanted[n] = '\0';
	while (!found && (d = readdir(proc))) {
		pid_t pid = (pid_t)atoi(d->d_name);
		uint64_t start;
		char *comm = NULL;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		if (!file_read(path, &comm, NULL, NULL) && !strncmp(comm, "glusterfs", 9)) {
			snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
			n = readlink(path, its, sizeof(its) - 1);
			its[n > 0 ? n : 0] = '\0';
			found = !strcmp(its, wanted) && !proc_start_time(pid, &start);
		}
		free(comm);
	}
	closedir(proc);
	return found;
}

bool state_whole(const struct lab_options *o, const json_t *state, char why[64])
{
	json_t *process;
	size_t k;

	json_array_foreach(json_object_get(state, "processes"), k, process)
	{
		if (live_pid(process))
			continue;
		snprintf(why, 64, "%s is dead", jget_text(process, "name"));
		return false;
	}
	for (unsigned i = 0; i < o->servers + o->clients; i++) {
		struct lab_node n = lab_node_at(o, i);

		if (has_daemon(state_pid(state, n.name)))
			continue;
		snprintf(why, 64, "%s has no %s", n.name,
			n.role == ROLE_SERVER ? "brick" : "GlusterFS client");
		return false;
	}
	return true;
}

int state_inventory(const struct lab_options *o, const dev_t *spares, struct err *e)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc = 0;

	if (!f)
		return err_errno(e, -errno, "cannot write the inventory");
	fprintf(f,
		"-- Written by 'culprit lab up'.\nreturn {\n"
		"  file_system = { type = \"glusterfs\", layout = \"%s\" },\n"
		"  ssh_config = \"none\",\n  allow_restart = true,\n  nodes = {\n",
		o->layout == LAB_DISPERSE ? "disperse" : "distribute");
	for (unsigned i = 0; i < lab_node_count(o) && !rc; i++) {
		struct lab_node n = lab_node_at(o, i);
		char *key = NULL;

		rc = keys_host_key(o->dir, n.name, &key, e);
		if (rc)
			break;
		fprintf(f,
			"    { name = \"%s\", role = \"%s\", address = \"%s\",\n"
			"      host_key = \"%s\", identity = \"id_ed25519\"",
			n.name, lab_role_name(n.role), n.address, key);
		if (n.role == ROLE_SERVER)
			fprintf(f,
				",\n      storage = \"%s\", service_port = %d,"
				" spare = \"/dev/loop%u\"",
				LAB_STORAGE, LAB_PORT, minor(spares[i]));
		if (n.role == ROLE_CLIENT)
			fprintf(f, ", mount = \"%s\"", LAB_MOUNT);
		fputs(" },\n", f);
		free(key);
	}
	fputs("  },\n}\n", f);
	fclose(f);
	if (!rc)
		rc = lab_save(o->dir, "inventory.lua", false, text, e);
	free(text);
	return rc;
}
