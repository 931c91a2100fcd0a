/*
 * Processes with known causality:
 *
 *     causality [-k KIND,...] [-t TIMES] [-w MS] [-n ADDRESS,... -m N] FILE SEED [PROCESSES]
 *               [STEPS] [COUNTER]
 *
 * Draws a schedule from SEED: steps of processes, each an operation on the process's own file (in
 * the current folder), or a message to another process by pipe, Unix socket or TCP, or the receipt
 * of one, whole or in parts, after poll or not. A KIND of message is pipe, unix, tcp (these, if
 * none is given), or, in shared memory, futex (waits in the kernel), spin (looks again and again),
 * nap (looks, and sleeps in between). FILE gets the edges that follow: "P:N Q:M", the N-th
 * operation of process P waits for the M-th of Q; those that others imply are left out. Then it
 * runs the schedule. TIMES gets, of each operation, "P END" in nanoseconds since the epoch.
 * With -w, each message is preceded by so much computing, or by a sleep as long, in turn.
 * With -n it is one of as many instances with the same seed, each on its own node: number N,
 * from 0. Processes are dealt to them in blocks; messages between nodes go by TCP.
 * With COUNTER, a file that grows by a byte in each run, one process makes as many more operations.
 *
 * The edges come from the schedule alone: with all predecessors of each operation written out, and
 * an edge kept if no other predecessor has it among its own.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIPE, UNIX, TCP, FUTEX, SPIN, NAP, KINDS };
enum { MOST = 8, STEPS = 4000, BYTES = 3 };

struct step {
	enum { OPERATION, SEND, RECEIVE } what;
	int process, other, kind;
};

static struct step steps[2 * STEPS];
static int n_steps, processes = 5;
static int out_fd[MOST][MOST][KINDS], in_fd[MOST][MOST][KINDS];
static uint64_t state;
static int kinds[KINDS] = {PIPE, UNIX, TCP}, n_kinds = 3;
/* Messages sent and received in shared memory. */
static atomic_uint (*sent)[MOST][MOST][KINDS];
static int work_ms;
static int64_t (*times)[MOST][STEPS];
static unsigned received[MOST][MOST][KINDS];
static struct in_addr nodes[MOST];
static int n_nodes = 1, me;

/* What an operation, or a message's sender, had before it: of each process so many operations. */
struct before {
	int ops[MOST];
};

static struct before seen[MOST], at[MOST][STEPS + 1];
static struct before flying[MOST][MOST][KINDS][STEPS];
static int first[MOST][MOST][KINDS], last[MOST][MOST][KINDS], done[MOST];

static void die(const char *what)
{
	perror(what);
	exit(99);
}

static unsigned draw(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % n;
}

static void add(int what, int process, int other, int kind)
{
	steps[n_steps++] = (struct step){what, process, other, kind};
}

/* Edges of the operation that begins now. */
static void print_edges(FILE *f, int p)
{
	const struct before *b = &seen[p], *former = &at[p][done[p]];

	for (int q = 0; q < processes; q++) {
		int m = b->ops[q], implied = q == p || m <= former->ops[q];

		for (int r = 0; r < processes && !implied; r++)
			implied = r != q && r != p && b->ops[r] && at[r][b->ops[r]].ops[q] >= m;
		if (!implied)
			fprintf(f, "%d:%d %d:%d\n", p, done[p] + 1, q, m);
	}
}

static void operation(FILE *f, int p)
{
	print_edges(f, p);
	at[p][++done[p]] = seen[p];
	seen[p].ops[p] = done[p];
	add(OPERATION, p, 0, 0);
}

static int node_of(int p)
{
	return p * n_nodes / processes;
}

static void message(int p, int q, int kind)
{
	kind = node_of(p) == node_of(q) ? kind : TCP;
	flying[p][q][kind][last[p][q][kind]++] = seen[p];
	add(SEND, p, q, kind);
}

/* Of any message that is on its way to 'p'. */
static void receipt(int p)
{
	const struct before *b;
	int tries = processes * n_kinds, at_first = (int)draw((unsigned)tries), q, kind;

	do {
		q = at_first % processes;
		kind = kinds[at_first / processes % n_kinds];
		at_first++;
	} while (--tries && first[q][p][kind] == last[q][p][kind]);
	if (first[q][p][kind] == last[q][p][kind])
		return;
	b = &flying[q][p][kind][first[q][p][kind]++];
	for (int i = 0; i < processes; i++)
		if (b->ops[i] > seen[p].ops[i])
			seen[p].ops[i] = b->ops[i];
	add(RECEIVE, p, q, kind);
}

