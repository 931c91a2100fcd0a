/* culprit doctor: the checks of each node. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/units.h"
#include "harness/run/contact.h"
#include "harness/cli/doctor.h"
#include "harness/fs/fs.h"
#include "harness/scenario/gate_limits.h"

/* Can the node do 'what'? LEVEL_BAD: it did not answer. 'reason': what it says, or the error. */
static enum level doctor_node_ask(
	struct node *n, const char *what, double timeout_s, char reason[1024])
{
	json_t *result = NULL;
	struct err e;
	int rc = node_call(n, "check", json_pack("{s:s}", "what", what), timeout_s, &result, &e);
	const char *text = rc < 0 ? e.text : jget_text(result, "reason");
	enum level level = rc < 0 ? LEVEL_BAD : jget_true(result, "able") ? LEVEL_OK : LEVEL_NOTE;

	snprintf(reason, 1024, "%s", text ? text : "");
	json_decref(result);
	return level;
}

static void check_drops(struct report *r, struct node *n)
{
	static const char op[] = "packets.drop";
	char reason[1024];
	enum level level = doctor_node_ask(n, op, 20, reason);

	if (level == LEVEL_BAD)
		doctor_add(r, level, op, "%s", reason);
	else if (level == LEVEL_NOTE)
		doctor_add_brief(r, level, op, "no", "not possible: %s", reason);
	else
		doctor_add_brief(r, level, op, *reason ? reason : "yes", "possible%s%s",
			*reason ? ", by " : "", reason);
}

/* Runs 'argv' (stolen) on the node; returns its output (the caller frees) if it exits with 0. */
static char *run_there(struct node *n, json_t *argv)
{
	json_t *result = NULL;
	char *output = NULL;
	struct err e;

	if (!node_call(n, "run", json_pack("{s:o}", "argv", argv), 40, &result, &e) &&
		!jget_int(result, "exit"))
		output = strdup(jget_text(result, "output"));
	json_decref(result);
	return output;
}

static void check_files(struct report *r, struct node *n)
{
	char local[] = "/tmp/culprit-doctor-XXXXXX", back[64], *one = NULL, *two = NULL;
	struct node_transfer put = {.node = n, .local = local, .remote = "doctor"};
	struct node_transfer fetch = {.node = n, .local = back, .remote = "doctor"};
	struct err e = {""};
	int fd;

	fd = mkstemp(local);
	snprintf(back, sizeof(back), "%s.back", local);
	if (fd < 0 || write(fd, "there and back", 14) != 14)
		doctor_add(r, LEVEL_BAD, "files", "cannot write '%s': %s", local, strerror(errno));
	else if (node_put_all(&put, 1, 20, &e) < 0 || node_fetch_all(&fetch, 1, 20, &e) < 0 ||
		file_read(local, &one, NULL, &e) < 0 || file_read(back, &two, NULL, &e) < 0)
		doctor_add(r, LEVEL_BAD, "files", "%s", e.text);
	else if (strcmp(one, two))
		doctor_add(r, LEVEL_BAD, "files", "a file came back changed");
	else
		doctor_add(r, LEVEL_OK, "files", "a file went there and back");
	free(one);
	free(two);
	if (fd >= 0) {
		close(fd);
		unlink(local);
		unlink(back);
	}
}

static void check_node_space(struct report *r, struct node *n)
{
	char *output = run_there(n, json_pack("[s, s, s]", "df", "-Pk", node_dir(n)));
	char *line = output ? strchr(output, '\n') : NULL, brief[32];
	double kib;

	if (!line || sscanf(line + 1, "%*s %*s %*s %lf", &kib) != 1) {
		doctor_add(r, LEVEL_NOTE, "disk space", "unknown: df does not work there");
	} else {
		bool little = kib * 1024 < DOCTOR_SPACE_LIMIT_BYTES;

		snprintf(brief, sizeof(brief), "%.1f GB", kib * 1024 / 1e9);
		doctor_add_brief(r, little ? LEVEL_NOTE : LEVEL_OK, "disk space", brief,
			"%s free for traces in %s%s", brief, node_dir(n),
			little ? ": they may need more" : "");
	}
	free(output);
}

