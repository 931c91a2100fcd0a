/* libFuzzer entry of the reader of inventories. What it accepts has hosts with unique names and
 * addresses. There is no ssh to ask here, so an inventory without ssh_config = "none" is
 * refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/nodes/inventory.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	setenv("PATH", "/nowhere", 1);
	return 0;
}

static void look_at(const struct inventory *inv)
{
	if (!inv->n_hosts || !inv->fs_type)
		abort();
	for (size_t i = 0; i < inv->n_hosts; i++) {
		const struct host *h = &inv->hosts[i];

		if (!*h->ssh.name || !h->ssh.address || !h->address || h->ssh.port > 65535 ||
			h->service_port > 65535)
			abort();
		for (size_t k = 0; k < i; k++)
			if (!strcmp(h->ssh.name, inv->hosts[k].ssh.name))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct inventory *inv = NULL;
	struct err e = {""};
	int fd = memfd_create("inventory", MFD_CLOEXEC), rc;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd_write_all(fd, data, size))
		abort();
	rc = inventory_load(path, &inv, &e);
	if (rc > 0 || (rc && (!*e.text || inv)))
		abort();
	if (!rc)
		look_at(inv);
	inventory_free(inv);
	close(fd);
	return 0;
}
