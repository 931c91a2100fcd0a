/* culprit doctor: every function of the file system's Lua file, called as a run calls it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/clock.h"
#include "harness/base/jget.h"
#include "harness/run/contact.h"
#include "harness/cli/doctor.h"
#include "harness/cli/list.h"
#include "harness/run/cluster.h"
#include "harness/fs/fs.h"

enum { PIDS_SHOWN = 6 };

struct subject {
	struct report *report;
	struct node *node;
	struct host host; /* the inventory's, completed */
	struct fs *fs;
	json_t *processes; /* the agent's answer */
	json_t *found;     /* discover's */
};

static bool doctor_fs_has(const struct subject *s, const char *function)
{
	lua_State *L = fs_state(s->fs);
	bool yes = lua_getfield(L, 1, function) == LUA_TFUNCTION;

	lua_settop(L, 1);
	return yes;
}

static void try_discover(struct subject *s)
{
	auto_free char *text = alloc_copy("");
	json_t *one;
	size_t i;

	if (!doctor_fs_has(s, "discover")) {
		doctor_add(s->report, LEVEL_NOTE, "discover",
			"the file system's Lua file has none: the inventory must name every "
			"storage, service_port and mount");
		return;
	}
	json_array_foreach(s->found, i, one) {
		char *so_far = text, here[200];

		fs_describe(one, here, sizeof(here));
		text = alloc_format("%s%s%s", so_far, i ? "; " : "", here);
		free(so_far);
	}
	doctor_add(s->report, i ? LEVEL_OK : LEVEL_NOTE, "discover", "%zu found%s%s", i,
		i ? ": " : "", text);
}

static const char *program_of(const struct subject *s, json_int_t pid)
{
	json_t *p;
	size_t i;

	json_array_foreach(jget(s->processes, "processes"), i, p) {
		if (jget_int(p, "pid") == pid)
			return jget_text(p, "comm");
	}
	return "no such process";
}

static void try_pids(struct subject *s)
{
	const char *function = s->host.role == ROLE_SERVER ? "server_pids" : "client_pids";
	auto_free char *text = alloc_copy("");
	json_auto_t *pids = NULL;
	struct err e;
	json_t *pid;
	size_t i;

	if (fs_pids(s->fs, &s->host, s->processes, &pids, &e)) {
		doctor_add(s->report, LEVEL_BAD, function, "%s", e.text);
		return;
	}
	json_array_foreach(pids, i, pid) {
		char *so_far = text;

		if (i == PIDS_SHOWN)
			break;
		text = alloc_format("%s%s%lld %s", so_far, i ? ", " : "",
			(long long)json_integer_value(pid), program_of(s, json_integer_value(pid)));
		free(so_far);
	}
	i = json_array_size(pids);
	doctor_add(s->report, i ? LEVEL_OK : LEVEL_BAD, function, "%zu process%s%s%s%s", i,
		i == 1 ? "" : "es", i ? ": " : ": start the file system, or correct the function",
		text, i > PIDS_SHOWN ? ", ..." : "");
}

/* Does the text of /proc/net/tcp and tcp6 have a socket that listens on this port? */
static bool listens(const char *text, unsigned port)
{
	char want[24];

	snprintf(want, sizeof(want), ":%04X 0", port);
	for (const char *p = text; (p = strstr(p, want)); p++) {
		const char *remote = p + strlen(want) - 1;

		if (!strncmp(remote + strcspn(remote, " \n"), " 0A ", 4))
			return true;
	}
	return false;
}

static void try_service(struct subject *s)
{
	json_auto_t *result = NULL;
	auto_free char *address = NULL;
	uint16_t port;
	struct err e;

	if (fs_service(s->fs, &s->host, &address, &port, &e)) {
		doctor_add(s->report, LEVEL_BAD, "service", "%s", e.text);
	} else if (!port) {
		doctor_add(s->report, LEVEL_OK, "service",
			"%s, no port: all TCP connections of the server's processes count, but "
			"those to other servers",
			address);
	} else if (node_call(s->node, "run",
			   json_pack("{s:[s, s, s, s, s]}", "argv", "grep", "-h", " 0A ",
				   "/proc/net/tcp", "/proc/net/tcp6"),
			   40, &result, &e)) {
		doctor_add(s->report, LEVEL_BAD, "service", "%s", e.text);
	} else if (listens(jget_text(result, "output"), port)) {
		doctor_add(
			s->report, LEVEL_OK, "service", "%s, port %u: it listens", address, port);
	} else {
		doctor_add(s->report, LEVEL_NOTE, "service",
			"%s, port %u: nothing listens on this port there; connections are "
			"recognised by it, so correct 'service' or 'service_port'",
			address, port);
	}
}

