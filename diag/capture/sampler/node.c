/* What is of the whole node: interfaces, the storage's device, processors, pressure, memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/file.h"

/* A partition's folder lies in its disk's. */
static void whole_disk(struct disk_device *d)
{
	char path[64], *real, *slash, *text;
	unsigned major, minor;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", d->major, d->minor);
	if (access(path, F_OK) < 0)
		return;
	*strrchr(path, '/') = '\0';
	real = realpath(path, NULL);
	slash = real ? strrchr(real, '/') : NULL;
	if (slash) {
		char dev[4200];

		*slash = '\0';
		snprintf(dev, sizeof(dev), "%s/dev", real);
		if (file_read(dev, &text, NULL, NULL) == 0) {
			if (sscanf(text, "%u:%u", &major, &minor) == 2) {
				d->major = major;
				d->minor = minor;
			}
			free(text);
		}
	}
	free(real);
}

int disk_find(const char *path, struct disk_device *out, struct err *why)
{
	char *mounts = NULL, source[4096];
	struct disk_device d = {.there = true};
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(why, -ENODEV, "cannot look at '%s' (%s)", path, strerror(errno));
	d.major = major(st.st_dev);
	d.minor = minor(st.st_dev);
	/* btrfs and others have device numbers of their own making, and say elsewhere what they lie
	 * on. */
	if (!d.major) {
		bool named = file_read("/proc/self/mountinfo", &mounts, NULL, NULL) == 0 &&
			text_mount_source(mounts, d.major, d.minor, source, sizeof(source));

		free(mounts);
		if (!named || *source != '/' || stat(source, &st) < 0 || !S_ISBLK(st.st_mode))
			return err_set(why, -ENODEV, "'%s' lies on no block device", path);
		d.major = major(st.st_rdev);
		d.minor = minor(st.st_rdev);
	}
	whole_disk(&d);
	*out = d;
	return 0;
}

static void read_pressure(const char *path, enum reading r, struct thing *node)
{
	uint64_t us;
	char *text;

	if (file_read(path, &text, NULL, NULL) < 0)
		return;
	if (text_pressure(text, &us))
		thing_set(node, r, us);
	free(text);
}

void node_read(const struct disk_device *d, struct sampler_snapshot *s)
{
	struct thing *t;
	uint64_t kib;
	char *text;

	if (file_read("/proc/net/dev", &text, NULL, NULL) == 0) {
		text_net_dev(text, s);
		free(text);
	}
	if (d->there && (t = snapshot_add(s, THING_DISK, 0)) &&
		file_read("/proc/diskstats", &text, NULL, NULL) == 0) {
		text_diskstats(text, d->major, d->minor, t);
		free(text);
	}
	if (file_read("/proc/stat", &text, NULL, NULL) == 0) {
		text_cpus(text, s);
		free(text);
	}
	t = snapshot_add(s, THING_NODE, 0);
	if (!t)
		return;
	read_pressure("/proc/pressure/cpu", READING_CPU_PRESSURE, t);
	read_pressure("/proc/pressure/io", READING_IO_PRESSURE, t);
	read_pressure("/proc/pressure/memory", READING_MEMORY_PRESSURE, t);
	if (file_read("/proc/meminfo", &text, NULL, NULL) == 0) {
		if (text_available(text, &kib))
			thing_set(t, READING_MEMORY_AVAILABLE, kib);
		free(text);
	}
}
