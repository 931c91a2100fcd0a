#include "harness/agent/node_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"
#include "harness/base/file.h"

int node_id_read(struct node_id *id, struct err *e)
{
	char *boot, net[PATH_MAX], pid[PATH_MAX];
	int rc = file_read("/proc/sys/kernel/random/boot_id", &boot, NULL, e);

	if (rc)
		return rc;
	rc = procfs_link(getpid(), "ns/net", net);
	if (!rc)
		rc = procfs_link(getpid(), "ns/pid", pid);
	if (rc) {
		err_errno(e, rc, "cannot read this process's namespaces");
	} else {
		snprintf(id->boot_id, sizeof(id->boot_id), "%.36s", boot);
		snprintf(id->net, sizeof(id->net), "%.39s", net);
		snprintf(id->pid, sizeof(id->pid), "%.39s", pid);
	}
	free(boot);
	return rc;
}
