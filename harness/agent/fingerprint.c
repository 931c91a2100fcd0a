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

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* A list of strings, sorted and each once. New reference; NULL: no memory. */
static json_t *sorted(const json_t *list)
{
	size_t n = json_array_size(list);
	const char **text = calloc(n + 1, sizeof(*text));
	json_t *out = text ? json_array() : NULL;

	for (size_t i = 0; out && i < n; i++)
		text[i] = json_string_value(json_array_get(list, i));
	if (out)
		qsort(text, n, sizeof(*text), by_text);
	for (size_t i = 0; out && i < n; i++)
		if (!i || strcmp(text[i], text[i - 1]))
			json_array_append_new(out, json_string(text[i]));
	free(text);
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

/* The first line of a file below /sys; "" if there is none. */
static void sys_line(const char *path, char *buf, size_t size)
{
	char *text;

	*buf = '\0';
	if (file_read(path, &text, NULL, NULL))
		return;
	snprintf(buf, size, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
}

static int tagged(json_t *list, struct err *e)
{
	pid_t *pids;
	int n = proc_find_tagged(PROCESS_TAG, "", true, &pids);

	if (n < 0)
		return err_errno(e, n, "cannot look for tagged processes");
	for (int i = 0; i < n; i++) {
		const char *tag;
		size_t size;
		char *env;

		if (procfs_read(pids[i], "environ", &env, &size))
			continue;
		tag = procfs_variable(env, size, PROCESS_TAG);
		add(list, "%d %s", (int)pids[i], tag ? tag : "");
		free(env);
	}
	free(pids);
	return 0;
}

/* Errors that the file system has recorded since it was last checked. */
static void ext4_errors(const char *device, char *buf, size_t size)
{
	char path[128], count[32];

	snprintf(path, sizeof(path), "/sys/fs/ext4/%.64s/errors_count", device);
	sys_line(path, count, sizeof(count));
	snprintf(buf, size, *count && strcmp(count, "0") ? " errors=%.16s" : "", count);
}

/* "POINT TYPE SOURCE OPTIONS STATE" of each line of mountinfo. OPTIONS are the mount's. STATE is
 * the file system's: only there does one show that has made itself read-only. */
static int mounts(json_t *list, struct err *e)
{
	char *text, *line, *save = NULL;
	int rc = file_read("/proc/self/mountinfo", &text, NULL, e);

	if (rc)
		return rc;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *part[5] = {NULL}, errors[32] = "", *dash = strstr(line, " - "), *slash;

		/* Point and options; type, source and state. */
		if (dash && sscanf(line, "%*s %*s %*s %*s %ms %ms", &part[0], &part[1]) == 2 &&
			sscanf(dash, " - %ms %ms %ms", &part[2], &part[3], &part[4]) == 3) {
			slash = strrchr(part[3], '/');
			if (!strcmp(part[2], "ext4"))
				ext4_errors(slash ? slash + 1 : part[3], errors, sizeof(errors));
			add(list, "%s %s %s %s %s%s", part[0], part[2], part[3], part[1], part[4],
				errors);
		}
		for (int i = 0; i < 5; i++)
			free(part[i]);
	}
	free(text);
	return 0;
}

/* "NAME BYTES" and a loop's file, of each block device in /dev that is set up. /dev is this node's
 * own, while /sys may be shared with other nodes (the lab). */
static int block_devices(json_t *list, struct err *e)
{
	DIR *dir = opendir("/dev");
	struct dirent *d;

	if (!dir)
		return err_errno(e, -errno, "cannot list '/dev'");
	while ((d = readdir(dir))) {
		char sys[128], path[192], bytes[32], ro[8], backing[PATH_MAX];
		unsigned long long sectors;
		struct stat st;

		if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISBLK(st.st_mode))
			continue;
		snprintf(sys, sizeof(sys), "/sys/dev/block/%u:%u", major(st.st_rdev),
			minor(st.st_rdev));
		snprintf(path, sizeof(path), "%s/size", sys);
		sys_line(path, bytes, sizeof(bytes));
		sectors = strtoull(bytes, NULL, 10);
		/* A loop device that is not set up. */
		if (!sectors)
			continue;
		snprintf(path, sizeof(path), "%s/ro", sys);
		sys_line(path, ro, sizeof(ro));
		snprintf(path, sizeof(path), "%s/loop/backing_file", sys);
		sys_line(path, backing, sizeof(backing));
		add(list, "%s %llu%s%s%s", d->d_name, sectors * 512, *ro == '1' ? " ro" : "",
			*backing ? " " : "", backing);
	}
	closedir(dir);
	return 0;
}