static void schedule(FILE *f, int n)
{
	for (int i = 0; i < n; i++) {
		int p = (int)draw((unsigned)processes), q = (int)draw((unsigned)processes - 1);
		unsigned what = draw(8);

		q += q >= p;
		if (what < 3)
			operation(f, p);
		else if (what < 5)
			message(p, q, kinds[draw((unsigned)n_kinds)]);
		else
			receipt(p);
	}
	for (int p = 0; p < processes; p++)
		operation(f, p);
}

static void pair_tcp(int fd[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (void *)&a, n) || listen(server, 1) ||
		getsockname(server, (void *)&a, &n) || connect(fd[0], (void *)&a, n))
		die("TCP");
	fd[1] = accept(server, NULL, NULL);
	setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(server);
}

static struct sockaddr_in place(int p, int q)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(21000 + p * MOST + q)),
		.sin_addr = nodes[node_of(p)]};
}

static void set_tcp(int p, int q, int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	out_fd[p][q][TCP] = in_fd[p][q][TCP] = fd; /* of this node's, whoever it is */
	out_fd[q][p][TCP] = in_fd[q][p][TCP] = fd;
}

/* The lower process's node listens, the other one connects. */
static void connect_nodes(void)
{
	int server[MOST][MOST];

	for (int p = 0; p < processes; p++)
		for (int q = p + 1; q < processes; q++) {
			struct sockaddr_in a = place(p, q);
			int one = 1;

			if (node_of(p) != me || node_of(q) == me)
				continue;
			server[p][q] = socket(AF_INET, SOCK_STREAM, 0);
			setsockopt(server[p][q], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
			if (bind(server[p][q], (void *)&a, sizeof(a)) || listen(server[p][q], 1))
				die("listen");
		}
	for (int p = 0; p < processes; p++)
		for (int q = p + 1; q < processes; q++) {
			struct sockaddr_in a = place(p, q);
			int tries = 6000, fd;

			if (node_of(p) == me || node_of(q) != me)
				continue;
			for (;; usleep(10000)) {
				fd = socket(AF_INET, SOCK_STREAM, 0);
				if (!connect(fd, (void *)&a, sizeof(a)))
					break;
				if (!--tries)
					die("connect");
				close(fd);
			}
			set_tcp(p, q, fd);
		}
	for (int p = 0; p < processes; p++)
		for (int q = p + 1; q < processes; q++) {
			if (node_of(p) != me || node_of(q) == me)
				continue;
			set_tcp(p, q, accept(server[p][q], NULL, NULL));
			close(server[p][q]);
		}
}

/* Until the others have ended as well: who leaves what he was sent resets the connection. */
static void leave_nodes(void)
{
	char data[256];

	for (int p = 0; p < processes; p++)
		for (int q = 0; q < processes; q++)
			if (node_of(p) == me && node_of(q) != me)
				shutdown(out_fd[p][q][TCP], SHUT_WR);
	for (int p = 0; p < processes; p++)
		for (int q = 0; q < processes; q++)
			while (node_of(p) == me && node_of(q) != me &&
				read(out_fd[p][q][TCP], data, sizeof(data)) > 0)
				;
}

static void connect_all(void)
{
	sent = mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	times = mmap(
		NULL, sizeof(*times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sent == MAP_FAILED || times == MAP_FAILED)
		die("mmap");
	for (int p = 0; p < processes; p++)
		for (int q = 0; q < processes; q++) {
			int fd[2];

			if (p == q || node_of(p) != me || node_of(q) != me)
				continue;
			if (pipe(fd))
				die("pipe");
			out_fd[p][q][0] = fd[1];
			in_fd[p][q][0] = fd[0];
			if (q < p)
				continue; /* sockets go both ways */
			for (int kind = UNIX; kind <= TCP; kind++) {
				if (kind == TCP)
					pair_tcp(fd);
				else if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
					die("socketpair");
				out_fd[p][q][kind] = in_fd[q][p][kind] = fd[0];
				out_fd[q][p][kind] = in_fd[p][q][kind] = fd[1];
			}
		}
}

static void do_send(const struct step *s)
{
	int fd = out_fd[s->process][s->other][s->kind];
	atomic_uint *n = &(*sent)[s->process][s->other][s->kind];
	size_t part = 1 + draw(BYTES);

	if (s->kind >= FUTEX) {
		atomic_fetch_add(n, 1);
		if (s->kind == FUTEX)
			syscall(SYS_futex, n, FUTEX_WAKE, 1, NULL, NULL, 0);
		return;
	}
	if (write(fd, "abc", part) != (ssize_t)part ||
		(part < BYTES && write(fd, "abc", BYTES - part) != (ssize_t)(BYTES - part)))
		die("send");
}

/* Until one more has been sent than was received. */
static void wait_in_memory(const struct step *s)
{
	atomic_uint *n = &(*sent)[s->other][s->process][s->kind];
	unsigned had = received[s->other][s->process][s->kind]++, now;

	while ((now = atomic_load(n)) <= had) {
		if (s->kind == FUTEX)
			syscall(SYS_futex, n, FUTEX_WAIT, now, NULL, NULL, 0);
		else if (s->kind == NAP)
			usleep(500);
		else
			sched_yield();
	}
}

static void do_receive(const struct step *s)
{
	struct pollfd p = {.fd = in_fd[s->other][s->process][s->kind], .events = POLLIN};
	char data[BYTES];
	size_t got = 0;

	if (s->kind >= FUTEX) {
		wait_in_memory(s);
		return;
	}
	while (got < BYTES) {
		size_t want = draw(2) ? BYTES - got : 1;
		ssize_t n;

		if (draw(2) && poll(&p, 1, 60000) != 1)
			die("poll");
		n = s->kind && draw(2) ? recv(p.fd, data, want, 0) : read(p.fd, data, want);
		if (n <= 0)
			die("receive");
		got += (size_t)n;
	}
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Computes, or sleeps, every other time. */
static void work(void)
{
	static int turn;
	clock_t end = clock() + work_ms * (CLOCKS_PER_SEC / 1000);

	if (turn++ % 2)
		usleep((useconds_t)work_ms * 1000);
	else
		while (clock() < end)
			;
}

static void write_times(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	for (int p = 0; p < processes; p++)
		for (int n = 0; n < done[p]; n++)
			fprintf(f, "%d %lld\n", p, (long long)(*times)[p][n]);
	fclose(f);
}

static void play(int p, int twist)
{
	int64_t *end_ns = (*times)[p];
	char name[32];

	state ^= (uint64_t)p * 77777;
	snprintf(name, sizeof(name), "file%d", p);
	for (int i = 0; i < n_steps; i++) {
		if (steps[i].process != p)
			continue;
		if (work_ms && steps[i].what == SEND)
			work();
		if (steps[i].what == SEND) {
			do_send(&steps[i]);
		} else if (steps[i].what == RECEIVE) {
			do_receive(&steps[i]);
		} else {
			(void)!access(name, R_OK);
			*end_ns++ = now_ns();
		}
	}
	for (int i = 0; i < twist; i++)
		(void)!access(name, R_OK);
}

/* "pipe,futex" */
static int choose(char *list)
{
	static const char *const names[KINDS] = {"pipe", "unix", "tcp", "futex", "spin", "nap"};

	n_kinds = 0;
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		int kind = 0;

		while (kind < KINDS && strcmp(word, names[kind]))
			kind++;
		if (kind == KINDS || n_kinds == KINDS)
			return -1;
		kinds[n_kinds++] = kind;
	}
	return n_kinds ? 0 : -1;
}

static int set_nodes(char *list)
{
	n_nodes = 0;
	for (char *word = strtok(list, ","); word; word = strtok(NULL, ","))
		if (n_nodes == MOST || inet_pton(AF_INET, word, &nodes[n_nodes++]) != 1)
			return -1;
	return n_nodes ? 0 : -1;
}

int main(int argc, char **argv)
{
	FILE *f;
	int twist = 0, status, bad = 0;
	const char *times_file = NULL;

	for (; argc > 2 && *argv[1] == '-'; argc -= 2, argv += 2) {
		if (!strcmp(argv[1], "-t"))
			times_file = argv[2];
		else if (!strcmp(argv[1], "-w"))
			work_ms = atoi(argv[2]);
		else if (!strcmp(argv[1], "-m"))
			me = atoi(argv[2]);
		else if (!strcmp(argv[1], "-n") && !set_nodes(argv[2]))
			continue;
		else if (strcmp(argv[1], "-k") || choose(argv[2]))
			return 2;
	}
	if (argc < 3)
		return 2;
	state = 0x9e3779b97f4a7c15 * (strtoull(argv[2], NULL, 10) + 1);
	if (argc > 3)
		processes = atoi(argv[3]);
	if (processes < 2 || processes > MOST || (argc > 4 && atoi(argv[4]) > STEPS - MOST))
		return 2;
	if (argc > 5) {
		f = fopen(argv[5], "a");
		if (!f || fputc('.', f) == EOF || fflush(f))
			die(argv[5]);
		twist = (int)ftell(f);
		fclose(f);
	}
	f = fopen(argv[1], "w");
	if (!f)
		die(argv[1]);
	schedule(f, argc > 4 ? atoi(argv[4]) : 400);
	fclose(f);
	connect_all();
	connect_nodes();
	for (int p = 0; p < processes; p++) {
		pid_t pid = node_of(p) == me ? fork() : 1;

		if (pid < 0)
			die("fork");
		if (!pid) {
			play(p, p == 1 ? twist : 0);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		bad |= status;
	leave_nodes();
	if (times_file)
		write_times(times_file);
	return bad ? 1 : 0;
}