void doctor_add_clock(struct report *r, double offset_s, double error_s)
{
	char brief[32];

	snprintf(brief, sizeof(brief), fabs(offset_s) < 1 ? "%+.1f ms" : "%+.0f s",
		fabs(offset_s) < 1 ? offset_s * 1e3 : offset_s);
	/* Detectors compare servers second by second; a run with such clocks does not begin. */
	if (fabs(offset_s) - error_s > gate_defaults.clock_s)
		doctor_add_brief(r, LEVEL_NOTE, "clock", brief,
			"%+.3f s from ours, where runs allow %.3f s (gates: 'clock'): let chrony "
			"or ntpd set it",
			offset_s, gate_defaults.clock_s);
	else
		doctor_add_brief(r, LEVEL_OK, "clock", brief,
			"%+.3f ms from ours, to within %.3f ms", offset_s * 1e3, error_s * 1e3);
}

static void check_clock(struct report *r, struct node *n)
{
	double offset_s, error_s;
	struct err e = {""};

	if (node_clock_offset(n, &offset_s, &error_s, &e) < 0)
		doctor_add(r, LEVEL_BAD, "clock", "%s", e.text);
	else
		doctor_add_clock(r, offset_s, error_s);
}

static void check_tracers(struct report *r, struct node *n)
{
	static const char *const names[] = {"ebpf", "ptrace", "strace", "sysstat", "sampler"};
	char brief[64] = "", what[32], reason[1024];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		enum level level;
		size_t used = strlen(brief);

		snprintf(what, sizeof(what), "trace.%s", names[i]);
		level = doctor_node_ask(n, what, 40, reason);
		if (level == LEVEL_BAD)
			doctor_add(r, level, names[i], "%s", reason);
		else if (level == LEVEL_NOTE)
			doctor_add(r, level, names[i], "this tracer does not work there: %s",
				*reason ? reason : "no reason given");
		else
			doctor_add(r, level, names[i], "this tracer works");
		/* The sampler measures no calls. */
		if (level == LEVEL_OK && strcmp(names[i], "sampler"))
			snprintf(brief + used, sizeof(brief) - used, "%s%s", used ? " " : "",
				names[i]);
	}
	if (*brief)
		doctor_add_brief(r, LEVEL_OK, "tracers", brief, "%s", brief);
	else
		doctor_add_brief(r, LEVEL_BAD, "tracers", "none",
			"no tracer works there: nothing can be measured");
}

static void check_path(struct report *r, struct node *n, const char *what, const char *test,
	const char *path, const char *missing)
{
	char *output;

	if (!path)
		return;
	output = run_there(n,
		!strcmp(test, "mountpoint") ? json_pack("[s, s, s]", "mountpoint", "-q", path)
					    : json_pack("[s, s, s]", "test", test, path));
	doctor_add(r, output ? LEVEL_OK : LEVEL_BAD, what, output ? "%s" : missing, path);
	free(output);
}

/* Two names of one folder or device: a file system may name its device by a link. */
static bool same_place(struct node *n, const char *a, const char *b)
{
	char *output;
	bool same = !strcmp(a, b);

	if (same)
		return true;
	output = run_there(n, json_pack("[s, s, s, s]", "test", a, "-ef", b));
	same = output != NULL;
	free(output);
	return same;
}

/* How long a healthy disk may take for 4 KiB under a server's load. */
enum { READ_S = 10 };

/* Does the device that the storage is on, or is, answer? What is cached hides that it does not: a
 * mount and its statvfs outlive their disk. A file system without a device of its own (tmpfs, NFS)
 * has been examined by fs.info. False: a check says why not. */
