/* Finds the mount that holds a path, and how to restore it. */
#include "faults/primitives/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "faults/primitives/procfs.h"
#include "harness/base/file.h"

/* Blanks and the like are written in octal: "\040". */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		unsigned c;

		if (*s == '\\' && sscanf(s + 1, "%3o", &c) == 1) {
			*out++ = (char)c;
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
}

static bool read_line(const char *line, struct mounted *m)
{
	const char *dash = strstr(line, " - ");

	if (!dash ||
		sscanf(line, "%*s %*s %u:%u %255s %4095s %255s", &m->major, &m->minor, m->root,
			m->point, m->options) != 5 ||
		sscanf(dash, " - %63s %4095s %511s", m->type, m->source, m->super) != 3)
		return false;
	unescape(m->root);
	unescape(m->point);
	unescape(m->source);
	return true;
}

int mounted_at(const char *path, struct mounted *out, struct err *e)
{
	auto_free char *text = NULL;
	char real[PATH_MAX];
	struct mounted m;
	size_t best = 0;
	int rc;

	if (!realpath(path, real))
		return err_errno(e, -errno, "cannot look at '%s'", path);
	rc = file_read("/proc/self/mountinfo", &text, NULL, e);
	if (rc)
		return rc;
	/* Of mounts over one another the last is the one that is seen. */
	PROCFS_EACH_LINE(line, text)
	{
		size_t n;

		if (!read_line(line, &m))
			continue;
		n = strlen(m.point);
		if (strncmp(real, m.point, n) || (n > 1 && real[n] && real[n] != '/') || n < best)
			continue;
		best = n;
		*out = m;
	}
	return best ? 0 : err_set(e, -ENOENT, "'%s' lies on no mount", path);
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (!p[n] || p[n] == ','))
			return true;
	return false;
}

bool mounted_readonly(const struct mounted *m)
{
	return has_word(m->options, "ro") || has_word(m->super, "ro") ||
		has_word(m->super, "emergency_ro");
}

unsigned long mounted_flags(const struct mounted *m, char data[512])
{
	static const struct {
		const char *word;
		unsigned long flag;
	} flags[] = {
		{"ro", MS_RDONLY},
		{"nosuid", MS_NOSUID},
		{"nodev", MS_NODEV},
		{"noexec", MS_NOEXEC},
		{"noatime", MS_NOATIME},
		{"nodiratime", MS_NODIRATIME},
		{"relatime", MS_RELATIME},
		{"sync", MS_SYNCHRONOUS},
		{"dirsync", MS_DIRSYNC},
		{"mand", MS_MANDLOCK},
		{"lazytime", MS_LAZYTIME},
	};
	static const char *const not_options[] = {"rw", "ro", "seclabel", "emergency_ro",
		"shutdown", "sync", "dirsync", "mand", "lazytime"};
	char copy[512], *word, *save = NULL;
	unsigned long all = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (has_word(m->options, flags[i].word) || has_word(m->super, flags[i].word))
			all |= flags[i].flag;
	*data = '\0';
	snprintf(copy, sizeof(copy), "%s", m->super);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool skip = false;

		for (size_t i = 0; i < sizeof(not_options) / sizeof(not_options[0]); i++)
			skip = skip || !strcmp(word, not_options[i]);
		if (skip)
			continue;
		if (*data)
			strcat(data, ",");
		strcat(data, word);
	}
	return all;
}
