/* 'culprit lab build': lab_up starts it to build the lab, in its own mount namespace. */
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"
#include "harness/lab/recipe.h"

#define STEP_S 240 /* longest that any step may take */

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
static void drop_foreign_mounts(const char *dir)
{
	static const char *const below[] = {"/tmp/", "/run/", "/mnt/", "/media/", "/srv/"};
	char *text, *line, *rest, target[PATH_MAX];

	child_must(file_read("/proc/self/mountinfo", &text, NULL, &child_err));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		size_t len;

		if (sscanf(line, "%*s %*s %*s %*s %4095s", target) != 1)
			continue;
		len = strlen(target);
		if (!strncmp(dir, target, len) && (dir[len] == '/' || !dir[len]))
			continue;
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
			if (!strncmp(target, below[i], strlen(below[i])))
				umount2(target, MNT_DETACH);
	}
	free(text);
}

static void private_mounts(const char *dir)
{
	child_try(unshare(CLONE_NEWNS), "cannot make a mount namespace");
	/* A slave sees the host's unmounts; the host sees no mount of the lab. */
	child_try(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL),
		"cannot make the lab's mounts private");
	drop_foreign_mounts(dir);
}

static void make_folders(const struct lab_options *o)
{
	static const char *const folders[] = {"disk", "log", "net", "node"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		child_must(file_mkdirs(lab_path(o->dir, "%s", folders[i]).s, 0755, &child_err));
	lab_each(n, o, lab_node_count(o)) {
		child_must(file_mkdirs(lab_path(o->dir, "log/%s", n.name).s, 0755, &child_err));
		if (n.role == ROLE_SERVER)
			child_must(file_mkdirs(
				lab_path(o->dir, "disk/%s", n.name).s, 0700, &child_err));
	}
}

/* All children: nodes, disks and the switch. */
static struct child all[(3 + 1) * LAB_MAX_OF_A_ROLE + LAB_MAX_MANAGERS + 1];
#define N_ALL (sizeof(all) / sizeof(all[0]))

/* Waits until these children are ready, while none of the others fails. */
static void await(struct child *c, size_t n)
{
	child_must(child_wait_ready(c, n, all, N_ALL, STEP_S, &child_err));
}

static void build_step(struct child *c, size_t n)
{
	child_go(c, n);
	await(c, n);
}

static void commit(struct child *c, size_t n)
{
	child_go(c, n);
	/* The child's only answer is to close its end, once it no longer dies with the builder. */
	for (size_t i = 0; i < n; i++) {
		struct pollfd p = {.fd = c[i].sock};

		if (poll(&p, 1, STEP_S * 1000) <= 0)
			child_die("%s does not take over", c[i].name);
	}
}

static void start_disks(const struct lab_options *o, struct child *disks, int (*loops)[2])
{
	const uint64_t sizes[] = {(uint64_t)o->storage_bytes, (uint64_t)o->spare_bytes};

	lab_each(n, o, o->servers) {
		child_must(child_start(&disks[n.i], o->dir, "disk", n.name, 0, NULL,
			lab_path(o->dir, "log/%s/disk.log", n.name), &child_err));
	}
	await(disks, o->servers);
	stage("disks");
	lab_each(n, o, o->servers) {
		loop_attach(lab_path(o->dir, "disk/%s/disk", n.name).s, sizes, loops[n.i]);
	}
	stage("loops");
}

static void start_nodes(const struct lab_options *o, struct child *bridge, struct child *nodes,
	const int (*loops)[2])
{
	child_must(child_start(bridge, o->dir, "switch", NULL, CLONE_NEWNET, NULL,
		lab_path(o->dir, "log/switch.log"), &child_err));
	lab_each(n, o, lab_node_count(o)) {
		child_must(child_start(&nodes[n.i], o->dir, "node", n.name,
			CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS,
			n.role == ROLE_SERVER ? loops[n.i] : NULL,
			lab_path(o->dir, "log/%s/init.log", n.name), &child_err));
	}
	network_links(o, bridge->pid, nodes);
	stage("links");
}

/* Waits until this machine receives the greeting of the node's sshd. */
static void greet(const struct lab_node *n, double deadline)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(22)};
	struct timeval limit = {.tv_sec = 5};

	inet_pton(AF_INET, n->address, &to.sin_addr);
	for (;;) {
		char hello[4];
		bool fine;
		int fd = child_try(
			socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "cannot make a socket");

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		fine = !connect(fd, (struct sockaddr *)&to, sizeof(to)) &&
			recv(fd, hello, 4, MSG_WAITALL) == 4 && !memcmp(hello, "SSH-", 4);
		close(fd);
		if (fine)
			return;
		await(NULL, 0);
		if (clock_mono_s() > deadline)
			child_die("sshd of %s does not answer on %s", n->name, n->address);
		usleep(10000);
	}
}

void build_main(const struct lab_options *o)
{
	unsigned n = lab_node_count(o);
	struct child *nodes = all, *clients = nodes + o->servers, *outsiders = clients + o->clients,
		     *managers = outsiders + o->outsiders, *disks = nodes + n,
		     *bridge = disks + o->servers;
	int loops[LAB_MAX_OF_A_ROLE][2]; /* storage, spare */
	struct recipe *recipe;
	double deadline;

	for (size_t i = 0; i < N_ALL; i++)
		all[i].sock = -1;
	stage("start");
	child_must(recipe_open(o, &recipe, &child_err));
	private_mounts(o->dir);
	make_folders(o);
	keys_make(o);
	stage("files");
	groups_make(o);
	stage("groups");
	start_disks(o, disks, loops);
	start_nodes(o, bridge, nodes, loops);
	build_step(bridge, 1);
	stage("switch");
	build_step(nodes, n);
	stage("nodes");
	build_step(managers, o->managers);
	build_step(nodes, o->servers);
	stage("servers");
	build_step(clients, o->clients);
	build_step(outsiders, o->outsiders);
	stage("clients");
	deadline = clock_mono_s() + STEP_S;
	lab_each(node, o, n)
		greet(&node, deadline);
	state_inventory(o, recipe, loops);
	recipe_free(recipe);
	stage("inventory");
	commit(disks, o->servers);
	stage("speed");
	commit(nodes, n);
	commit(bridge, 1);
	stage("commit");
	state_save(o, all, n + o->servers + 1);
	stage("state");
	child_ready();
}
