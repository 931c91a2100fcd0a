/* Is the lab whole? Its own processes live, and so do those of its file system. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"
#include "harness/fs/fs.h"
#include "harness/lab/lab_impl.h"
#include "harness/lab/recipe.h"

/* A text that is not UTF-8 becomes empty. */
static json_t *text_json(const char *text)
{
	return json_string(text) ?: json_string("");
}

/* What the file system's functions see of a process; NULL if it is gone, or a zombie. */
static json_t *whole_describe(pid_t pid)
{
	auto_free char *comm = NULL, *line = NULL;
	char exe[PATH_MAX] = "";
	json_t *words = json_array();
	size_t size = 0;
	uint64_t start;

	if (proc_start_time(pid, &start) ||
		file_read(lab_path("/proc", "%d/comm", (int)pid).s, &comm, NULL, NULL) ||
		file_read(lab_path("/proc", "%d/cmdline", (int)pid).s, &line, &size, NULL)) {
		json_decref(words);
		return NULL;
	}
	if (readlink(lab_path("/proc", "%d/exe", (int)pid).s, exe, sizeof(exe) - 1) < 0)
		*exe = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	for (size_t at = 0; at < size; at += strlen(line + at) + 1)
		json_array_append_new(words, text_json(line + at));
	return json_pack("{s:i, s:o, s:o, s:o}", "pid", (int)pid, "comm", text_json(comm), "exe",
		text_json(exe), "cmdline", words);
}

/* The processes of every pid namespace in 'spaces', in the order of nodes; by the namespace, not by
 * the lab's tag: a server may have been started again over SSH. */
static json_t *find_processes(const ino_t *spaces, unsigned n)
{
	json_t *all = json_array();
	auto_dir DIR *proc = opendir("/proc");
	struct dirent *d;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(all, json_array());
	while (proc && (d = readdir(proc))) {
		pid_t pid = atoi(d->d_name);
		struct stat its;

		if (pid <= 0 || stat(lab_path("/proc", "%d/ns/pid", (int)pid).s, &its) < 0)
			continue;
		for (unsigned i = 0; i < n; i++) {
			json_t *one = spaces[i] == its.st_ino ? whole_describe(pid) : NULL;

			if (one)
				json_array_append_new(json_array_get(all, i), one);
		}
	}
	return all;
}

/* The host as its inventory has it. */
static const struct host *host_of(const struct inventory *inv, const char *name)
{
	for (size_t i = 0; i < inv->n_hosts; i++)
		if (!strcmp(inv->hosts[i].ssh.name, name))
			return &inv->hosts[i];
	return NULL;
}

static bool served(struct recipe *r, const struct host *h, json_t *processes, char why[256])
{
	json_auto_t *given = json_pack("{s:O}", "processes", processes), *pids = NULL;
	const bool server = h->role == ROLE_SERVER;
	struct err e;

	if (!recipe_has(r, server ? "start_server" : "start_client"))
		return true;
	if (fs_pids(recipe_fs(r), h, given, &pids, &e)) {
		snprintf(why, 256, "%s: %.200s", h->ssh.name, e.text);
		return false;
	}
	if (!json_array_size(pids))
		snprintf(why, 256, "%s has no %s process of the file system", h->ssh.name,
			role_name(h->role));
	return json_array_size(pids);
}

static bool file_system_whole(const struct lab_options *o, const json_t *state, struct recipe *r,
	const struct inventory *inv, char why[256])
{
	ino_t spaces[2 * LAB_MAX_OF_A_ROLE] = {0};
	json_auto_t *processes = NULL;
	bool whole = true;

	lab_each(n, o, o->servers + o->clients) {
		struct lab_path path = lab_path(
			"/proc", "%d/ns/pid", (int)state_pid(state, n.name));
		struct stat its;

		spaces[n.i] = stat(path.s, &its) < 0 ? 0 : its.st_ino;
	}
	processes = find_processes(spaces, o->servers + o->clients);
	lab_each(n, o, o->servers + o->clients) {
		const struct host *h = host_of(inv, n.name);

		whole = whole && h && served(r, h, json_array_get(processes, n.i), why);
	}
	return whole;
}

bool state_whole(const struct lab_options *o, const json_t *state, char why[256])
{
	struct inventory *inv = NULL;
	struct recipe *r = NULL;
	json_t *process;
	struct err e;
	bool whole;
	size_t k;

	json_array_foreach(json_object_get(state, "processes"), k, process) {
		const char *name = jget_text(process, "name");

		if (state_pid(state, name))
			continue;
		snprintf(why, 256, "%s is dead", name);
		return false;
	}
	if (recipe_open(o, &r, &e) ||
		inventory_load(lab_path(o->dir, "inventory.lua").s, &inv, &e)) {
		snprintf(why, 256, "%.250s", e.text);
		recipe_free(r);
		return false;
	}
	whole = file_system_whole(o, state, r, inv, why);
	inventory_free(inv);
	recipe_free(r);
	return whole;
}