static bool device_works(
	struct report *r, struct node *n, const char *path, const char *source, const char *number)
{
	/* A container may lack the device's name; the kernel then knows its number. */
	static const char
		script[] = "if [ -b \"$1\" ]; then "
			   "exec dd if=\"$1\" of=/dev/null bs=4096 count=1 iflag=direct; fi; "
			   "[ \"${2%%:*}\" = 0 ] || [ -e \"/sys/dev/block/$2\" ] || "
			   "{ echo 'there is no such device any more'; exit 1; }";
	json_auto_t *result = NULL;
	const char *said = "";
	struct err e;

	if (*source != '/' || !jget_true(node_hello(n), "root"))
		return true;
	if (node_call(n, "run",
		    json_pack("{s:[s, s, s, s, s, s], s:i}", "argv", "sh", "-c", script, "sh",
			    source, number, "timeout_s", READ_S),
		    READ_S + 10, &result, &e)) {
		doctor_add(r, LEVEL_BAD, "storage", "%s, on %s, cannot be read within %d s: %s",
			path, source, READ_S, e.text);
		return false;
	}
	if (!jget_int(result, "exit"))
		return true;
	said = jget_text(result, "output");
	doctor_add(r, LEVEL_BAD, "storage", "%s, on %s, cannot be read: %.*s", path, source,
		(int)strcspn(said, "\n"), said);
	return false;
}

/* The storage is a folder, a file or a block device; '*on' gets what it lies on. False if
 * no server can work there. */
static bool check_storage(
	struct report *r, struct node *n, const char *path, char *on, size_t on_size)
{
	json_auto_t *info = NULL;
	const char *type, *source;
	struct err e;

	if (!path)
		return true;
	if (node_call(n, "fs.info", json_pack("{s:s}", "path", path), 20, &info, &e)) {
		doctor_add(r, LEVEL_BAD, "storage",
			"there is no folder or device %s there: correct 'storage' (%.300s)", path,
			e.text);
		return false;
	}
	type = jget_text(info, "type");
	source = jget_text(info, "source");
	if (!device_works(r, n, path, source, jget_text(info, "device")))
		return false;
	if (jget_true(info, "readonly")) {
		doctor_add(r, LEVEL_BAD, "storage",
			"%s, on %s, is read-only: a server cannot write there, perhaps since its "
			"disk failed (see dmesg)",
			path, source);
		return false;
	}
	if (!strcmp(type, "block device")) {
		char size[32];

		unit_format(UNIT_BYTES, jget_real(info, "size_bytes"), size, sizeof(size));
		doctor_add(r, LEVEL_OK, "storage", "%s, block device %s, %s%s", path,
			jget_text(info, "device"), size, strcmp(path, source) ? ", a link" : "");
		return true;
	}
	doctor_add(r, LEVEL_OK, "storage", "%s", path);
	snprintf(on, on_size, ", on %s (%s)", source, type);
	return true;
}

/* Compares what the file system's adapter finds on the node with the inventory, completed by what
 * was found; then checks the paths. */
