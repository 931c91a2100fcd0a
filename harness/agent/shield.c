/* Protects guard and standby from the OOM killer. */
#include "harness/agent/shield.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/auto.h"

#define SCORE "/proc/self/oom_score_adj"
#define SPARED "-1000"

static char before[16]; /* the score that this process began with; "": not read */

static void put_score(const char *text)
{
	auto_fd int fd = open(SCORE, O_WRONLY | O_CLOEXEC);

	/* -1000 needs CAP_SYS_RESOURCE: an agent that is not root stays as it is. */
	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		return;
}

static void read_score(void)
{
	auto_fd int fd = open(SCORE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, before, sizeof(before) - 1);

	before[n > 0 ? n : 0] = '\0';
}

void shield_raise(void)
{
	if (!*before)
		read_score();
	if (*before)
		put_score(SPARED);
	/* Not MCL_FUTURE: with a limit on locked memory, allocations would fail. */
	mlockall(MCL_CURRENT);
}

void shield_lower(void)
{
	if (*before)
		put_score(before);
}
