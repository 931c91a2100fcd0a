/* Finds control groups of version 1 and 2, and their limits. */
#include "harness/base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"

const char *cgroup_controller_name(enum cgroup_controller c)
{
	static const char *const names[] = {"cpu", "cpuacct", "memory"};

	return c < CGROUP_CONTROLLERS ? names[c] : c == CGROUP_IO ? "io" : NULL;
}

/* The name in a hierarchy of version 1. */
static const char *first_name(const char *controller)
{
	return controller && !strcmp(controller, "io") ? "blkio" : controller;
}

/* Is 'word' in 'list', which ends at 'end' or NUL and is separated by 'apart'? */
static bool listed(const char *list, const char *end, const char *word, const char *apart)
{
	const size_t n = strlen(word);

	for (const char *at = list; *at && at < end;) {
		size_t length = strcspn(at, apart);

		if (length == n && !memcmp(at, word, n))
			return true;
		at += length + (at[length] != '\0');
	}
	return false;
}

/* Copies a field of mountinfo, in which blanks and backslashes are octal ("\040"). Returns false
 * if it is too long. */
static bool field(const char *at, char *out, size_t size)
{
	size_t n = 0;

	for (; *at && *at != ' ' && *at != '\n'; n++) {
		unsigned code;

		if (n + 1 >= size)
			return false;
		if (*at == '\\' && sscanf(at + 1, "%3o", &code) == 1 && code && code < 256) {
			out[n] = (char)code;
			at += 4;
		} else {
			out[n] = *at++;
		}
	}
	out[n] = '\0';
	return n > 0;
}

static const char *skip_fields(const char *at, int n)
{
	while (n-- && *at && *at != '\n') {
		at += strcspn(at, " \n");
		at += *at == ' ';
	}
	return at;
}

/* The path of a process's group in one hierarchy. */
static bool group_path(
	const char *groups, unsigned version, const char *controller, char *out, size_t size)
{
	for (const char *line = groups, *next; *line; line = next) {
		size_t n = strcspn(line, "\n");
		const char *names = memchr(line, ':', n), *path;

		next = line + n + (line[n] != '\0');
		path = names ? memchr(names + 1, ':', (size_t)(line + n - names - 1)) : NULL;
		if (!path || path[1] != '/')
			continue;
		if (version == 2 ? path != names + 1
				 : !listed(names + 1, path, first_name(controller), ",:"))
			continue;
		n = (size_t)(line + n - path - 1);
		if (n >= size)
			return false;
		memcpy(out, path + 1, n);
		out[n] = '\0';
		return strncmp(out, "/..", 3);
	}
	return false;
}

/* Which version of the controller (NULL: version 2 without any) a line of mountinfo mounts: 1, 2,
 * or 0 for none. 'root' receives the mounted group. */
static unsigned mounted(
	const char *line, const char *controller, char root[PATH_MAX], char point[PATH_MAX])
{
	const char *type = strstr(line, " - "), *options, *end = line + strcspn(line, "\n");
	auto_free char *has = NULL;

	if (!type || type > end || !field(skip_fields(line, 3), root, PATH_MAX) ||
		!field(skip_fields(line, 4), point, PATH_MAX))
		return 0;
	type += 3;
	options = skip_fields(type, 2);
	if (!strncmp(type, "cgroup ", 7))
		return controller && listed(options, end, first_name(controller), ", \n") ? 1 : 0;
	if (strncmp(type, "cgroup2 ", 8))
		return 0;
	if (!controller)
		return 2;
	has = cgroup_read(point, "cgroup.controllers");
	return has && listed(has, has + strlen(has), controller, " \n") ? 2 : 0;
}

struct cgroup_place cgroup_place(
	const char *mountinfo, const char *groups, enum cgroup_controller c)
{
	const char *name = cgroup_controller_name(c);
	struct cgroup_place out = {0};
	char root[PATH_MAX], path[PATH_MAX];

	for (const char *line = mountinfo, *next; *line; line = next) {
		size_t n = strcspn(line, "\n");
		const char *below = path;

		next = line + n + (line[n] != '\0');
		out.version = mounted(line, name, root, out.root);
		if (!out.version || !group_path(groups, out.version, name, path, sizeof(path)))
			continue;
		n = strcmp(root, "/") ? strlen(root) : 0;
		if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
			continue;
		below += n;
		if (!strcmp(below, "/"))
			below++;
		if ((size_t)snprintf(out.own, sizeof(out.own), "%s%s", out.root, below) <
			sizeof(out.own))
			return out;
	}
	return (struct cgroup_place){0};
}

struct cgroup_place cgroup_own(enum cgroup_controller c)
{
	auto_free char *mountinfo = NULL, *groups = NULL;

	if (file_read("/proc/self/mountinfo", &mountinfo, NULL, NULL) ||
		file_read("/proc/self/cgroup", &groups, NULL, NULL))
		return (struct cgroup_place){0};
	return cgroup_place(mountinfo, groups, c);
}

char *cgroup_read(const char *group, const char *file)
{
	char path[PATH_MAX + NAME_MAX + 2], *text;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return file_read(path, &text, NULL, NULL) ? NULL : text;
}

int cgroup_put(const char *group, const char *file, const char *fmt, ...)
{
	char path[PATH_MAX + NAME_MAX + 2], text[64];
	va_list ap;
	int fd, n, rc = 0;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	/* Otherwise to set memory.high would wait until memory has been reclaimed (Linux 6.15). */
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (write(fd, text, (size_t)n) != n)
		rc = -errno;
	close(fd);
	return rc;
}

double cgroup_processors(const char *group, unsigned version)
{
	auto_free char *quota = cgroup_read(group, version == 2 ? "cpu.max" : "cpu.cfs_quota_us"),
		       *period = version == 1 ? cgroup_read(group, "cpu.cfs_period_us") : NULL;
	long long allowed, of;
	char rest;

	if (version == 2 ? !quota || sscanf(quota, "%lld %lld%c", &allowed, &of, &rest) < 2
			 : !quota || !period || sscanf(quota, "%lld", &allowed) != 1 ||
				sscanf(period, "%lld", &of) != 1)
		return 0;
	return allowed > 0 && of > 0 ? (double)allowed / (double)of : 0;
}

uint64_t cgroup_memory(const char *group, unsigned version)
{
	auto_free char *text = cgroup_read(
		group, version == 2 ? "memory.max" : "memory.limit_in_bytes");
	uint64_t bytes;

	if (!text || *text < '0' || *text > '9' || sscanf(text, "%" SCNu64, &bytes) != 1)
		return 0;
	/* Version 1 reports "no limit" as the largest number of whole pages. */
	return bytes < INT64_MAX / 2 ? bytes : 0;
}

bool cgroup_limited(struct cgroup_place *place, enum cgroup_controller c)
{
	const size_t top = strlen(place->root);

	if (!place->version)
		return false;
	for (;;) {
		char *slash;

		if (c == CGROUP_MEMORY ? cgroup_memory(place->own, place->version) > 0
				       : cgroup_processors(place->own, place->version) > 0)
			return true;
		slash = strlen(place->own) > top ? strrchr(place->own, '/') : NULL;
		if (!slash || (size_t)(slash - place->own) < top)
			return false;
		*slash = '\0';
	}
}
