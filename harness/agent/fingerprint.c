/*
 * The operation 'fingerprint': what a fault could leave behind on a node, in a form that stays the
 * same while nothing changes. It holds no counters, no times, and no process numbers, since a
 * restarted server comes back under another one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/disk.h"
#include "faults/primitives/group.h"
#include "faults/primitives/limits.h"
#include "faults/primitives/packets.h"
#include "faults/primitives/process.h"
#include "faults/primitives/procfs.h"
#include "faults/primitives/signal.h"
#include "harness/agent/journal.h"
#include "harness/agent/ops.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

#define TCP_LISTEN "0A"

static int fingerprint_by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* A list of strings, sorted and each once. New reference; NULL: no memory. */
static json_t *sorted(const json_t *list)
{
	size_t n = json_array_size(list);
	auto_free const char **text = calloc(n + 1, sizeof(*text));
	json_t *out = text && list ? json_array() : NULL;

	for (size_t i = 0; text && i < n; i++)
		text[i] = json_string_value(json_array_get(list, i));
	if (out)
		qsort(text, n, sizeof(*text), fingerprint_by_text);
	for (size_t i = 0; out && i < n; i++)
		if (!i || strcmp(text[i], text[i - 1]))
			json_array_append_new(out, json_string(text[i]));
	return out;
}

static __attribute__((format(printf, 2, 3))) void add(json_t *list, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0) {
		json_array_append_new(list, text_json(text, strlen(text)));
		free(text);
	}
	va_end(args);
}

static int tagged(json_t *list, struct err *e)
{
	auto_free pid_t *pids = NULL;
	int n = proc_find_tagged(PROCESS_TAG, "", true, &pids);

	if (n < 0)
		return err_errno(e, n, "cannot look for tagged processes");
	for (int i = 0; i < n; i++) {
		auto_free char *env = NULL;
		size_t size;

		if (!procfs_read(pids[i], "environ", &env, &size))
			add(list, "%d %s", (int)pids[i],
				procfs_variable(env, size, PROCESS_TAG) ?: "");
	}
	return 0;
}

/* Errors that the file system has recorded since it was last checked. */
static void ext4_errors(const char *device, char *buf, size_t size)
{
	char path[128], count[32];

	snprintf(path, sizeof(path), "/sys/fs/ext4/%.64s/errors_count", device);
	procfs_line(path, count, sizeof(count), NULL);
	snprintf(buf, size, *count && strcmp(count, "0") ? " errors=%.16s" : "", count);
}

/* "POINT TYPE SOURCE OPTIONS STATE" of each line of mountinfo. OPTIONS are the mount's. STATE is
 * the file system's: only there does one show that has made itself read-only. */
static int mounts(json_t *list, struct err *e)
{
	auto_free char *text = NULL;
	int rc = file_read("/proc/self/mountinfo", &text, NULL, e);

	if (rc)
		return rc;
	PROCFS_EACH_LINE(line, text)
	{
		auto_free char *point = NULL, *options = NULL, *type = NULL, *source = NULL,
			       *state = NULL;
		char errors[32] = "", *dash = strstr(line, " - "), *slash;

		if (!dash || sscanf(line, "%*s %*s %*s %*s %ms %ms", &point, &options) != 2 ||
			sscanf(dash, " - %ms %ms %ms", &type, &source, &state) != 3)
			continue;
		slash = strrchr(source, '/');
		if (!strcmp(type, "ext4"))
			ext4_errors(slash ? slash + 1 : source, errors, sizeof(errors));
		add(list, "%s %s %s %s %s%s", point, type, source, options, state, errors);
	}
	return 0;
}

/* The first line of the file 'name' of a device in 'sys'; "" if there is none. */
static void device_line(const char *sys, const char *name, char *buf, size_t size)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", sys, name);
	procfs_line(path, buf, size, NULL);
}

/* "NAME BYTES" and a loop's file, of each block device in /dev that is set up. /dev is this node's
 * own, while /sys may be shared with other nodes (the lab). */
