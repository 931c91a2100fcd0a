/* Identifies a node and its boot. */
#include "harness/agent/node_id.h"

#include <stdio.h>
#include <unistd.h>

#include "faults/primitives/procfs.h"

int node_id_read(struct node_id *id, struct err *e)
{
	char net[PATH_MAX], pid[PATH_MAX];
	int rc = procfs_line(
		"/proc/sys/kernel/random/boot_id", id->boot_id, sizeof(id->boot_id), e);

	if (rc)
		return rc;
	rc = procfs_link(getpid(), "ns/net", net) ?: procfs_link(getpid(), "ns/pid", pid);
	if (rc)
		return err_errno(e, rc, "cannot read this process's namespaces");
	snprintf(id->net, sizeof(id->net), "%.39s", net);
	snprintf(id->pid, sizeof(id->pid), "%.39s", pid);
	return 0;
}
