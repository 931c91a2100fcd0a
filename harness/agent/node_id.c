#include "harness/agent/node_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/file.h"

static int link_read(const char *path, char *buf, size_t size, struct err *e)
{
	ssize_t n = readlink(path, buf, size - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot read '%s'", path);
	buf[n] = '\0';
	return 0;
}

int node_id_read(struct node_id *id, struct err *e)
{
	struct node_id got;
	char *text;
	int rc = file_read("/proc/sys/kernel/random/boot_id", &text, NULL, e);

	if (rc)
		return rc;
	snprintf(got.boot_id, sizeof(got.boot_id), "%.36s", text);
	free(text);
	rc = link_read("/proc/self/ns/net", got.net, sizeof(got.net), e);
	if (!rc)
		rc = link_read("/proc/self/ns/pid", got.pid, sizeof(got.pid), e);
	if (!rc)
		*id = got;
	return rc;
}
