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

static void client_volfile(const struct lab_options *o, FILE *f)
{
	for (unsigned i = 0; i < o->servers; i++) {
		struct lab_node n = lab_node_at(o, i);

		fprintf(f,
			"volume %s\n  type protocol/client\n  option transport-type tcp\n"
			"  option remote-host %s\n"
			"  option remote-port %d\n  option remote-subvolume brick\n"
			"  option transport.socket.nodelay on\nend-volume\n",
			n.name, n.address, LAB_PORT);
	}
	if (o->layout == LAB_DISPERSE)
		fputs("volume files\n  type cluster/disperse\n  option redundancy 1\n  subvolumes",
			f);
	else
		fputs("volume files\n  type cluster/distribute\n  subvolumes", f);
	for (unsigned i = 0; i < o->servers; i++)
		fprintf(f, " %s", lab_node_at(o, i).name);
	fputs("\nend-volume\n", f);
	if (o->layout == LAB_DISTRIBUTE)
		fputs("volume pieces\n  type features/shard\n  option shard-block-size 4MB\n"
		      "  subvolumes files\nend-volume\n",
			f);
	fprintf(f, "volume fs\n  type debug/io-stats\n  subvolumes %s\nend-volume\n",
		o->layout == LAB_DISTRIBUTE ? "pieces" : "files");
}

int gluster_write_volfiles(const struct lab_options *o, struct err *e)
{
	char brick[sizeof(brick_volfile) + 16], *client = NULL;
	size_t size;
	FILE *f = open_memstream(&client, &size);
	int rc = 0;

	if (!f)
		return err_errno(e, -errno, "cannot write volume files");
	client_volfile(o, f);
	fclose(f);
	snprintf(brick, sizeof(brick), brick_volfile, LAB_PORT);
	for (unsigned i = 0; i < o->servers + o->clients && !rc; i++) {
		bool server = i < o->servers;
		char name[64];

		snprintf(name, sizeof(name), "node/%s/%s.vol", lab_node_at(o, i).name,
			server ? "brick" : "client");
		rc = lab_save(o->dir, name, false, server ? brick : client, e);
	}
	free(client);
	return rc;
}

/* Appends the last error line of a GlusterFS log to the sentence in 'e'. */
static void last_error(const char *log, struct err *e)
{
	char *text = NULL, *last = NULL;

	if (file_read(log, &text, NULL, NULL))
		return;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (line[0] == '[' && (strstr(line, "] E [") || strstr(line, "] C [")))
			last = line;
	if (last) {
		struct err was = *e;

		err_set(e, -EIO, "%.400s; its log: %.500s", was.text, last);
	}
	free(text);
}

int gluster_brick(struct err *e)
{
	/* It forks into the background; the foreground process ends when the brick listens. */
	static const char log[] = LAB_NODE_RUN "/log/brick.log";
	static const char *const argv[] = {
		"glusterfsd", "-f", LAB_NODE_RUN "/brick.vol", "-l", log, NULL};
	int rc = proc_run_ok(argv, 30, NULL, e);

	if (rc)
		last_error(log, e);
	return rc;
}

static bool connected(const char *brick)
{
	char path[128], *text = NULL;
	bool yes;

	snprintf(path, sizeof(path), LAB_MOUNT "/.meta/graphs/active/%s/private", brick);
	if (file_read(path, &text, NULL, NULL))
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

int gluster_client(const struct lab_options *o, const char *name, struct err *e)
{
	static const char log[] = LAB_NODE_RUN "/log/client.log";
	/* With "disable" the requests of one O_DIRECT call go out in parallel, so that a record
	 * reaches all servers at once, as in Kasick et al. 2009. With "enable" they go one after
	 * another, 128 KB at a time. */
	const char *const argv[] = {"glusterfs", "-f", LAB_NODE_RUN "/client.vol", "-l", log,
		o->no_cache ? "--direct-io-mode=enable" : "--direct-io-mode=disable", LAB_MOUNT,
		NULL};
	double deadline = clock_mono_s() + 30;
	int rc;

	rc = proc_run_ok(argv, 30, NULL, e);
	for (unsigned i = 0; i < o->servers && !rc; i++) {
		struct lab_node n = lab_node_at(o, i);

		while (!connected(n.name)) {
			if (clock_mono_s() > deadline) {
				rc = err_set(e, -ETIMEDOUT, "the client is not connected to '%s'",
					n.name);
				break;
			}
			usleep(10000);
		}
	}
	if (!rc)
		rc = try_file(name, e);
	if (rc)
		last_error(log, e);
	return rc;
}
