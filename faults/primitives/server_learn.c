/* What a server is, read from /proc, and which processes are it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/server_impl.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

#define STD_FDS 3

/* ---- bytes as JSON text: each becomes the code point of its number, since they may be no UTF-8
 * ---- */

static json_t *bytes_json(const char *bytes, size_t n)
{
	char *text = malloc(2 * n + 1);
	size_t used = 0;
	json_t *value;

	for (size_t i = 0; text && i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x80)
			text[used++] = (char)(0xc0 | c >> 6);
		text[used++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	value = text ? json_stringn_nocheck(text, used) : NULL;
	free(text);
	return value;
}

char *server_bytes(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t n = json_string_length(value), used = 0;
	char *bytes = text ? malloc(n + 1) : NULL;

	for (size_t i = 0; bytes && i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x80 && i + 1 < n)
			c = (unsigned char)(c << 6 | ((unsigned char)text[++i] & 0x3f));
		bytes[used++] = (char)c;
	}
	if (bytes)
		bytes[used] = '\0';
	return bytes;
}

/* ---- /proc ---- */

static int read_of(pid_t pid, const char *name, char **data, size_t *size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return file_read(path, data, size, NULL);
}

static int link_of(pid_t pid, const char *name, char out[PATH_MAX])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, out, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

/* It has ended, or is not ours to look at: any other error says nothing about it. */
static bool is_gone(int rc)
{
	return rc == -ENOENT || rc == -ESRCH || rc == -EACCES || rc == -EPERM;
}

/* The words of a list that NULs end. */
static int words_of(pid_t pid, const char *name, json_t **out)
{
	json_t *list;
	size_t size;
	char *text;
	int rc;

	rc = read_of(pid, name, &text, &size);
	if (rc)
		return rc;
	list = json_array();
	rc = list ? 0 : -ENOMEM;
	for (char *p = text; !rc && p < text + size; p += strlen(p) + 1)
		if (json_array_append_new(list, bytes_json(p, strlen(p))))
			rc = -ENOMEM;
	free(text);
	if (rc)
		json_decref(list);
	else
		*out = list;
	return rc;
}

/* 1, 0, or -errno if that cannot be found out. */
static int same_namespaces(pid_t pid, const char **differs)
{
	static const char *const names[] = {
		"ns/mnt", "ns/net", "ns/pid", "ns/uts", "ns/ipc", "ns/user"};
	char path[64], theirs[PATH_MAX], ours[PATH_MAX];
	struct stat root, own;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int rc = link_of(pid, names[i], theirs);

		*differs = names[i] + 3;
		if (rc)
			return is_gone(rc) ? 0 : rc;
		rc = link_of(getpid(), names[i], ours);
		if (rc)
			return rc;
		if (strcmp(theirs, ours))
			return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	*differs = "root";
	return !stat(path, &root) && !stat("/", &own) && root.st_dev == own.st_dev &&
		root.st_ino == own.st_ino;
}

/* 1, 0, or -errno if that cannot be found out. */
static int is_it(const json_t *argv, const char *exe, pid_t pid)
{
	const char *differs;
	char link[PATH_MAX];
	json_t *words = NULL;
	int rc;

	rc = link_of(pid, "exe", link);
	if (!rc && strcmp(link, exe))
		return 0;
	if (!rc)
		rc = words_of(pid, "cmdline", &words);
	if (rc)
		return is_gone(rc) ? 0 : rc;
	rc = json_array_size(words) && json_equal(words, argv) ? same_namespaces(pid, &differs) : 0;
	json_decref(words);
	return rc;
}

int server_find(const json_t *server, pid_t *pids, int room)
{
	const json_t *argv = json_object_get(server, "argv");
	char *exe = server_bytes(json_object_get(server, "exe"));
	DIR *dir = exe ? opendir("/proc") : NULL;
	struct dirent *d;
	int n = 0, rc = dir ? 0 : exe ? -errno : -ENOMEM;

	while (rc >= 0 && dir && (d = readdir(dir))) {
		pid_t pid = (pid_t)atoi(d->d_name);
		uint64_t ticks;

		rc = pid > 0 && pid != getpid() ? is_it(argv, exe, pid) : 0;
		/* A zombie has no arguments, but one with threads still in the kernel has not let
		 * go of all. */
		if (rc > 0 && (rc = proc_start_time(pid, &ticks)) == 0 && n < room)
			pids[n++] = pid;
		if (rc == -ESRCH)
			rc = 0;
	}
	if (dir)
		closedir(dir);
	free(exe);
	return rc < 0 ? rc : n;
}

/* ---- listening ---- */

static int add_listening(
	json_t *list, pid_t pid, const char *file, const unsigned long *sockets, size_t n)
{
	char name[16], *text, *line, *save = NULL;
	int rc;

	snprintf(name, sizeof(name), "net/%s", file);
	rc = read_of(pid, name, &text, NULL);
	/* A kernel without IPv6 has no such file. */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char local[64], all[80];
		unsigned long inode;
		unsigned state;

		if (sscanf(line, " %*d: %63s %*s %x %*s %*s %*s %*s %*s %lu", local, &state,
			    &inode) != 3 ||
			state != 0x0a)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (sockets[i] != inode)
				continue;
			snprintf(all, sizeof(all), "%s %s", file, local);
			if (json_array_append_new(list, json_string(all)))
				rc = -ENOMEM;
		}
	}
	free(text);
	return rc;
}

