/* Attaches modelled disks to loop devices with two partitions. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

/* A loop device forgets its partitions at the last close only with PARTSCAN, and only with it older
 * kernels let it have any. */
enum { FLAGS = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO | LO_FLAGS_PARTSCAN };

static int lab_loop_attach(const char *backing)
{
	int file = child_try(
		open(backing, O_RDWR | O_DIRECT | O_CLOEXEC), "cannot open '%s'", backing);
	int control = child_try(
		open("/dev/loop-control", O_RDWR | O_CLOEXEC), "cannot open '/dev/loop-control'");
	int dev = -1, rc = -1;

	/* If another program takes the free device first, try the next one. */
	for (int tries = 0; tries < 64 && rc < 0; tries++) {
		struct loop_config config = {
			.fd = (uint32_t)file,
			.info.lo_flags = FLAGS,
		};
		int number = child_try(ioctl(control, LOOP_CTL_GET_FREE), "no free loop device");

		if (dev >= 0)
			close(dev);
		dev = open(lab_path("/dev", "loop%d", number).s, O_RDWR | O_CLOEXEC);
		rc = dev < 0 ? -1 : ioctl(dev, LOOP_CONFIGURE, &config);
		if (rc < 0 && errno != EBUSY)
			break;
	}
	child_try(rc, "cannot attach '%s' to a loop device", backing);
	close(file);
	close(control);
	return dev;
}

/* The name that the kernel gives a block device: "loop0p1". */
static struct lab_path kernel_name(dev_t dev)
{
	struct lab_path link = lab_path("/sys/dev/block", "%u:%u", major(dev), minor(dev));
	char target[PATH_MAX];
	ssize_t n = child_try(
		(int)readlink(link.s, target, sizeof(target) - 1), "cannot look at '%s'", link.s);

	target[n] = '\0';
	return lab_path("/dev", "%s", basename(target));
}

/* devtmpfs makes the partition's file and removes it; where it does not run, this does. */
static int open_partition(const char *disk, int number)
{
	struct lab_path path = lab_path("/dev", "%sp%d", disk, number);
	struct lab_path numbers = lab_path("/sys/class/block", "%sp%d/dev", disk, number);
	auto_free char *text = NULL;
	unsigned major, minor;
	bool made;
	int fd;

	child_must(file_read(numbers.s, &text, NULL, &child_err));
	child_try(
		sscanf(text, "%u:%u", &major, &minor) == 2 ? 0 : -1, "cannot read '%s'", numbers.s);
	made = !mknod(path.s, S_IFBLK | 0600, makedev(major, minor));
	fd = open(path.s, O_RDWR | O_CLOEXEC);
	if (made)
		unlink(path.s);
	return child_try(fd, "cannot open '%s'", path.s);
}

void loop_attach(const char *backing, const uint64_t sizes[2], int parts[2])
{
	int disk = lab_loop_attach(backing);
	struct stat st;
	uint64_t start = 0;

	child_try(fstat(disk, &st), "cannot look at a loop device");
	for (int i = 0; i < 2; i++) {
		struct blkpg_partition part = {
			.start = (long long)start, .length = (long long)sizes[i], .pno = i + 1};
		struct blkpg_ioctl_arg arg = {
			.op = BLKPG_ADD_PARTITION, .datalen = sizeof(part), .data = &part};

		child_try(ioctl(disk, BLKPG, &arg), "cannot partition a loop device");
		parts[i] = open_partition(basename(kernel_name(st.st_rdev).s), i + 1);
		start += sizes[i];
	}
	close(disk);
}

struct lab_path loop_path(int part)
{
	struct stat st;

	child_try(fstat(part, &st), "cannot look at a loop device");
	return kernel_name(st.st_rdev);
}

int loop_sweep(const char *dir, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;
	size_t n = strlen(dir);

	for (;;) {
		char left[32] = "", *backing;
		glob_t loops;

		if (glob("/sys/block/loop*/loop/backing_file", 0, NULL, &loops))
			return 0;
		for (size_t i = 0; i < loops.gl_pathc; i++) {
			int fd = -1;

			if (file_read(loops.gl_pathv[i], &backing, NULL, NULL))
				continue;
			if (!strncmp(backing, dir, n) && backing[n] == '/') {
				sscanf(loops.gl_pathv[i], "/sys/block/%31[^/]", left);
				if (clock_mono_s() > deadline)
					fd = open(lab_path("/dev", "%s", left).s,
						O_RDONLY | O_CLOEXEC);
			}
			free(backing);
			if (fd >= 0) {
				ioctl(fd, LOOP_CLR_FD);
				close(fd);
			}
		}
		globfree(&loops);
		if (!*left)
			return 0;
		if (clock_mono_s() > deadline + 5)
			return err_set(e, -EBUSY,
				"loop device '%s' of the lab in '%s' does not detach", left, dir);
		usleep(5000);
	}
}
