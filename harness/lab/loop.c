#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

int loop_attach(const char *backing)
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
			.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
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

unsigned loop_number(int fd)
{
	struct stat st;

	child_try(fstat(fd, &st), "cannot look at a loop device");
	return minor(st.st_rdev);
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
