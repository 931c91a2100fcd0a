/*
 * Fixture for tests of servers: a server of ours (ci/tests/helpers/server.c) on an ext4 in a loop
 * device, with folders, links and a file in it.
 */
#ifndef CULPRIT_CI_TESTS_PRIMITIVES_SERVICE_FIXTURE_H
#define CULPRIT_CI_TESTS_PRIMITIVES_SERVICE_FIXTURE_H

#include "ci/tests/agent/agent_peer.h"

static char base[] = "/tmp/culprit-service-test-XXXXXX";
static char helper[PATH_MAX], storage[64];

static inline void run_ok(const char *const *argv)
{
	struct err e;

	if (proc_run_ok(argv, patient_s(60), NULL, &e))
		fail_msg("%s", e.text);
}

#define RUN(...) run_ok((const char *[]){__VA_ARGS__, NULL})

/* Calls 'fn' with each process whose /proc/PID/NAME begins with the string 'text'. */
static inline void each_process(
	const char *name, const char *text, void (*fn)(pid_t pid, void *ctx), void *ctx)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	while ((d = readdir(dir))) {
		char path[300], *is;

		snprintf(path, sizeof(path), "/proc/%s/%s", d->d_name, name);
		if (atoi(d->d_name) <= 0 || file_read(path, &is, NULL, NULL))
			continue;
		if (!strcmp(is, text))
			fn(atoi(d->d_name), ctx);
		free(is);
	}
	closedir(dir);
}

static inline void take_server(pid_t pid, void *found)
{
	uint64_t ticks;

	if (proc_start_time(pid, &ticks))
		return;
	if (*(pid_t *)found)
		fail_msg("the server runs twice");
	*(pid_t *)found = pid;
}

/* The server's pid, 0 if it does not run. */
static inline pid_t server_pid(void)
{
	pid_t found = 0;

	each_process("cmdline", helper, take_server, &found);
	return found;
}

/* Mounts the storage, of 'size', and finds the helper; the server is the caller's to start. */
static inline int storage_setup(void **unused, const char *size)
{
	char exe[PATH_MAX], image[64], *at;

	if (peer_setup(unused) || !realpath(agent_path_, exe) ||
		!(at = strstr(exe, "/agent/culprit-agent")))
		return -1;
	*at = '\0';
	if (snprintf(helper, sizeof(helper), "%s/helpers/server", exe) >= (int)sizeof(helper))
		return -1;
	strcpy(base + strlen(base) - 6, "XXXXXX");
	if (!mkdtemp(base))
		return -1;
	snprintf(storage, sizeof(storage), "%s/storage", base);
	snprintf(image, sizeof(image), "%s/image", base);
	mkdir(storage, 0755);
	RUN("truncate", "-s", size, image);
	RUN("mkfs.ext4", "-q", "-F", image);
	RUN("mount", "-o", "loop,noatime,errors=remount-ro", image, storage);
	RUN("sh", "-c",
		"mkdir -p $0/.meta/aa $0/dir && ln -s ../dir $0/.meta/link && echo 1 >$0/dir/file",
		storage);
	return 0;
}

static inline int service_teardown(void **unused)
{
	pid_t pid = server_pid();

	if (pid) {
		kill(pid, SIGKILL);
		wait_dead(pid);
	}
	for (int i = 0; i < 200 && umount(storage) < 0 && errno == EBUSY; i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	file_remove_tree(base, NULL);
	return peer_teardown(unused);
}

/* True if the storage takes a file; else errno says why. */
static inline bool storage_writable(void)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/probe", storage);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	unlink(path);
	return true;
}

#endif