static void try_probe(struct subject *s)
{
	const double start_s = clock_mono_s();
	json_auto_t *result = NULL;
	json_t *argv = NULL;
	struct err e;
	int rc = fs_probe(s->fs, &s->host, &argv, &e);
	double took_s;

	if (!rc && !argv) {
		doctor_add(s->report, LEVEL_NOTE, "probe",
			"the file system's Lua file has none: nothing shows that every server "
			"takes part after a restart");
		return;
	}
	rc = rc
		?: node_call(s->node, "run",
			   json_pack("{s:o, s:i}", "argv", argv, "timeout_s", CLUSTER_PROBE_S),
			   CLUSTER_PROBE_S + 10, &result, &e);
	took_s = clock_mono_s() - start_s;
	if (rc)
		doctor_add(s->report, LEVEL_BAD, "probe", "after %.1f s of %d: %s", took_s,
			CLUSTER_PROBE_S, e.text);
	else if (jget_int(result, "exit"))
		doctor_add(s->report, LEVEL_BAD, "probe",
			"exit code %lld after %.1f s of %d: "
			"%.300s",
			(long long)jget_int(result, "exit"), took_s, CLUSTER_PROBE_S,
			jget_text(result, "output"));
	else
		doctor_add(s->report, LEVEL_OK, "probe",
			"every server takes part; %.2f s, of %d that it has", took_s,
			CLUSTER_PROBE_S);
}

void doctor_fs_node(struct report *r, struct contact *c)
{
	struct subject s = {.report = r, .node = c->node, .host = *c->host};
	struct err e;
	int rc;

	if (s.host.role == ROLE_OUTSIDER)
		return;
	rc = fs_load(r->inventory->fs_type, &s.fs, &e)
		?: node_call(s.node, "processes", NULL, 20, &s.processes, &e)
		?: fs_look(s.fs, &s.host, s.node, &s.found, &e);
	if (rc) {
		doctor_add(r, LEVEL_BAD, "discover", "%s", e.text);
	} else {
		try_discover(&s);
		/* Without the values that are missing, the other functions cannot be called. */
		rc = fs_complete(s.fs, &s.host, r->inventory->volume, s.found, &e);
	}
	if (!rc) {
		try_pids(&s);
		if (s.host.role == ROLE_SERVER)
			try_service(&s);
		else
			try_probe(&s);
	}
	if (s.host.storage != c->host->storage)
		free(s.host.storage);
	if (s.host.mount != c->host->mount)
		free(s.host.mount);
	json_decref(s.processes);
	json_decref(s.found);
	fs_free(s.fs);
}

static void note_list(struct report *r, const json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		doctor_add(r, LEVEL_NOTE, "missing",
			"%s: steps of workloads that need it are left out", json_string_value(v));
	}
}

void doctor_fs(struct report *r)
{
	json_auto_t *list = NULL;
	const json_t *fs, *v;
	const char *fault;
	json_t *why;
	struct err e;

	r->where = "cluster";
	if (list_fs_read(r->inventory->fs_type, &list, &e)) {
		doctor_add(r, LEVEL_BAD, "file system", "%s", e.text);
		return;
	}
	fs = json_array_get(list, 0);
	doctor_add(r, LEVEL_OK, "file system", "%s", jget_text(fs, "summary"));
	v = jget(fs, "empty_storage");
	if (json_is_string(v))
		doctor_add(r, LEVEL_NOTE, "empty_storage",
			"faults that start a server on a small storage are left out: %s",
			json_string_value(v));
	json_object_foreach(jget(fs, "cannot"), fault, why) {
		doctor_add(r, LEVEL_NOTE, "cannot", "fault %s is left out: %s", fault,
			json_string_value(why));
	}
	note_list(r, jget(fs, "missing"));
	if (!json_array_size(jget(fs, "lost_errnos")))
		doctor_add(r, LEVEL_NOTE, "lost_errnos",
			"none: crash-hang then sees only calls that take too long; 'culprit doctor "
			"--learn-errnos' finds them out");
}
