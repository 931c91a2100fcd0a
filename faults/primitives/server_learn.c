/* Describing a server from /proc, and finding which processes are that server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "faults/primitives/server_impl.h"
#include "harness/base/proc.h"

#define STD_FDS 3
#define TCP_LISTEN 0x0a

/* ---- bytes as JSON text: each becomes a code point, since they may not be UTF-8 ---- */

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

/* A list of words, each ended by a NUL. */
static int words_of(pid_t pid, const char *name, json_t **out)
{
	json_t *list;
	size_t size;
	char *text;
	int rc = procfs_read(pid, name, &text, &size);

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
		int rc = procfs_link(pid, names[i], theirs);

		*differs = names[i] + 3;
		if (rc)
			return procfs_is_gone(rc) ? 0 : rc;
		rc = procfs_link(getpid(), names[i], ours);
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
	int rc = procfs_link(pid, "exe", link);

	if (!rc && strcmp(link, exe))
		return 0;
	if (!rc)
		rc = words_of(pid, "cmdline", &words);
	if (rc)
		return procfs_is_gone(rc) ? 0 : rc;
	rc = json_array_size(words) && json_equal(words, argv) ? same_namespaces(pid, &differs) : 0;
	json_decref(words);
	return rc;
}

int server_find(const json_t *server, pid_t *pids, int room)
{
	const json_t *argv = json_object_get(server, "argv");
	char *exe = server_bytes(json_object_get(server, "exe"));
	DIR *dir = exe ? opendir("/proc") : NULL;
	int n = 0, rc = dir ? 0 : exe ? -errno : -ENOMEM;
	uint64_t ticks;

	for (pid_t pid; rc >= 0 && (pid = procfs_next(dir));) {
		rc = pid != getpid() ? is_it(argv, exe, pid) : 0;
		/* A zombie has no arguments, unless it has threads that still run in the kernel and
		 * hold files. */
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

/* ---- ports ---- */

/* Numbers of the process's sockets, ended by 0; NULL if that cannot be found out. */
static unsigned long *sockets_of(pid_t pid)
{
	unsigned long *list = calloc(1, sizeof(*list)), *more, inode;
	char path[64], link[64];
	struct dirent *d;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && list && (d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);

		link[len < 0 ? 0 : len] = '\0';
		if (sscanf(link, "socket:[%lu]", &inode) != 1)
			continue;
		more = realloc(list, (n + 2) * sizeof(*more));
		if (!more)
			free(list);
		list = more;
		if (!list)
			break;
		list[n++] = inode;
		list[n] = 0;
	}
	if (!dir) {
		free(list);
		return NULL;
	}
	closedir(dir);
	return list;
}

static int add_ports(json_t *list, pid_t pid, const char *file, const unsigned long *sockets)
{
	char *text, *save = NULL;
	int rc = procfs_read(pid, file, &text, NULL);

	/* A kernel without IPv6 has no such file. */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char local[64];
		unsigned long inode;
		unsigned state;

		if (sscanf(line, " %*d: %63s %*s %x %*s %*s %*s %*s %*s %lu", local, &state,
			    &inode) != 3 ||
			state != TCP_LISTEN)
			continue;
		for (const unsigned long *s = sockets; *s; s++)
			if (*s == inode &&
				json_array_append_new(
					list, json_sprintf("%s %s", strchr(file, '/') + 1, local)))
				rc = -ENOMEM;
	}
	free(text);
	return rc;
}

