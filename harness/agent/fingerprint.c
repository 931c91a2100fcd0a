/*
 * The fingerprint: what a fault could leave behind on a node, in a form that stays the same while
 * nothing changes. No counters, no times, no numbers of processes that come back under another one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "faults/primitives/limits.h"
#include "faults/primitives/signal.h"
#include "harness/agent/agent.h"
#include "harness/agent/journal.h"
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

static void add_text(json_t *list, char *text)
{
	if (text)
		json_array_append_new(list, text_json(text, strlen(text)));
	free(text);
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
		char path[64], *env, *p, *text;
		const char *tag = "";
		size_t size;

		snprintf(path, sizeof(path), "/proc/%d/environ", (int)pids[i]);
		if (file_read(path, &env, &size, NULL))
			continue;
		for (p = env; p < env + size; p += strlen(p) + 1)
			if (!strncmp(p, PROCESS_TAG "=", strlen(PROCESS_TAG) + 1))
				tag = p + strlen(PROCESS_TAG) + 1;
		add_text(list, asprintf(&text, "%d %s", (int)pids[i], tag) < 0 ? NULL : text);
		free(env);
	}
	free(pids);
	return 0;
}

/* Errors that the file system itself has on record, until it is checked. */
static void ext4_errors(const char *device, char *buf, size_t size)
{
	char path[128], count[32];

	snprintf(path, sizeof(path), "/sys/fs/ext4/%.64s/errors_count", device);
	sys_line(path, count, sizeof(count));
	snprintf(buf, size, *count && strcmp(count, "0") ? " errors=%.16s" : "", count);
}

/* "POINT TYPE SOURCE OPTIONS STATE" of each line of mountinfo. OPTIONS are the mount's, STATE is
 * the file system's: what made itself read-only shows there alone. */
static int mounts(json_t *list, struct err *e)
{
	char *text, *line, *save = NULL;
	int rc = file_read("/proc/self/mountinfo", &text, NULL, e);

	if (rc)
		return rc;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *point, *options, *type, *source, *state, *all, errors[32] = "",
								     *dash = strstr(line, " - ");

		point = options = type = source = state = NULL;
		if (dash && sscanf(line, "%*s %*s %*s %*s %ms %ms", &point, &options) == 2 &&
			sscanf(dash, " - %ms %ms %ms", &type, &source, &state) == 3) {
			const char *slash = strrchr(source, '/');

			if (!strcmp(type, "ext4"))
				ext4_errors(slash ? slash + 1 : source, errors, sizeof(errors));
			add_text(list,
				asprintf(&all, "%s %s %s %s %s%s", point, type, source, options,
					state, errors) < 0
					? NULL
					: all);
		}
		free(point);
		free(options);
		free(type);
		free(source);
		free(state);
	}
	free(text);
	return 0;
}

/* "NAME BYTES" and what it is made of, of each block device in /dev that holds anything: those are
 * this node's, while /sys may be shared with others. */
static int block_devices(json_t *list, struct err *e)
{
	DIR *dir = opendir("/dev");
	struct dirent *d;

	if (!dir)
		return err_errno(e, -errno, "cannot list '/dev'");
	while ((d = readdir(dir))) {
		char sys[128], path[192], bytes[32], ro[8], backing[PATH_MAX], *text;
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
		add_text(list,
			asprintf(&text, "%s %llu%s%s%s", d->d_name, sectors * 512,
				*ro == '1' ? " ro" : "", *backing ? " " : "", backing) < 0
				? NULL
				: text);
	}
	closedir(dir);
	return 0;
}

/* Ports that are listened at. The kernel lists these before all other sockets, of which there may
 * be many. */
static void listening(const char *path, const char *name, json_t *list)
{
	FILE *f = fopen(path, "re");
	char line[512], address[64], state[4], *text;
	unsigned port;

	/* Without IPv6 there is no such file. The first line is a heading. */
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %63[0-9A-F]:%x %*s %3s", address, &port, state) != 3)
			continue;
		if (strcmp(state, TCP_LISTEN))
			break;
		add_text(list,
			asprintf(&text, "%s %s port %u", name, address, port) < 0 ? NULL : text);
	}
	if (f)
		fclose(f);
}

static void words_of(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64], *text;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	*buf = '\0';
	if (file_read(path, &text, &n, NULL))
		return;
	for (size_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	snprintf(buf, size, "%s", text);
	free(text);
}

static long id_of(pid_t pid, const char *name)
{
	char path[64], *text, *at;
	long id = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (file_read(path, &text, NULL, NULL))
		return -1;
	at = strstr(text, name);
	if (at)
		id = strtol(at + strlen(name), NULL, 10);
	free(text);
	return id;
}

/* A process by what it is, not by its number: one that was stopped and started again as it was is
 * the same. "gone" if it is not there. */
static char *describe_service(pid_t pid)
{
	char command[2048], folder[PATH_MAX], path[64], *text, *limits;
	json_t *all;
	ssize_t n;
	int made;

	if (limits_read(pid, &all, NULL))
		return strdup("gone");
	words_of(pid, "cmdline", command, sizeof(command));
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	n = readlink(path, folder, sizeof(folder) - 1);
	folder[n < 0 ? 0 : n] = '\0';
	limits = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	made = asprintf(&text, "%s%s; user %ld, group %ld, in %s; limits %s",
		signal_is_stopped(pid) ? "stopped: " : "", command, id_of(pid, "\nUid:"),
		id_of(pid, "\nGid:"), folder, limits ? limits : "?");
	free(limits);
	json_decref(all);
	return made < 0 ? NULL : text;
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
		add_text(parts[SERVICES], describe_service((pid_t)json_integer_value(value)));
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
