/* Reads the state of the whole node: interfaces, the storage's device, processors, pressure,
 * memory. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "diag/capture/sampler/sampler.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"

static bool read_numbers(const char *path, unsigned *major, unsigned *minor)
{
	auto_free char *text = NULL;

	return file_read(path, &text, NULL, NULL) == 0 && sscanf(text, "%u:%u", major, minor) == 2;
}

/* The only device below this one; false: none or several. */
static bool only_slave(unsigned *major, unsigned *minor)
{
	char path[320];
	struct dirent *d;
	unsigned n = 0, found[2];
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/slaves", *major, *minor);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		if (*d->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/block/%s/dev", d->d_name);
		if (++n > 1 || !read_numbers(path, &found[0], &found[1]))
			n = 2;
	}
	if (dir)
		closedir(dir);
	if (n != 1)
		return false;
	*major = found[0];
	*minor = found[1];
	return true;
}

/* A partition's folder is inside its disk's. */
static void find_drive(struct disk_device *d)
{
	enum { DEPTH = 8 }; /* of devices on devices */
	char path[64];

	d->drive_major = d->major;
	d->drive_minor = d->minor;
	for (int i = 0; i < DEPTH && only_slave(&d->drive_major, &d->drive_minor); i++)
		;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", d->drive_major,
		d->drive_minor);
	if (access(path, F_OK) == 0) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", d->drive_major,
			d->drive_minor);
		read_numbers(path, &d->drive_major, &d->drive_minor);
	}
}

int disk_find(const char *path, struct disk_device *out, struct err *why)
{
	char *mounts = NULL, source[4096];
	struct disk_device d = {.there = true};
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(why, -ENODEV, "cannot look at '%s' (%s)", path, strerror(errno));
	if (S_ISBLK(st.st_mode))
		st.st_dev = st.st_rdev;
	d.major = major(st.st_dev);
	d.minor = minor(st.st_dev);
	/* btrfs and others use virtual device numbers; their device is found in mountinfo. */
	if (!d.major) {
		bool named = file_read("/proc/self/mountinfo", &mounts, NULL, NULL) == 0 &&
			text_mount_source(mounts, d.major, d.minor, source, sizeof(source));

		free(mounts);
		if (!named || *source != '/' || stat(source, &st) < 0 || !S_ISBLK(st.st_mode))
			return err_set(why, -ENODEV, "'%s' is not on a block device", path);
		d.major = major(st.st_rdev);
		d.minor = minor(st.st_rdev);
	}
	find_drive(&d);
	*out = d;
	return 0;
}

/* Of the control group that is the node (version 2), else of the machine. */
static void read_pressure(
	const struct cgroup_place *group, const char *what, enum reading r, struct thing *node)
{
	char name[32];

	snprintf(name, sizeof(name), group->version ? "%s.pressure" : "%s", what);
	group_read_pressure(group->version ? group->own : "/proc/pressure", name, r, node);
}

static void read_memory(const struct group *g, struct thing *node)
{
	auto_free char *info = NULL, *faults = NULL;
	uint64_t kib = UINT64_MAX / 1024, dirty, going;

	if (file_read("/proc/meminfo", &info, NULL, NULL) == 0) {
		text_named(info, "MemAvailable", &kib);
		if (text_named(info, "Dirty", &dirty) && text_named(info, "Writeback", &going))
			thing_set(node, READING_MEMORY_UNWRITTEN, (dirty + going) * 1024);
	}
	if (group_read_memory(g, kib * 1024, node))
		return;
	if (info)
		text_meminfo(info, node);
	if (file_read("/proc/vmstat", &faults, NULL, NULL) == 0)
		text_faults(faults, "", node);
}

void node_read(const struct disk_device *d, struct group *g, struct sampler_snapshot *s)
{
	static const struct cgroup_place none;
	auto_free char *net = NULL, *disks = NULL, *processors = NULL;
	struct thing node = {.kind = THING_NODE}, *t;

	if (file_read("/proc/net/dev", &net, NULL, NULL) == 0)
		text_net_dev(net, s);
	if (d->there && (t = snapshot_add(s, THING_DISK, 0)) &&
		file_read("/proc/diskstats", &disks, NULL, NULL) == 0) {
		text_diskstats(disks, d->major, d->minor, t);
		text_drive(disks, d->drive_major, d->drive_minor, t);
	}
	file_read("/proc/stat", &processors, NULL, NULL);
	if (!group_read_cpu(g, s, &node) && processors)
		text_cpus(processors, s);
	if (processors)
		text_steal(processors, &node);
	read_pressure(&g->cpu, "cpu", READING_CPU_PRESSURE, &node);
	read_pressure(&none, "io", READING_IO_PRESSURE, &node);
	read_pressure(&g->memory, "memory", READING_MEMORY_PRESSURE, &node);
	read_memory(g, &node);
	t = snapshot_add(s, THING_NODE, 0);
	if (t)
		*t = node;
}
