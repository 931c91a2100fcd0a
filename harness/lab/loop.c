#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

int loop_attach(const char *backing, int *fd, struct err *e)
{
	int file = -1, control = -1, dev = -1, rc = 0;

	file = open(backing, O_RDWR | O_DIRECT | O_CLOEXEC);
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (file < 0 || control < 0) {
		rc = err_errno(
			e, -errno, "cannot open '%s'", file < 0 ? backing : "/dev/loop-control");
		goto out;
	}
	/* If another program takes the free device first, try the next one. */
	for (int tries = 0; tries < 64; tries++) {
		struct loop_config config = {
			.fd = (uint32_t)file,
			.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
		};
		int number = ioctl(control, LOOP_CTL_GET_FREE);
		char path[32];

		if (number < 0) {
			rc = err_errno(e, -errno, "no free loop device");
			goto out;
		}
		snprintf(path, sizeof(path), "/dev/loop%d", number);
		dev = open(path, O_RDWR | O_CLOEXEC);
		if (dev >= 0 && !ioctl(dev, LOOP_CONFIGURE, &config)) {
			*fd = dev;
			rc = 0;
			goto out;
		}
		rc = -errno;
		if (dev >= 0)
			close(dev);
		dev = -1;
		if (rc != -EBUSY)
			break;
	}
	rc = err_errno(e, rc, "cannot attach '%s' to a loop device", backing);
out:
	if (file >= 0)
		close(file);
	if (control >= 0)
		close(control);
	return rc;
}

static bool lies_under(const char *device, const char *dir)
{
	char path[300], *backing = NULL;
	size_t n = strlen(dir);
	bool yes;

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", device);
	if (file_read(path, &backing, NULL, NULL))
		return false;
	yes = !strncmp(backing, dir, n) && backing[n] == '/';
	free(backing);
	return yes;
}

int loop_sweep(const char *dir, double timeout_s, struct err *e)
{
	double deadline = clock_mono_s() + timeout_s;

	for (;;) {
		bool late = clock_mono_s() > deadline;
		char left[32] = "";
		struct dirent *d;
		DIR *block = opendir("/sys/block");

		if (!block)
			return err_errno(e, -errno, "cannot open '/sys/block'");
		while ((d = readdir(block))) {
			char path[32];
			int fd;

			if (strncmp(d->d_name, "loop", 4) || !lies_under(d->d_name, dir))
				continue;
			snprintf(left, sizeof(left), "%.20s", d->d_name);
			if (!late)
				continue;
			snprintf(path, sizeof(path), "/dev/%.20s", d->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0) {
				ioctl(fd, LOOP_CLR_FD);
				close(fd);
			}
		}
		closedir(block);
		if (!*left)
			return 0;
		if (clock_mono_s() > deadline + 5)
			return err_set(e, -EBUSY,
				"loop device '%s' of the lab in '%s' does not detach", left, dir);
		usleep(5000);
	}
}
