/* libFuzzer entry of the reader of scenarios. Each scenario that is accepted must give a plan. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/scenario/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario *s = NULL;
	struct plan *p = NULL;
	struct err e = {""};
	int fd = memfd_create("scenario", MFD_CLOEXEC), rc;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd_write_all(fd, data, size))
		abort();
	rc = scenario_load(path, &s, &e);
	if (rc > 0 || (rc && (!*e.text || s)))
		abort();
	/* Large plans only take time. */
	if (!rc && s->repeats < 100 && s->training_repeats < 100) {
		rc = plan_new(s, 4, 1, NULL, &p, &e);
		if (rc ? !*e.text : !p->n)
			abort();
		plan_free(p);
	}
	scenario_free(s);
	close(fd);
	return 0;
}