/* NULL if that cannot be found out. */
static json_t *listening(pid_t pid)
{
	unsigned long *sockets = NULL, *more;
	json_t *list = json_array();
	char path[64], link[64];
	struct dirent *d;
	size_t n = 0;
	DIR *dir;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	rc = dir && list ? 0 : -ENOMEM;
	while (!rc && (d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		unsigned long inode;

		link[len < 0 ? 0 : len] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) != 1)
			continue;
		more = realloc(sockets, (n + 1) * sizeof(*more));
		if (!more) {
			rc = -ENOMEM;
			break;
		}
		sockets = more;
		sockets[n++] = inode;
	}
	if (dir)
		closedir(dir);
	if (!rc)
		rc = add_listening(list, pid, "tcp", sockets, n);
	if (!rc)
		rc = add_listening(list, pid, "tcp6", sockets, n);
	free(sockets);
	if (rc) {
		json_decref(list);
		list = NULL;
	}
	return list;
}

bool server_listens(const json_t *server, pid_t pid)
{
	json_t *now = listening(pid), *value;
	bool all = now != NULL;
	size_t i, j;

	json_array_foreach(json_object_get(server, "listens"), i, value)
	{
		bool found = false;

		for (j = 0; j < json_array_size(now) && !found; j++)
			found = json_equal(value, json_array_get(now, j));
		all = all && found;
	}
	json_decref(now);
	return all;
}

/* ---- user and limits ---- */

static bool may_raise_limits(void)
{
	char *text, *p;
	unsigned long long caps = 0;

	if (!read_of(getpid(), "status", &text, NULL)) {
		p = strstr(text, "\nCapEff:");
		if (p)
			sscanf(p, "\nCapEff: %llx", &caps);
		free(text);
	}
	return caps >> 24 & 1; /* CAP_SYS_RESOURCE */
}