/* TCP ports in state LISTEN. The kernel lists these before all other sockets, of which there may be
 * many. */
static void listening(const char *path, const char *name, json_t *list)
{
	FILE *f = fopen(path, "re");
	char line[512], address[64], state[4];
	unsigned port;

	/* Without IPv6 there is no such file. The first line is a heading. */
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %63[0-9A-F]:%x %*s %3s", address, &port, state) != 3)
			continue;
		if (strcmp(state, TCP_LISTEN))
			break;
		add(list, "%s %s port %u", name, address, port);
	}
	if (f)
		fclose(f);
}

static long id_of(pid_t pid, const char *name)
{
	char *text, *at;
	long id = -1;

	if (procfs_read(pid, "status", &text, NULL))
		return -1;
	at = strstr(text, name);
	if (at)
		id = strtol(at + strlen(name), NULL, 10);
	free(text);
	return id;
}

/* A process by what it is, not by its number: a server that was started again as it was is the
 * same. "gone" if it is not there. */
static void add_service(json_t *list, pid_t pid)
{
	char folder[PATH_MAX], *command = NULL, *limits;
	size_t size = 0;
	json_t *all;

	if (limits_read(pid, &all, NULL)) {
		add(list, "gone");
		return;
	}
	procfs_read(pid, "cmdline", &command, &size);
	for (size_t i = 0; i + 1 < size; i++)
		if (!command[i])
			command[i] = ' ';
	procfs_link(pid, "cwd", folder);
	limits = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	add(list, "%s%.2047s; user %ld, group %ld, in %s; limits %s",
		signal_is_stopped(pid) ? "stopped: " : "", command ? command : "",
		id_of(pid, "\nUid:"), id_of(pid, "\nGid:"), folder, limits ? limits : "?");
	free(command);
	free(limits);
	json_decref(all);
}

enum part { NFT, PROCESSES, JOURNALS, MOUNTS, BLOCK, SOCKETS, SERVICES, N_PARTS };

int op_fingerprint(struct agent *a, json_t *id, json_t *args, struct err *e)
{
	static const char *const names[] = {[NFT] = "nft",
		[PROCESSES] = "processes",
		[JOURNALS] = "journals",
		[MOUNTS] = "mounts",
		[BLOCK] = "block_devices",
		[SOCKETS] = "sockets",
		[SERVICES] = "services"};
	json_t *parts[N_PARTS] = {NULL}, *result = json_object(), *value;
	int rc = result ? 0 : -ENOMEM;
	size_t i;

	for (i = PROCESSES; i < N_PARTS && !rc; i++)
		rc = (parts[i] = json_array()) ? 0 : -ENOMEM;
	if (rc) {
		err_errno(e, rc, "cannot take a fingerprint");
		goto out;
	}
	rc = packets_tables(&parts[NFT], e);
	if (!rc)
		rc = tagged(parts[PROCESSES], e);
	if (!rc)
		rc = journal_list(a->state, a->session, parts[JOURNALS], e);
	if (!rc)
		rc = mounts(parts[MOUNTS], e);
	if (!rc)
		rc = block_devices(parts[BLOCK], e);
	if (rc)
		goto out;
	listening("/proc/net/tcp", "tcp", parts[SOCKETS]);
	listening("/proc/net/tcp6", "tcp6", parts[SOCKETS]);
	json_array_foreach(json_object_get(args, "pids"), i, value)
	{
		add_service(parts[SERVICES], (pid_t)json_integer_value(value));
	}
	for (i = 0; i < N_PARTS && !rc; i++)
		rc = json_object_set_new(result, names[i], sorted(parts[i]));
	if (rc)
		rc = err_errno(e, -ENOMEM, "cannot take a fingerprint");
	else
		agent_answer(a, id, json_incref(result));
out:
	for (i = 0; i < N_PARTS; i++)
		json_decref(parts[i]);
	json_decref(result);
	return rc;
}
