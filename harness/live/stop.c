/* Ends 'culprit watch' on SIGINT and SIGTERM. */
#include "harness/live/stop.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

volatile sig_atomic_t stop_asked;
static volatile sig_atomic_t at_once;
static const char *volatile to_remove;
static int event_fd = -1;

static void on_signal(int signo)
{
	const uint64_t one = 1;
	int saved = errno;

	(void)signo;
	stop_asked = 1;
	if (at_once) {
		if (to_remove)
			unlink(to_remove);
		_exit(0);
	}
	if (event_fd >= 0 && write(event_fd, &one, sizeof(one)) < 0)
		errno = saved;
	errno = saved;
}

void stop_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

void stop_wait(double s, int fd)
{
	struct pollfd p[2] = {{.fd = event_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	if (!stop_asked && s > 0)
		poll(p, 2, s > 86400 ? 86400 * 1000 : (int)(s * 1000) + 1);
}

void stop_at_once(bool on)
{
	at_once = on;
	/* Handle a signal that arrived just before. */
	if (on && stop_asked)
		on_signal(SIGTERM);
}

void stop_removes(const char *path)
{
	to_remove = path;
}
