/* Describing a server from /proc, and finding which processes are that server. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/server_impl.h"
#include "faults/primitives/target.h"
#include "faults/primitives/unit.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/base/proc.h"

#define TCP_LISTEN 0x0a
#define TWICE_S 1 /* for which a server may seem to run twice */

/* ---- bytes as JSON text: each becomes a code point, since they may not be UTF-8 ---- */

static json_t *bytes_json(const char *bytes, size_t n)
{
	auto_free char *text = malloc(2 * n + 1);
	size_t used = 0;

	for (size_t i = 0; text && i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x80)
			text[used++] = (char)(0xc0 | c >> 6);
		text[used++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	return text ? json_stringn_nocheck(text, used) : NULL;
}

static json_t *text_bytes(const char *text)
{
	return bytes_json(text, strlen(text));
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

/* 1, 0, or -errno if that cannot be found out. 'first': 0, or PRIVATE to leave out the namespaces
 * that a unit of systemd may have for itself; then its root folder is another mount as well. */
enum { PRIVATE = 3 };

static int same_namespaces(pid_t pid, size_t first, const char **differs)
{
	static const char *const names[] = {
		"ns/mnt", "ns/uts", "ns/ipc", "ns/net", "ns/pid", "ns/user"};
	char path[64], theirs[PATH_MAX], ours[PATH_MAX];
	struct stat root, own;

	for (size_t i = first; i < sizeof(names) / sizeof(names[0]); i++) {
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
	if (first)
		return 1;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	*differs = "root";
	return !stat(path, &root) && !stat("/", &own) && root.st_dev == own.st_dev &&
		root.st_ino == own.st_ino;
}

/* 1, 0, or -errno if that cannot be found out. */
static int is_it(const json_t *server, const char *exe, pid_t pid)
{
	auto_json json_t *words = NULL;
	const char *differs;
	char link[PATH_MAX];
	int rc = procfs_link(pid, "exe", link);

	if (!rc && strcmp(link, exe))
		return 0;
	rc = rc ?: procfs_words(pid, "cmdline", bytes_json, &words);
	if (rc)
		return procfs_is_gone(rc) ? 0 : rc;
	return json_array_size(words) && json_equal(words, jget(server, "argv"))
		? same_namespaces(pid, server_is_walled(server) ? PRIVATE : 0, &differs)
		: 0;
}

const char *server_unit(const json_t *server)
{
	return jget_text(server, "unit");
}

bool server_is_walled(const json_t *server)
{
	return jget_true(server, "walled");
}

/* All processes with its program and arguments. */
static int find_all(const json_t *server, struct targets *all)
{
	auto_free char *exe = server_bytes(jget(server, "exe"));
	auto_dir DIR *dir = exe ? opendir("/proc") : NULL;
	int rc = dir ? 0 : exe ? -errno : -ENOMEM;
	struct target t;

	while (rc >= 0 && (t.pid = procfs_next(dir))) {
		rc = t.pid != getpid() ? is_it(server, exe, t.pid) : 0;
		/* A zombie has no arguments, unless it has threads that still run in the kernel and
		 * hold files. */
		if (rc > 0 && (rc = proc_start_time(t.pid, &t.ticks)) == 0)
			rc = targets_add(all, &t);
		if (rc == -ESRCH)
			rc = 0;
	}
	return rc < 0 ? rc : 0;
}

/* A process that it has forked for a client has its program and arguments as well. */
static int drop_descendants(struct targets *all)
{
	auto_free struct proc_id *below = NULL;
	auto_free pid_t *pids = calloc((size_t)all->n, sizeof(*pids));
	int kept = 0, n;

	for (int i = 0; pids && i < all->n; i++)
		pids[i] = all->list[i].pid;
	n = pids ? proc_descendants(pids, (size_t)all->n, &below) : -ENOMEM;
	for (int i = 0; n > 0 && i < all->n; i++) {
		bool is_below = false;

		for (int k = 0; k < n && !is_below; k++)
			is_below = below[k].pid == all->list[i].pid;
		if (!is_below)
			all->list[kept++] = all->list[i];
	}
	if (n > 0)
		all->n = kept;
	return n < 0 ? n : 0;
}

int server_find(const json_t *server, pid_t *pids, int room)
{
	auto_targets struct targets all = {0};
	int rc = find_all(server, &all);

	if (!rc && all.n > 1)
		rc = drop_descendants(&all);
	if (rc)
		return rc;
	for (int i = 0; i < all.n && i < room; i++)
		pids[i] = all.list[i].pid;
	return all.n < room ? all.n : room;
}

int server_find_patiently(const json_t *server, pid_t *pids, int room)
{
	double deadline = clock_mono_s() + TWICE_S;
	int n;

	do
		n = server_find(server, pids, room);
	while (n > 1 && procfs_nap(deadline));
	return n;
}

/* ---- ports ---- */

/* The numbers of the process's sockets, as the keys of an object; NULL if that cannot be found
 * out. */
static json_t *sockets_of(pid_t pid)
{
	auto_json json_t *set = json_object();
	auto_dir DIR *dir = NULL;
	char path[64], link[64], inode[32];
	struct dirent *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return NULL;
	while ((d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);

		link[len < 0 ? 0 : len] = '\0';
		if (sscanf(link, "socket:[%31[0-9]", inode) == 1 &&
			json_object_set_new(set, inode, json_true()))
			return NULL;
	}
	return AUTO_TAKE(set);
}

static int add_ports(json_t *list, pid_t pid, const char *file, const json_t *sockets)
{
	auto_free char *text = NULL;
	int rc = procfs_read(pid, file, &text, NULL);

	/* A kernel without IPv6 has no such file. */
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	PROCFS_EACH_LINE(line, text)
	{
		char local[64], inode[32];
		unsigned state;

		if (sscanf(line, " %*d: %63s %*s %x %*s %*s %*s %*s %*s %31s", local, &state,
			    inode) == 3 &&
			state == TCP_LISTEN && jget(sockets, inode) &&
			json_array_append_new(
				list, json_sprintf("%s %s", strchr(file, '/') + 1, local)))
			rc = -ENOMEM;
	}
	return rc;
}

/* NULL if that cannot be found out. */
static json_t *listening(pid_t pid)
{
	auto_json json_t *sockets = sockets_of(pid), *list = json_array();

	return !list || !sockets || add_ports(list, pid, "net/tcp", sockets) ||
			add_ports(list, pid, "net/tcp6", sockets)
		? NULL
		: AUTO_TAKE(list);
}

bool server_listens(const json_t *server, pid_t pid)
{
	auto_json json_t *now = listening(pid);
	json_t *value;
	bool all = now != NULL;
	size_t i, j;

	json_array_foreach(jget(server, "listens"), i, value) {
		bool found = false;

		for (j = 0; j < json_array_size(now) && !found; j++)
			found = json_equal(value, json_array_get(now, j));
		all = all && found;
	}
	return all;
}

/* ---- user and limits ---- */

static bool may_raise_limits(void)
{
	auto_free char *text = NULL;
	const char *caps = procfs_read(getpid(), "status", &text, NULL)
		? NULL
		: procfs_after(text, "\nCapEff:");

	return caps && strtoull(caps, NULL, 16) >> 24 & 1; /* CAP_SYS_RESOURCE */
}

static json_t *learn_limits(pid_t pid, struct err *e)
{
	auto_json json_t *list = json_array();
	struct rlimit l[RLIM_NLIMITS];

	if (limits_of(pid, l, e))
		return NULL;
	/* RLIM_INFINITY becomes -1. */
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (json_array_append_new(list,
			    json_pack("[I, I]", (json_int_t)l[i].rlim_cur,
				    (json_int_t)l[i].rlim_max)))
			return NULL;
	return AUTO_TAKE(list);
}

int server_limits(const json_t *server, struct rlimit *limits)
{
	json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(server, "limits"), i, pair) {
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
				"%s is above the agent's, which may not raise it without "
				"CAP_SYS_RESOURCE",
				(int)pid, limits_name(i));
	return 0;
}

/* Real, effective and saved number after 'label'; NULL: it is not there. */
static json_t *ids(const char *text, const char *label)
{
	const char *p = procfs_after(text, label);
	unsigned id[3];

	return p && sscanf(p, " %u %u %u", &id[0], &id[1], &id[2]) == 3
		? json_pack("[i, i, i]", id[0], id[1], id[2])
		: NULL;
}

/* Signals that whoever started the server may have had ignored for it: nohup, systemd
 * (IgnoreSIGPIPE=), an administrator who wants EFBIG in place of death at RLIMIT_FSIZE. Others are
 * the server's own doing, and it does it again. */
static json_int_t ignored_signals(const char *status)
{
	const char *p = procfs_after(status, "\nSigIgn:");
	const unsigned long long kept = 1ull << (SIGHUP - 1) | 1ull << (SIGPIPE - 1) |
		1ull << (SIGXFSZ - 1);

	return p ? (json_int_t)(strtoull(p, NULL, 16) & kept) : 0;
}

/* uid, gid, umask, groups and ignored signals from /proc/PID/status. */
static int learn_user(pid_t pid, json_t *server)
{
	auto_json json_t *groups = json_array();
	auto_free char *text = NULL;
	unsigned mask = 022, group;
	const char *p;
	int rc = 0, n;

	if (procfs_read(pid, "status", &text, NULL))
		return -ESRCH;
	if ((p = procfs_after(text, "\nUmask:")))
		sscanf(p, " %o", &mask);
	if ((p = procfs_after(text, "\nGroups:")))
		for (; sscanf(p, "%*[ \t]%u%n", &group, &n) == 1; p += n)
			if (json_array_append_new(groups, json_integer(group)))
				rc = -ENOMEM;
	if (json_object_set_new(server, "uid", ids(text, "\nUid:")) ||
		json_object_set_new(server, "gid", ids(text, "\nGid:")) ||
		json_object_set_new(server, "umask", json_integer(mask)) ||
		json_object_set_new(server, "ignored", json_integer(ignored_signals(text))) ||
		json_object_set(server, "groups", groups))
		rc = -ESRCH;
	return rc;
}

/* The value after 'type' in /proc/PID/auxv (getauxval(3)). False: it is not there. */
static bool auxv_value(const unsigned long *v, size_t n, unsigned long type, unsigned long *out)
{
	for (size_t i = 0; i + 1 < n && v[i]; i += 2)
		if (v[i] == type) {
			*out = v[i + 1];
			return true;
		}
	return false;
}

/* A daemon that root starts and that becomes another user later has to be started by root again:
 * only so it may bind its port, or read its key. The kernel keeps whose a process was when its
 * program began. Not of a program of another word size, whose auxv is another: that is started as
 * the user that it is. */
static int learn_starter(pid_t pid, json_t *server)
{
	unsigned long page = 0, uid, euid, gid, egid;
	auto_free char *text = NULL;
	const unsigned long *v;
	size_t size, n;
	json_t *u, *g;

	if (procfs_read(pid, "auxv", &text, &size))
		return 0;
	v = (const void *)text;
	n = size / sizeof(*v);
	if (!auxv_value(v, n, AT_PAGESZ, &page) || (long)page != sysconf(_SC_PAGESIZE) ||
		!auxv_value(v, n, AT_UID, &uid) || !auxv_value(v, n, AT_EUID, &euid) ||
		!auxv_value(v, n, AT_GID, &gid) || !auxv_value(v, n, AT_EGID, &egid))
		return 0;
	u = json_pack("[I, I, I]", (json_int_t)uid, (json_int_t)euid, (json_int_t)euid);
	g = json_pack("[I, I, I]", (json_int_t)gid, (json_int_t)egid, (json_int_t)egid);
	if (json_equal(u, jget(server, "uid")) && json_equal(g, jget(server, "gid"))) {
		json_decref(u);
		json_decref(g);
		return 0;
	}
	return json_object_set_new(server, "start_uid", u) |
			json_object_set_new(server, "start_gid", g)
		? -ENOMEM
		: 0;
}

bool server_is_its_user(const json_t *server, pid_t pid)
{
	auto_json json_t *user = json_object();

	return user && !learn_user(pid, user) &&
		json_equal(jget(user, "uid"), jget(server, "uid")) &&
		json_equal(jget(user, "gid"), jget(server, "gid"));
}

bool server_unchanged(const json_t *server, pid_t pid)
{
	auto_json json_t *limits = learn_limits(pid, NULL);

	return limits && json_equal(limits, jget(server, "limits")) &&
		server_is_its_user(server, pid);
}

/* ---- all of it ---- */

/* NULL if that cannot be found out. */
static json_t *descriptor(pid_t pid, int fd)
{
	char name[32], link[PATH_MAX];
	auto_free char *text = NULL;
	const char *p;
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
	if ((p = procfs_after(text, "flags:")))
		sscanf(p, " %o", &flags);
	if (link[0] != '/' || stat(link, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))
		strcpy(link, "/dev/null");
	return json_pack("[o, i]", text_bytes(link), (int)(flags & (O_ACCMODE | O_APPEND)));
}

static json_t *server_learn_number_of(pid_t pid, const char *name)
{
	auto_free char *text = NULL;

	return procfs_read(pid, name, &text, NULL) ? NULL : json_integer(atoll(text));
}

static json_t *bytes_of(pid_t pid, const char *name)
{
	auto_free char *text = NULL;

	return procfs_read(pid, name, &text, NULL) ? NULL : text_bytes(text);
}

/* All but the user; NULL if anything is missing, since the server would be started without it. */
static json_t *learn_process(pid_t pid, uint64_t ticks, const char *exe, const char *cwd)
{
	json_t *argv = NULL, *env = NULL;

	if (procfs_words(pid, "cmdline", bytes_json, &argv) || !json_array_size(argv) ||
		procfs_words(pid, "environ", bytes_json, &env)) {
		json_decref(argv);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o, s:i, s:I, s:o, s:o, s:o, s:o, s:i, s:[o, o, o], s:o}",
		"argv", argv, "env", env, "cgroups", bytes_of(pid, "cgroup"), "pid", (int)pid,
		"start_ticks", (json_int_t)ticks, "exe", text_bytes(exe), "cwd", text_bytes(cwd),
		"limits", learn_limits(pid, NULL), "oom_score_adj",
		server_learn_number_of(pid, "oom_score_adj"), "nice",
		getpriority(PRIO_PROCESS, (id_t)pid), "descriptors", descriptor(pid, 0),
		descriptor(pid, 1), descriptor(pid, 2), "listens", listening(pid));
}

/* Its unit of systemd, if it has one, and whether it is in its own namespace. -EXDEV if it is,
 * and nobody could start it there again. */
static int learn_place(pid_t pid, json_t *server, struct err *e)
{
	const char *differs = "";
	char unit[UNIT_NAME_MAX];
	int in_unit = unit_of(pid, unit, e), same = same_namespaces(pid, 0, &differs);

	if (in_unit < 0)
		return in_unit;
	if (same <= 0 && (!in_unit || same_namespaces(pid, PRIVATE, &differs) <= 0))
		return err_set(e, -EXDEV,
			"process %d has another %s than the agent, so it could not be started "
			"again as it is",
			(int)pid, strcmp(differs, "root") ? "namespace" : "root folder");
	if (json_object_set_new(server, "walled", json_boolean(same <= 0)) ||
		(in_unit && json_object_set_new(server, "unit", json_string(unit))))
		return -ENOMEM;
	return 0;
}

int server_learn(pid_t pid, json_t **out, struct err *e)
{
	char exe[PATH_MAX], cwd[PATH_MAX];
	auto_json json_t *s = NULL, *place = json_object();
	uint64_t ticks;
	pid_t same[2];
	int rc;

	if (pid <= 1 || pid == getpid() || proc_start_time(pid, &ticks) ||
		procfs_link(pid, "exe", exe) || procfs_link(pid, "cwd", cwd))
		rc = err_set(e, -ESRCH, "there is no process %d that could be a server", (int)pid);
	else if ((rc = place ? learn_place(pid, place, e) : -ENOMEM))
		rc = rc == -ENOMEM ? err_errno(e, rc, "cannot describe process %d", (int)pid) : rc;
	else if (access(exe, X_OK) < 0)
		rc = err_errno(e, -errno, "process %d could not be started again: its program '%s'",
			(int)pid, exe);
	else if (!(s = learn_process(pid, ticks, exe, cwd)) || learn_user(pid, s) ||
		learn_starter(pid, s) || json_object_update(s, place))
		rc = err_set(e, -ESRCH, "cannot learn how process %d was started", (int)pid);
	else
		rc = check_limits(s, pid, e);
	if (!rc && server_find_patiently(s, same, 2) != 1)
		rc = err_set(e, -EBUSY,
			"another process has the same program and arguments as process %d",
			(int)pid);
	if (!rc)
		*out = AUTO_TAKE(s);
	return rc;
}