static int block_devices(json_t *list, struct err *e)
{
	auto_dir DIR *dir = opendir("/dev");
	char modelled[512];
	struct dirent *d;

	if (!dir)
		return err_errno(e, -errno, "cannot list '/dev'");
	disk_fingerprint(modelled, sizeof(modelled));
	if (*modelled)
		add(list, "%s", modelled);
	while ((d = readdir(dir))) {
		char sys[128], sectors[32], ro[8], backing[PATH_MAX];
		struct stat st;

		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISBLK(st.st_mode))
			continue;
		snprintf(sys, sizeof(sys), "/sys/dev/block/%u:%u", major(st.st_rdev),
			minor(st.st_rdev));
		device_line(sys, "size", sectors, sizeof(sectors));
		/* A loop device that is not set up. */
		if (!strtoull(sectors, NULL, 10))
			continue;
		device_line(sys, "ro", ro, sizeof(ro));
		device_line(sys, "loop/backing_file", backing, sizeof(backing));
		add(list, "%s %llu%s%s%s", d->d_name, strtoull(sectors, NULL, 10) * 512,
			*ro == '1' ? " ro" : "", *backing ? " " : "", backing);
	}
	return 0;
}

/* TCP ports in state LISTEN. The kernel lists these before all other sockets, of which there may be
 * many. */
static void listening(const char *path, const char *name, json_t *list)
{
	auto_file FILE *f = fopen(path, "re");
	char line[512], address[64], state[4];
	unsigned port;

	/* Without IPv6 there is no such file. The first line is a heading. */
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %63[0-9A-F]:%x %*s %3s", address, &port, state) != 3)
			continue;
		if (strcmp(state, TCP_LISTEN))
			return;
		add(list, "%s %s port %u", name, address, port);
	}
}

static long id_of(pid_t pid, const char *name)
{
	auto_free char *text = NULL;
	const char *at = procfs_read(pid, "status", &text, NULL) ? NULL : procfs_after(text, name);

	return at ? strtol(at, NULL, 10) : -1;
}

/* " as=SOFT/HARD core=..." */
static char *limit_words(const json_t *all)
{
	char *text = NULL;
	const char *name;
	json_t *pair;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	json_object_foreach((json_t *)all, name, pair) {
		json_int_t soft = jget_int(pair, "soft"), hard = jget_int(pair, "hard");

		if (!f)
			break;
		fprintf(f, " %s=", name);
		fprintf(f, soft == LIMITS_UNLIMITED ? "unlimited" : "%" JSON_INTEGER_FORMAT, soft);
		fprintf(f, hard == LIMITS_UNLIMITED ? "/unlimited" : "/%" JSON_INTEGER_FORMAT,
			hard);
	}
	if (f)
		fclose(f);
	return text;
}

/* A process by what it is, not by its number: a server that was started again as it was is the
 * same. "gone" if it is not there. Values are words NAME=VALUE, so that readers can name the one
 * that has changed. */
static void add_service(json_t *list, pid_t pid)
{
	auto_free char *command = NULL, *limits = NULL, *groups = NULL;
	auto_json json_t *all = NULL;
	char folder[PATH_MAX];
	size_t size = 0;

	if (limits_read(pid, &all, NULL)) {
		add(list, "gone");
		return;
	}
	procfs_read(pid, "cmdline", &command, &size);
	for (size_t i = 0; i + 1 < size; i++)
		if (!command[i])
			command[i] = ' ';
	procfs_link(pid, "cwd", folder);
	limits = limit_words(all);
	procfs_read(pid, "cgroup", &groups, NULL);
	add(list, "%.2047s user=%ld group=%ld folder=%s%s state=%s limited=%s", command ?: "",
		id_of(pid, "\nUid:"), id_of(pid, "\nGid:"), folder, limits ?: "",
		signal_is_stopped(pid) ? "stopped" : "running",
		groups && strstr(groups, "/" GROUP_PREFIX) ? "yes" : "no");
}

int op_fingerprint(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	auto_json json_t *nft = NULL, *processes = json_array(), *journals = json_array(),
			 *mounted = json_array(), *devices = json_array(), *sockets = json_array(),
			 *services = json_array();
	json_t *result, *value;
	size_t i;
	int rc = packets_tables(&nft, e) ?: tagged(processes, e) ?:
		journal_list(a->state, a->session, journals, e) ?: mounts(mounted, e) ?:
		block_devices(devices, e);

	if (rc)
		return rc;
	listening("/proc/net/tcp", "tcp", sockets);
	listening("/proc/net/tcp6", "tcp6", sockets);
	json_array_foreach(jget(args, "pids"), i, value) {
		add_service(services, (pid_t)json_integer_value(value));
	}
	result = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "nft", sorted(nft), "processes",
		sorted(processes), "journals", sorted(journals), "mounts", sorted(mounted),
		"block_devices", sorted(devices), "sockets", sorted(sockets), "services",
		sorted(services));
	if (!result)
		return err_errno(e, -ENOMEM, "cannot take a fingerprint");
	agent_answer(a, id, result);
	return 0;
}