static json_t *limits_of(pid_t pid)
{
	json_t *list = json_array();
	struct rlimit l;

	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (prlimit(pid, i, NULL, &l) < 0) {
			json_decref(list);
			return NULL;
		}
		/* RLIM_INFINITY becomes -1. */
		if (json_array_append_new(list,
			    json_pack("[I, I]", (json_int_t)l.rlim_cur, (json_int_t)l.rlim_max))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

int server_limits(const json_t *server, struct rlimit *limits)
{
	json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(server, "limits"), i, pair)
	{
		if (i >= RLIM_NLIMITS)
			break;
		limits[i].rlim_cur = (rlim_t)json_integer_value(json_array_get(pair, 0));
		limits[i].rlim_max = (rlim_t)json_integer_value(json_array_get(pair, 1));
	}
	return i == RLIM_NLIMITS ? 0 : -EBADMSG;
}

static int check_limits(const json_t *server, pid_t pid, struct err *e)
{
	struct rlimit theirs[RLIM_NLIMITS], ours;

	if (may_raise_limits())
		return 0;
	if (server_limits(server, theirs))
		return err_set(e, -ESRCH, "there is no process %d", (int)pid);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (!getrlimit(i, &ours) && theirs[i].rlim_max > ours.rlim_max)
			return err_set(e, -EPERM,
				"process %d could not be started again as it is: its hard limit %d is above the agent's, "
				"which may not raise it",
				(int)pid, i);
	return 0;
}

/* The four numbers after "Uid:" or "Gid:", the groups, umask. */
static int learn_user(pid_t pid, json_t *server)
{
	unsigned uid[3], gid[3], mask = 022, group;
	json_t *groups = json_array();
	char *text, *p;
	int rc = -ESRCH, n;

	if (read_of(pid, "status", &text, NULL)) {
		json_decref(groups);
		return -ESRCH;
	}
	p = strstr(text, "\nUid:");
	if (p && sscanf(p, "\nUid: %u %u %u", &uid[0], &uid[1], &uid[2]) == 3)
		p = strstr(text, "\nGid:");
	if (p && sscanf(p, "\nGid: %u %u %u", &gid[0], &gid[1], &gid[2]) == 3)
		rc = 0;
	if ((p = strstr(text, "\nUmask:")))
		sscanf(p, "\nUmask: %o", &mask);
	if ((p = strstr(text, "\nGroups:")))
		for (p += 8; sscanf(p, "%*[ \t]%u%n", &group, &n) == 1; p += n)
			if (json_array_append_new(groups, json_integer(group)))
				rc = -ENOMEM;
	free(text);
	if (!rc &&
		(json_object_set_new(
			 server, "uid", json_pack("[i, i, i]", uid[0], uid[1], uid[2])) ||
			json_object_set_new(
				server, "gid", json_pack("[i, i, i]", gid[0], gid[1], gid[2])) ||
			json_object_set_new(server, "umask", json_integer(mask)) ||
			json_object_set(server, "groups", groups)))
		rc = -ENOMEM;
	json_decref(groups);
	return rc;
}

bool server_unchanged(const json_t *server, pid_t pid)
{
	json_t *limits = limits_of(pid), *user = json_object();
	bool same;

	same = limits && user && !learn_user(pid, user) &&
		json_equal(limits, json_object_get(server, "limits")) &&
		json_equal(json_object_get(user, "uid"), json_object_get(server, "uid")) &&
		json_equal(json_object_get(user, "gid"), json_object_get(server, "gid"));
	json_decref(limits);
	json_decref(user);
	return same;
}

/* ---- all of it ---- */

/* NULL if that cannot be found out. */
static json_t *descriptor(pid_t pid, int fd)
{
	char name[32], link[PATH_MAX], *text, *p;
	unsigned flags = O_RDWR;
	struct stat st;
	int rc;

	snprintf(name, sizeof(name), "fd/%d", fd);
	rc = link_of(pid, name, link);
	if (rc)
		return rc == -ENOENT ? json_null() : NULL;
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (read_of(pid, name, &text, NULL))
		return NULL;
	if ((p = strstr(text, "flags:")))
		sscanf(p, "flags: %o", &flags);
	free(text);
	if (link[0] != '/' || stat(link, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))
		strcpy(link, "/dev/null");
	return json_pack(
		"[o, i]", bytes_json(link, strlen(link)), (int)(flags & (O_ACCMODE | O_APPEND)));
}

static json_t *descriptors(pid_t pid)
{
	json_t *list = json_array();

	for (int fd = 0; fd < STD_FDS; fd++) {
		if (json_array_append_new(list, descriptor(pid, fd))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *number_of(pid_t pid, const char *name)
{
	json_t *value = NULL;
	char *text;

	if (!read_of(pid, name, &text, NULL)) {
		value = json_integer(atoll(text));
		free(text);
	}
	return value;
}

/* All but the user. What is missing it would be started again without. */
static bool learn_process(pid_t pid, uint64_t ticks, const char *exe, const char *cwd, json_t *s)
{
	json_t *argv = NULL, *env = NULL;
	char *cgroups = NULL;
	bool all;

	all = !words_of(pid, "cmdline", &argv) && !words_of(pid, "environ", &env) &&
		!read_of(pid, "cgroup", &cgroups, NULL) &&
		!json_object_set_new(s, "cgroups", bytes_json(cgroups, strlen(cgroups))) &&
		!json_object_set_new(s, "pid", json_integer(pid)) &&
		!json_object_set_new(s, "start_ticks", json_integer((json_int_t)ticks)) &&
		!json_object_set_new(s, "exe", bytes_json(exe, strlen(exe))) &&
		!json_object_set_new(s, "cwd", bytes_json(cwd, strlen(cwd))) &&
		!json_object_set(s, "argv", argv) && !json_object_set(s, "env", env) &&
		!json_object_set_new(s, "limits", limits_of(pid)) &&
		!json_object_set_new(s, "oom_score_adj", number_of(pid, "oom_score_adj")) &&
		!json_object_set_new(
			s, "nice", json_integer(getpriority(PRIO_PROCESS, (id_t)pid))) &&
		!json_object_set_new(s, "descriptors", descriptors(pid)) &&
		!json_object_set_new(s, "listens", listening(pid)) && json_array_size(argv);
	json_decref(argv);
	json_decref(env);
	free(cgroups);
	return all;
}

int server_learn(pid_t pid, json_t **out, struct err *e)
{
	char exe[PATH_MAX], cwd[PATH_MAX];
	json_t *s = json_object();
	const char *differs = "";
	uint64_t ticks;
	pid_t same[2];
	int rc;

	if (pid <= 1 || pid == getpid() || proc_start_time(pid, &ticks) ||
		link_of(pid, "exe", exe) || link_of(pid, "cwd", cwd)) {
		rc = err_set(e, -ESRCH, "there is no process %d that could be a server", (int)pid);
		goto out;
	}
	if (same_namespaces(pid, &differs) <= 0) {
		rc = err_set(e, -EXDEV,
			"process %d has another %s than the agent: it could not be started again as it is",
			(int)pid, strcmp(differs, "root") ? "namespace" : "root folder");
		goto out;
	}
	if (access(exe, X_OK) < 0) {
		rc = err_errno(e, -errno, "process %d could not be started again: its program '%s'",
			(int)pid, exe);
		goto out;
	}
	rc = learn_process(pid, ticks, exe, cwd, s) ? learn_user(pid, s) : -ESRCH;
	if (rc) {
		rc = err_set(e, -ESRCH, "cannot learn how process %d was started", (int)pid);
		goto out;
	}
	rc = check_limits(s, pid, e);
	if (!rc && server_find(s, same, 2) != 1)
		rc = err_set(e, -EBUSY,
			"process %d is not the only one with its arguments: there must be one alone",
			(int)pid);
	if (!rc) {
		*out = s;
		s = NULL;
	}
out:
	json_decref(s);
	return rc;
}