static void check_file_system(struct report *r, struct contact *c)
{
	struct host copy = *c->host, *h = &copy;
	bool server = h->role == ROLE_SERVER, works = true;
	json_t *found = NULL, *one;
	char text[300] = "", device[200] = "", all[200];
	struct fs *fs = NULL;
	struct err e;
	size_t i;
	int rc = fs_load(r->inventory->fs_type, &fs, &e);

	if (!rc)
		rc = fs_look(fs, h, c->node, &found, &e);
	if (!rc)
		rc = fs_complete(fs, h, r->inventory->volume, found, &e);
	if (rc < 0)
		doctor_add(r, LEVEL_BAD, "file system", "%s", e.text);
	json_array_foreach(found, i, one) {
		const char *path = jget_text(one, server ? "storage" : "mount");
		const char *wanted = server ? h->storage : h->mount;

		if (!path || !wanted || !same_place(c->node, path, wanted))
			continue;
		fs_describe(one, all, sizeof(all));
		snprintf(text, sizeof(text), "%s, by %s", all, jget_text(one, "how"));
	}
	/* Also if no server is found there: a failed disk may be why. */
	if (server) {
		works = check_storage(r, c->node, h->storage, device, sizeof(device));
	} else if (!rc && h->role == ROLE_CLIENT) {
		check_path(r, c->node, "mount", "mountpoint", h->mount,
			"nothing is mounted on %s there: mount the file system, or correct "
			"'mount'");
	}
	if (!rc && works && h->role != ROLE_OUTSIDER)
		doctor_add(r, *text ? LEVEL_OK : LEVEL_NOTE, "file system", "%s%s",
			*text            ? text
				: server ? "no server process names this storage"
					 : "no mount of this file system is there",
			device);
	if (!rc)
		check_path(r, c->node, "spare", "-e", h->spare,
			"there is no %s there: correct 'spare'");
	/* fs_complete replaced what the inventory left out. */
	if (h->storage != c->host->storage)
		free(h->storage);
	if (h->mount != c->host->mount)
		free(h->mount);
	json_decref(found);
	fs_free(fs);
}

static void check_contact(struct contact *c)
{
	struct report *r = c->visitor;
	const struct host *h = c->host;
	const json_t *hello;
	json_t *left;
	char via[400] = "";
	size_t i;

	r->where = h->ssh.name;
	if (c->rc < 0) {
		doctor_add(r, LEVEL_BAD, "connection", "%s", c->err.text);
		return;
	}
	hello = node_hello(c->node);
	for (i = 0; i < h->ssh.n_jumps; i++)
		snprintf(via + strlen(via), sizeof(via) - strlen(via), "%s%s@%s:%u",
			i ? ", " : " via ", h->ssh.jumps[i].user, h->ssh.jumps[i].address,
			h->ssh.jumps[i].port);
	doctor_add(r, LEVEL_OK, "connection", "%s, %s@%s:%u%s, host key %s", role_name(h->role),
		h->ssh.user ? h->ssh.user : "root", h->ssh.address, h->ssh.port ? h->ssh.port : 22,
		via, h->ssh.host_key ? "as pinned" : "in known_hosts");
	if (jget_true(hello, "root"))
		doctor_add_brief(r, LEVEL_OK, "agent", h->ssh.sudo ? "sudo" : "root",
			"%s, as root%s", jget_text(hello, "version"),
			h->ssh.sudo ? " by sudo" : "");
	else
		doctor_add_brief(r, LEVEL_NOTE, "agent", "not root",
			"%s, not as root: most faults and tracers need root there (become = "
			"\"sudo\")",
			jget_text(hello, "version"));
	json_array_foreach(jget(hello, "unclean"), i, left)
		doctor_add(r, LEVEL_BAD, "left over", "%s", json_string_value(left));
	check_drops(r, c->node);
	check_tracers(r, c->node);
	check_files(r, c->node);
	check_node_space(r, c->node);
	check_clock(r, c->node);
	check_file_system(r, c);
	doctor_fs_node(r, c);
	if (h->role == ROLE_CLIENT)
		doctor_programs(r, c->node);
}

int doctor_nodes(struct report *r, struct err *e)
{
	size_t n = r->inventory->n_hosts;
	struct contact *contacts;
	struct report *reports;
	int rc = contacts_new(r->inventory, &contacts, e);

	if (rc)
		return rc;
	reports = alloc_zero(n, sizeof(*reports));
	for (size_t i = 0; i < n; i++) {
		reports[i] = *r;
		reports[i].checks = json_array();
		contacts[i].visitor = &reports[i];
	}
	contacts_each(contacts, n, check_contact);
	for (size_t i = 0; i < n; i++) {
		json_array_extend(r->checks, reports[i].checks);
		json_decref(reports[i].checks);
		r->bad |= reports[i].bad;
	}
	contacts_free(contacts, n);
	free(reports);
	return 0;
}