/* NULL if that cannot be found out. */
static json_t *listening(pid_t pid)
{
	unsigned long *sockets = sockets_of(pid);
	json_t *list = json_array();

	if (!list || !sockets || add_ports(list, pid, "net/tcp", sockets) ||
		add_ports(list, pid, "net/tcp6", sockets)) {
		json_decref(list);
		list = NULL;
	}
	free(sockets);
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

	if (!procfs_read(getpid(), "status", &text, NULL)) {
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

	/* RLIM_INFINITY becomes -1. */
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		if (prlimit(pid, i, NULL, &l) < 0 ||
			json_array_append_new(list,
				json_pack("[I, I]", (json_int_t)l.rlim_cur,
					(json_int_t)l.rlim_max))) {
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
				"process %d could not be started again as it is: its hard limit "
				"%d is "
				"above the agent's, which may not raise it",
				(int)pid, i);
	return 0;
}

/* Real, effective and saved number after 'label'; NULL: it is not there. */
static json_t *ids(const char *text, const char *label)
{
	const char *p = strstr(text, label);
	unsigned id[3];

	if (!p || sscanf(p + strlen(label), " %u %u %u", &id[0], &id[1], &id[2]) != 3)
		return NULL;
	return json_pack("[i, i, i]", id[0], id[1], id[2]);
}

/* uid, gid, umask and groups from /proc/PID/status. */
static int learn_user(pid_t pid, json_t *server)
{
	json_t *groups = json_array();
	unsigned mask = 022, group;
	char *text, *p;
	int rc = 0, n;

	if (procfs_read(pid, "status", &text, NULL)) {
		json_decref(groups);
		return -ESRCH;
	}
	if ((p = strstr(text, "\nUmask:")))
		sscanf(p, "\nUmask: %o", &mask);
	if ((p = strstr(text, "\nGroups:")))
		for (p += 8; sscanf(p, "%*[ \t]%u%n", &group, &n) == 1; p += n)
			if (json_array_append_new(groups, json_integer(group)))
				rc = -ENOMEM;
	if (json_object_set_new(server, "uid", ids(text, "\nUid:")) ||
		json_object_set_new(server, "gid", ids(text, "\nGid:")) ||
		json_object_set_new(server, "umask", json_integer(mask)) ||
		json_object_set(server, "groups", groups))
		rc = -ESRCH;
	free(text);
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
	rc = procfs_link(pid, name, link);
	if (rc)
		return rc == -ENOENT ? json_null() : NULL;
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (procfs_read(pid, name, &text, NULL))
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

	if (!procfs_read(pid, name, &text, NULL)) {
		value = json_integer(atoll(text));
		free(text);
	}
	return value;
}

static json_t *bytes_of(pid_t pid, const char *name)
{
	json_t *value = NULL;
	char *text;

	if (!procfs_read(pid, name, &text, NULL)) {
		value = bytes_json(text, strlen(text));
		free(text);
	}
	return value;
}

/* All but the user. Fails if anything is missing, since the server would be started without it. */
static bool learn_process(pid_t pid, uint64_t ticks, const char *exe, const char *cwd, json_t *s)
{
	json_t *argv = NULL, *env = NULL;
	bool whole = !words_of(pid, "cmdline", &argv) && !words_of(pid, "environ", &env) &&
		json_array_size(argv);
	const struct {
		const char *key;
		json_t *value;
	} members[] = {
		{"argv", argv},
		{"env", env},
		{"cgroups", bytes_of(pid, "cgroup")},
		{"pid", json_integer(pid)},
		{"start_ticks", json_integer((json_int_t)ticks)},
		{"exe", bytes_json(exe, strlen(exe))},
		{"cwd", bytes_json(cwd, strlen(cwd))},
		{"limits", limits_of(pid)},
		{"oom_score_adj", number_of(pid, "oom_score_adj")},
		{"nice", json_integer(getpriority(PRIO_PROCESS, (id_t)pid))},
		{"descriptors", descriptors(pid)},
		{"listens", listening(pid)},
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (json_object_set_new(s, members[i].key, members[i].value))
			whole = false;
	return whole;
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
		procfs_link(pid, "exe", exe) || procfs_link(pid, "cwd", cwd))
		rc = err_set(e, -ESRCH, "there is no process %d that could be a server", (int)pid);
	else if (same_namespaces(pid, &differs) <= 0)
		rc = err_set(e, -EXDEV,
			"process %d has another %s than the agent, so it could not be started "
			"again "
			"as it is",
			(int)pid, strcmp(differs, "root") ? "namespace" : "root folder");
	else if (access(exe, X_OK) < 0)
		rc = err_errno(e, -errno, "process %d could not be started again: its program '%s'",
			(int)pid, exe);
	else if (!learn_process(pid, ticks, exe, cwd, s) || learn_user(pid, s))
		rc = err_set(e, -ESRCH, "cannot learn how process %d was started", (int)pid);
	else
		rc = check_limits(s, pid, e);
	if (!rc && server_find(s, same, 2) != 1)
		rc = err_set(e, -EBUSY,
			"another process has the same program and arguments as process %d",
			(int)pid);
	if (!rc) {
		*out = s;
		s = NULL;
	}
	json_decref(s);
	return rc;
}
