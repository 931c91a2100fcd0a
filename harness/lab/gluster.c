#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"
#include "harness/lab/lab_impl.h"

/* The graphs have no cache (read-ahead, io-cache, write-behind) and pass O_DIRECT on to the brick:
 * the disk gets the application's own requests, as with the direct I/O of Kasick et al. 2009. */
static const char brick_volfile[] =
	"volume posix\n  type storage/posix\n  option directory " LAB_STORAGE "\n"
	"end-volume\n"
	"volume locks\n  type features/locks\n  subvolumes posix\nend-volume\n"
	"volume threads\n  type performance/io-threads\n  option thread-count 16\n"
	"  subvolumes locks\nend-volume\n"
	"volume brick\n  type debug/io-stats\n  subvolumes threads\nend-volume\n"
	"volume server\n  type protocol/server\n  option transport-type tcp\n"
	"  option transport.socket.listen-port %d\n  option transport.socket.nodelay on\n"
	"  option auth.addr.brick.allow *\n  subvolumes brick\nend-volume\n";

static void client_volfile(const struct lab_options *o, struct lab_text *t)
{
	bool disperse = o->layout == LAB_DISPERSE;

	lab_each(n, o, o->servers) {
		lab_put(t,
			"volume %s\n  type protocol/client\n  option transport-type tcp\n"
			"  option remote-host %s\n"
			"  option remote-port %d\n  option remote-subvolume brick\n"
			"  option transport.socket.nodelay on\nend-volume\n",
			n.name, n.address, LAB_PORT);
	}
	lab_put(t, "volume files\n  type cluster/%s\n%s  subvolumes", lab_layout_name(o),
		disperse ? "  option redundancy 1\n" : "");
	lab_each(n, o, o->servers)
		lab_put(t, " %s", n.name);
	lab_put(t,
		"\nend-volume\n%svolume fs\n  type debug/io-stats\n  subvolumes %s\nend-volume\n",
		disperse ? ""
			 : "volume pieces\n  type features/shard\n  option shard-block-size 4MB\n"
			   "  subvolumes files\nend-volume\n",
		disperse ? "files" : "pieces");
}

void gluster_write_volfiles(const struct lab_options *o)
{
	struct lab_text brick = {0}, client = {0};

	lab_put(&brick, brick_volfile, LAB_PORT);
	client_volfile(o, &client);
	lab_each(n, o, o->servers + o->clients) {
		bool server = n.i < o->servers;

		lab_save(lab_path(o->dir, "node/%s/%s.vol", n.name, server ? "brick" : "client"),
			0644, server ? brick.s : client.s);
	}
}

/* Dies with the sentence in 'e' and the last error line of GlusterFS's log. */
static void __attribute__((noreturn)) fail(const char *log, const struct err *e)
{
	char *text, *last = NULL;

	if (file_read(log, &text, NULL, NULL))
		child_die("%s", e->text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (line[0] == '[' && (strstr(line, "] E [") || strstr(line, "] C [")))
			last = line;
	child_die("%.400s%s%.500s", e->text, last ? "; its log: " : "", last ? last : "");
}

void gluster_brick(void)
{
	/* It forks into the background; the foreground process ends when the brick listens. */
	static const char log[] = LAB_NODE_RUN "/log/brick.log";
	static const char *const argv[] = {
		"glusterfsd", "-f", LAB_NODE_RUN "/brick.vol", "-l", log, NULL};
	struct err e;

	if (proc_run_ok(argv, 30, NULL, &e))
		fail(log, &e);
}

static bool connected(const char *brick)
{
	char *text;
	bool yes;

	if (file_read(lab_path(LAB_MOUNT "/.meta/graphs/active", "%s/private", brick).s, &text,
		    NULL, NULL))
		return false;
	yes = strstr(text, "connected = 1") != NULL;
	free(text);
	return yes;
}

/* An offset beyond the first piece; "4MB" in a volume file is 4 MiB. */
#define SECOND_PIECE (4 << 20)

/* Writes a file, reads it back and removes it. */
static int try_file(const char *name, struct err *e)
{
	char path[64], text[64], back[64] = "";
	int fd, rc = 0;
	ssize_t n = snprintf(text, sizeof(text), "%s was here", name);

	snprintf(path, sizeof(path), LAB_MOUNT "/.try-%s", name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n || fsync(fd) < 0 ||
		pread(fd, back, (size_t)n, 0) != n)
		rc = err_errno(e, errno ? -errno : -EIO, "cannot write and read '%s'", path);
	else if (strcmp(text, back))
		rc = err_set(e, -EIO, "'%s' does not hold what was written", path);
	/* The first large file makes GlusterFS create its folder for pieces. If several clients do
	 * so at once, all but one may fail: it must not happen in a user's run. */
	for (int i = 0; !rc && pwrite(fd, text, 1, SECOND_PIECE) != 1; i++) {
		if (i == 250)
			rc = err_errno(e, -errno, "cannot write a second piece of '%s'", path);
		usleep(20000);
	}
	if (fd >= 0)
		close(fd);
	if (!rc && unlink(path) < 0)
		rc = err_errno(e, -errno, "cannot remove '%s'", path);
	return rc;
}

void gluster_client(const struct lab_options *o, const char *name)
{
	static const char log[] = LAB_NODE_RUN "/log/client.log";
	/* With "disable" the requests of one O_DIRECT call go out in parallel, so that a record
	 * reaches all servers at once, as in Kasick et al. 2009. With "enable" they go one after
	 * another, 128 KB at a time. */
	const char *const argv[] = {"glusterfs", "-f", LAB_NODE_RUN "/client.vol", "-l", log,
		o->no_cache ? "--direct-io-mode=enable" : "--direct-io-mode=disable", LAB_MOUNT,
		NULL};
	double deadline = clock_mono_s() + 30;
	struct err e;
	int rc = proc_run_ok(argv, 30, NULL, &e);

	lab_each(n, o, o->servers) {
		while (!rc && !connected(n.name)) {
			if (clock_mono_s() > deadline)
				rc = err_set(&e, -ETIMEDOUT, "the client is not connected to '%s'",
					n.name);
			usleep(10000);
		}
	}
	if (rc || try_file(name, &e))
		fail(log, &e);
}
