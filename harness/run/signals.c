/* Turns signals into requests to stop the run. */
#include "harness/run/signals.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/run/cluster.h"
#include "harness/nodes/node.h"

static volatile sig_atomic_t signals;
static struct nodeset *interrupted_set;
static int event_fd;

/* Async-signal-safe. Never waits for a reader of stderr. */
static _Noreturn void die(int signo)
{
	static const char text[] = "\nculprit: killed by the third signal; "
				   "each node's guard undoes what is left there\n";
	struct pollfd p = {.fd = 2, .events = POLLOUT};
	sigset_t set;

	if (poll(&p, 1, 0) == 1 && write(2, text, sizeof(text) - 1) < 0)
		errno = 0;
	signal(signo, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signo);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(signo);
	_exit(128 + signo);
}

/* May run on several threads at once. */
static void on_signal(int signo)
{
	const uint64_t one = 1;
	int saved = errno;

	if (__atomic_add_fetch(&signals, 1, __ATOMIC_SEQ_CST) > 2)
		die(signo);
	if (event_fd > 0 && write(event_fd, &one, sizeof(one)) < 0)
		errno = saved;
	if (interrupted_set)
		nodeset_interrupt(interrupted_set);
	errno = saved;
}

volatile sig_atomic_t *signals_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		event_fd = 0;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (signal(SIGHUP, SIG_IGN) != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	return &signals;
}

int signals_fd(void)
{
	return event_fd;
}

void signals_interrupt(struct nodeset *set)
{
	interrupted_set = set;
}

int signals_connect(struct cluster *c, struct err *e)
{
	int rc;

	c->interrupt_fd = signals_fd();
	rc = cluster_connect(c, e);
	if (!rc)
		signals_interrupt(c->set);
	return rc;
}

int signals_interrupted(struct err *e)
{
	return err_blame(e, ERR_INTERRUPTED, err_set(e, -EINTR, "interrupted"));
}

void signals_nap(void)
{
	struct pollfd p = {.fd = event_fd, .events = POLLIN};

	if (!signals)
		poll(&p, p.fd > 0, 1000);
}
