/* 'culprit lab build': lab_up starts it to build the lab, in its own mount namespace. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

#define STEP_S 60 /* longest that any step may take */
#define NODES_MAX (3 * LAB_MAX_OF_A_ROLE)

struct build {
	struct lab_options o;
	struct child node[NODES_MAX], disk[LAB_MAX_OF_A_ROLE], net;
	int loop[LAB_MAX_OF_A_ROLE][2]; /* storage, spare */
	dev_t spare[LAB_MAX_OF_A_ROLE];
};

/* For ci/tests/lab/lab_kill.t: CULPRIT_LAB_DIE_AT=WHO@STAGE kills 'up' or the builder ("build")
 * with SIGKILL at this stage. */
static void stage(const char *name)
{
	const char *at = getenv("CULPRIT_LAB_DIE_AT"), *sep = at ? strchr(at, '@') : NULL;

	if (!sep || strcmp(sep + 1, name))
		return;
	kill(strncmp(at, "up@", 3) ? getpid() : getppid(), SIGKILL);
	for (;;)
		pause();
}

/* Unmounts what belongs to other programs (removable disks, FUSE) in the lab's mount namespace, so
 * that they can unmount it while the lab is up. */
static int drop_foreign_mounts(const char *dir, struct err *e)
{
	static const char *const below[] = {"/tmp/", "/run/", "/mnt/", "/media/", "/srv/"};
	char *text = NULL, **targets = NULL, *line, *rest;
	size_t n = 0;
	int rc = file_read("/proc/self/mountinfo", &text, NULL, e);

	if (rc)
		return rc;
	targets = alloc_zero(strlen(text) / 10 + 1, sizeof(*targets));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *target = line;
		size_t len;

		for (int field = 0; field < 4 && target; field++) {
			target = strchr(target, ' ');
			target = target ? target + 1 : NULL;
		}
		if (!target)
			continue;
		target[strcspn(target, " ")] = '\0';
		len = strlen(target);
		if (!strncmp(dir, target, len) && (dir[len] == '/' || !dir[len]))
			continue;
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
			if (!strncmp(target, below[i], strlen(below[i])))
				targets[n++] = target;
	}
	while (n)
		umount2(targets[--n], MNT_DETACH);
	free(targets);
	free(text);
	return 0;
}

static int private_mounts(const char *dir, struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(e, -errno, "cannot make a mount namespace");
	/* A slave sees the host's unmounts; the host sees no mount of the lab. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_errno(e, -errno, "cannot make the lab's mounts private");
	return drop_foreign_mounts(dir, e);
}

static int make_folders(const struct lab_options *o, struct err *e)
{
	static const char *const folders[] = {"disk", "log", "net", "node"};
	char path[PATH_MAX + 64];
	int rc = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !rc; i++) {
		snprintf(path, sizeof(path), "%s/%s", o->dir, folders[i]);
		rc = file_mkdirs(path, 0755, e);
	}
	for (unsigned i = 0; i < lab_node_count(o) && !rc; i++) {
		struct lab_node n = lab_node_at(o, i);

		snprintf(path, sizeof(path), "%s/log/%s", o->dir, n.name);
		rc = file_mkdirs(path, 0755, e);
		snprintf(path, sizeof(path), "%s/disk/%s", o->dir, n.name);
		if (!rc && n.role == ROLE_SERVER)
			rc = file_mkdirs(path, 0700, e);
	}
	return rc;
}

static int start_disks(struct build *b, struct err *e)
{
	char path[PATH_MAX + 64];
	int rc = 0;

	for (unsigned i = 0; i < b->o.servers && !rc; i++) {
		struct lab_node n = lab_node_at(&b->o, i);

		snprintf(path, sizeof(path), "%s/log/%s/disk.log", b->o.dir, n.name);
		rc = child_start(&b->disk[i], b->o.dir, "disk", n.name, 0, NULL, path, e);
	}
	if (!rc)
		rc = child_wait_ready(b->disk, b->o.servers, STEP_S, e);
	stage("disks");
	for (unsigned i = 0; i < b->o.servers && !rc; i++) {
		static const char *const part[] = {"storage", "spare"};
		struct stat st;

		for (int p = 0; p < 2 && !rc; p++) {
			snprintf(path, sizeof(path), "%s/disk/%s/%s", b->o.dir,
				lab_node_at(&b->o, i).name, part[p]);
			rc = loop_attach(path, &b->loop[i][p], e);
		}
		if (!rc && !fstat(b->loop[i][1], &st))
			b->spare[i] = st.st_rdev;
	}
	stage("loops");
	return rc;
}

static int start_nodes(struct build *b, struct err *e)
{
	char path[PATH_MAX + 64];
	int rc;

	snprintf(path, sizeof(path), "%s/log/switch.log", b->o.dir);
	rc = child_start(&b->net, b->o.dir, "switch", NULL, CLONE_NEWNET, NULL, path, e);
	for (unsigned i = 0; i < lab_node_count(&b->o) && !rc; i++) {
		struct lab_node n = lab_node_at(&b->o, i);
		int fds[] = {-1, -1, -1};

		if (n.role == ROLE_SERVER) {
			fds[0] = b->loop[i][0];
			fds[1] = b->loop[i][1];
		}
		snprintf(path, sizeof(path), "%s/log/%s/init.log", b->o.dir, n.name);
		rc = child_start(&b->node[i], b->o.dir, "node", n.name,
			CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS, fds, path, e);
	}
	/* Now the nodes hold the loop devices, which detach when the nodes end. */
	for (unsigned i = 0; i < b->o.servers; i++)
		for (int p = 0; p < 2; p++)
			if (b->loop[i][p] >= 0) {
				close(b->loop[i][p]);
				b->loop[i][p] = -1;
			}
	stage("nodes");
	if (!rc)
		rc = network_links(&b->o, b->net.pid, b->node, e);
	stage("links");
	return rc;
}

/* Waits until this machine receives the greeting of the node's sshd. */
static int greet(const struct lab_node *n, double deadline, struct err *e)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(22)};

	inet_pton(AF_INET, n->address, &to.sin_addr);
	for (;;) {
		struct timeval limit = {.tv_sec = 5};
		char hello[8] = "";
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool fine;

		if (fd < 0)
			return err_errno(e, -errno, "cannot make a socket");
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		fine = !connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
			recv(fd, hello, 4, MSG_WAITALL) == 4 && !memcmp(hello, "SSH-", 4);
		close(fd);
		if (fine)
			return 0;
		if (clock_mono_s() > deadline)
			return err_set(e, -ETIMEDOUT, "sshd of %s does not answer on %s", n->name,
				n->address);
		usleep(10000);
	}
}

/* Lets the children go on, and waits until each is ready. */
static int step(struct child *c, size_t n, struct err *e)
{
	int rc = child_go(c, n, e);

	return rc ? rc : child_wait_ready(c, n, STEP_S, e);
}

static int commit(struct child *c, size_t n, struct err *e)
{
	int rc = child_go(c, n, e);

	/* The child's only answer is to close its end, once it no longer dies with the builder. */
	for (size_t i = 0; i < n && !rc; i++) {
		struct pollfd p = {.fd = c[i].sock};

		if (poll(&p, 1, STEP_S * 1000) <= 0)
			rc = err_set(e, -ETIMEDOUT, "%s does not take over", c[i].name);
	}
	return rc;
}

static int build(struct build *b, struct err *e)
{
	const struct lab_options *o = &b->o;
	unsigned nodes = lab_node_count(o);
	struct child all[NODES_MAX + LAB_MAX_OF_A_ROLE + 1];
	double deadline;
	size_t n = 0;
	int rc;

	stage("start");
	rc = private_mounts(o->dir, e);
	if (!rc)
		rc = make_folders(o, e);
	if (!rc)
		rc = keys_make(o, e);
	if (!rc)
		rc = gluster_write_volfiles(o, e);
	stage("files");
	if (!rc)
		rc = start_disks(b, e);
	if (!rc)
		rc = start_nodes(b, e);
	if (rc)
		return rc;
	rc = step(&b->net, 1, e);
	stage("switch");
	if (!rc)
		rc = step(b->node, nodes, e);
	stage("servers");
	if (!rc)
		rc = step(b->node + o->servers, o->clients, e);
	stage("clients");
	deadline = clock_mono_s() + STEP_S;
	for (unsigned i = 0; i < nodes && !rc; i++) {
		struct lab_node node = lab_node_at(o, i);

		rc = greet(&node, deadline, e);
	}
	if (!rc)
		rc = state_inventory(o, b->spare, e);
	stage("inventory");
	if (!rc)
		rc = commit(b->disk, o->servers, e);
	stage("speed");
	if (!rc)
		rc = commit(b->node, nodes, e);
	if (!rc)
		rc = commit(&b->net, 1, e);
	stage("commit");
	if (rc)
		return rc;
	memcpy(all, b->node, nodes * sizeof(*all));
	n = nodes;
	memcpy(all + n, b->disk, o->servers * sizeof(*all));
	n += o->servers;
	all[n++] = b->net;
	rc = state_save(o, all, n, e);
	stage("state");
	return rc;
}

int lab_build_main(const char *dir)
{
	struct build *b = alloc_zero(1, sizeof(*b));
	struct err e;
	int rc;

	child_begin(LAB_CONTROL_FD);
	for (int i = 0; i < LAB_MAX_OF_A_ROLE; i++)
		b->loop[i][0] = b->loop[i][1] = -1;
	rc = lab_options_load(dir, &b->o, &e);
	if (!rc)
		rc = build(b, &e);
	if (rc)
		child_fail(LAB_CONTROL_FD, &e);
	else
		child_say(LAB_CONTROL_FD, "ready");
	free(b);
	return rc ? 1 : 0;
}
