#include "harness/experiment/cell_key.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/experiment/needs.h"

#define HASH_TIMEOUT_S 60

/* Its arguments are names of programs or absolute paths. It prints a line each: "NAME SHA256". */
static const char hash_programs[] =
	"for p; do f=$(command -v \"$p\") || f=; s=$(sha256sum <\"$f\" 2>/dev/null) || s=unknown; "
	"echo \"$p ${s%% *}\"; done";

/* SHA-256 in hex. */
static int hash(const void *data, size_t size, char hex[65], struct err *e)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (!EVP_Digest(data, size, digest, &len, EVP_sha256(), NULL) || len != 32)
		return err_set(e, -EIO, "cannot hash");
	for (unsigned i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
	return 0;
}

enum { HASH_SIZE = sizeof("sha256:") + 64 };

/* "sha256:..." of the file's text. */
static int hash_file(const char *path, char out[HASH_SIZE], struct err *e)
{
	char *text;
	size_t size;
	int rc = file_read(path, &text, &size, e);

	if (rc)
		return rc;
	rc = hash(text, size, out + strlen(strcpy(out, "sha256:")), e);
	free(text);
	return rc;
}

/* inputs[name] = hash of the file. */
static int add_file(json_t *inputs, const char *name, const char *path, struct err *e)
{
	char text[HASH_SIZE];
	int rc = hash_file(path, text, e);

	if (!rc)
		json_object_set_new(inputs, name, json_string(text));
	return rc;
}

static json_t *texts(char *const *list)
{
	json_t *all = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(all, json_string(list[i]));
	return all;
}

/* inputs["KIND LABEL" and 'suffix'] = v, whose reference is stolen. */
static void set(json_t *inputs, const char *kind, const char *label, const char *suffix, json_t *v)
{
	char name[512];

	snprintf(name, sizeof(name), "%s %s%s", kind, label, suffix);
	json_object_set_new(inputs, name, v);
}

static int add_part(json_t *inputs, const struct part *p, struct err *e)
{
	const char *kind = p->kind == PART_FAULT ? "fault" : "workload";
	json_t *v = json_pack("{s:O}", "params", p->params);
	char text[HASH_SIZE];
	int rc;

	if (p->kind == PART_FAULT) {
		json_object_set_new(v, "victims", json_integer(p->victims));
		json_object_set_new(v, "after_s", json_real(p->after_s));
		json_object_set_new(v, "workloads", texts(p->under));
	}
	set(inputs, kind, p->label, "", v);
	if (!p->path)
		return 0;
	rc = hash_file(p->path, text, e);
	if (!rc)
		set(inputs, kind, p->label, ": file", json_string(text));
	return rc;
}

static void add_tracing(json_t *inputs, const char *role, const struct tracing *t)
{
	json_t *v = tracing_args(t, "", NULL);

	json_object_set_new(v, "one_server", json_boolean(t->one_server));
	json_object_set_new(v, "workloads", texts(t->under));
	set(inputs, role, t->label, "", v);
}

/* Addresses, keys and users are ways to reach a host and no part of what is measured there. */
static void add_hosts(json_t *inputs, const struct cluster *c)
{
	for (size_t i = 0; i < c->n_members; i++) {
		const struct host *h = c->members[i].host;

		set(inputs, "host", h->ssh.name, "",
			json_pack("{s:s, s:s?, s:s?, s:i, s:s?}", "role", role_name(h->role),
				"storage", h->storage, "spare", h->spare, "service_port",
				(int)h->service_port, "mount", h->mount));
	}
	json_object_set_new(inputs, "file system",
		json_pack("{s:s, s:s?}", "type", c->inv->fs_type, "layout", c->inv->layout));
}

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* The agent with its libraries. */
static int add_agent(json_t *inputs, struct err *e)
{
	struct dirent **list = NULL;
	char *dir = NULL, *all = NULL, hex[65];
	json_t *hashes = json_object();
	int rc = home_agent_dir(&dir, e), n = 0;

	if (!rc && (n = scandir(dir, &list, is_file, NULL)) < 0)
		rc = err_errno(e, -errno, "cannot list '%s'", dir);
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		if (!rc)
			rc = add_file(hashes, list[i]->d_name, path, e);
		free(list[i]);
	}
	all = json_dumps(hashes, JSON_COMPACT | JSON_SORT_KEYS);
	if (!rc && all)
		rc = hash(all, strlen(all), hex, e);
	if (!rc)
		json_object_set_new(inputs, "agent", json_sprintf("sha256:%s", hex));
	free(all);
	free(list);
	free(dir);
	json_decref(hashes);
	return rc;
}

static void add_values(
	json_t *inputs, const struct scenario *s, const struct plan *p, const char *only)
{
	json_t *training = json_array();

	json_object_set_new(inputs, "measure",
		json_string(s->measure == MEASURE_RUNTIME ? "runtime" : "verdicts"));
	json_object_set_new(inputs, "seed", json_integer((json_int_t)p->seed));
	json_object_set_new(inputs, "repeats", json_integer(s->repeats));
	if (s->controls != 1)
		json_object_set_new(inputs, "controls", json_integer(s->controls));
	json_object_set_new(inputs, "only", only ? json_string(only) : json_null());
	if (s->measure == MEASURE_RUNTIME) {
		json_object_set_new(inputs, "limit", json_real(s->limit_s));
	} else {
		json_object_set_new(inputs, "phases.before", json_real(s->before_s));
		json_object_set_new(inputs, "phases.fault", json_real(s->fault_s));
		json_object_set_new(inputs, "phases.after", json_real(s->after_s));
	}
	for (size_t i = 0; i < s->n_training; i++)
		json_array_append_new(training, json_string(s->workloads[s->training[i]].label));
	json_object_set_new(inputs, "training.workloads", training);
	json_object_set_new(inputs, "training.repeats", json_integer(s->training_repeats));
	json_object_set_new(inputs, "culprit", json_string(CULPRIT_VERSION));
}

int key_inputs(const struct scenario *s, const struct plan *p, const struct cluster *c,
	const char *only, json_t **inputs, struct err *e)
{
	json_t *all = json_object();
	char sub[128], *path = NULL;
	int rc = 0;

	add_values(all, s, p, only);
	for (size_t i = 0; i < s->n_workloads && !rc; i++)
		rc = add_part(all, &s->workloads[i], e);
	for (size_t i = 0; i < s->n_faults && !rc; i++)
		rc = add_part(all, &s->faults[i], e);
	for (size_t i = 0; i < s->n_tracers; i++)
		add_tracing(all, "tracer", &s->tracers[i]);
	if (s->second.name)
		add_tracing(all, "second tracer", &s->second);
	add_hosts(all, c);
	snprintf(sub, sizeof(sub), "harness/fs/%.64s.lua", c->inv->fs_type);
	if (!rc)
		rc = home_path(sub, &path, e);
	if (!rc)
		rc = add_file(all, "file system's adapter", path, e);
	free(path);
	path = NULL;
	if (!rc)
		rc = home_path(LUAX_PRELUDE, &path, e);
	if (!rc)
		rc = add_file(all, "prelude", path, e);
	if (!rc)
		rc = add_agent(all, e);
	free(path);
	if (rc)
		json_decref(all);
	else
		*inputs = all;
	return rc;
}

int key_detectors(const struct scenario *s, json_t **out, struct err *e)
{
	json_t *all = json_object();
	int rc = 0;

	for (size_t i = 0; i < s->n_detectors && !rc; i++) {
		const char *name = s->detectors[i].name;
		char sub[256], *path = NULL;
		json_t *v = json_object();

		snprintf(sub, sizeof(sub), "diag/detectors/%.200s.lua", name);
		if (strchr(name, '/') || strstr(name, ".lua"))
			path = strdup(name);
		else
			rc = home_path(sub, &path, e);
		if (!rc && path)
			rc = add_file(v, "file", path, e);
		json_object_set(v, "params", s->detectors[i].params);
		json_object_set_new(all, name, v);
		free(path);
	}
	if (rc)
		json_decref(all);
	else
		*out = all;
	return rc;
}

/* The programs that the plan's workloads need (needs.h). New reference. */
static int needed_programs(struct scenario *s, const struct plan *p, json_t **out, struct err *e)
{
	json_t *list = json_array();
	int rc = 0;

	for (size_t w = 0; w < s->n_workloads && !rc; w++)
		for (size_t i = 0; i < p->n; i++) {
			if (p->cells[i].workload != w)
				continue;
			rc = needs_add(s->L, &s->workloads[w], list, e);
			break;
		}
	*out = list;
	return rc;
}

/* cluster_args_fn; 'programs' run on the clients. */
static int hash_args(void *programs, const struct member *m, json_t **args, struct err *e)
{
	json_t *argv = json_pack("[s, s, s, s]", "sh", "-c", hash_programs, "sh");
	json_int_t pid = json_integer_value(json_array_get(m->pids, 0));
	json_t *entry;
	size_t i;

	(void)e;
	if (m->host->role == ROLE_CLIENT)
		json_array_foreach((json_t *)programs, i, entry)
			json_array_append(argv, jget(entry, "program"));
	if (pid)
		json_array_append_new(argv, json_sprintf("/proc/%lld/exe", (long long)pid));
	*args = json_pack("{s:o, s:i}", "argv", argv, "timeout_s", HASH_TIMEOUT_S);
	return 0;
}

static void read_hashes(const char *node, const char *output, json_t *inputs)
{
	char *copy = strdup(output ? output : ""), *save = NULL, on[256];

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		char *hash = strrchr(line, ' ');

		if (!hash)
			continue;
		*hash++ = '\0';
		/* The number of a process is not the same in the next run. */
		line = strncmp(line, "/proc/", 6) ? line : "of the file system";
		snprintf(on, sizeof(on), " on %s", node);
		set(inputs, "program", line, on,
			json_sprintf("%s%s", strlen(hash) == 64 ? "sha256:" : "", hash));
	}
	free(copy);
}

int key_add_programs(
	struct scenario *s, const struct plan *p, struct cluster *c, json_t *inputs, struct err *e)
{
	json_t *programs, *results = NULL, *result;
	const char *name;
	int rc = needed_programs(s, p, &programs, e)
		?: cluster_ask(c, "run", hash_args, programs, HASH_TIMEOUT_S + 10, &results, e);

	json_object_foreach(results, name, result)
		read_hashes(name, jget_text(result, "output"), inputs);
	json_decref(results);
	json_decref(programs);
	return rc;
}

char *key_difference(const json_t *was, const json_t *is)
{
	char *text = NULL;
	size_t size, n = 0;
	FILE *f = open_memstream(&text, &size);
	const size_t flags = JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY |
		JSON_REAL_PRECISION(6);
	const char *name;
	json_t *v;

	if (!f)
		return strdup("?");
	json_object_foreach((json_t *)was, name, v)
	{
		const json_t *now = jget(is, name);
		bool hash = json_is_string(v) && !strncmp(json_string_value(v), "sha256:", 7);

		if (json_equal(v, now))
			continue;
		fprintf(f, "%s%s", n++ ? "; " : "", name);
		if (!now) {
			fputs(" is gone", f);
		} else if (hash) {
			fputs(" has changed", f);
		} else {
			fputs(" is ", f);
			json_dumpf(now, f, flags);
			fputs(", was ", f);
			json_dumpf(v, f, flags);
		}
	}
	json_object_foreach((json_t *)is, name, v) if (!jget(was, name))
		fprintf(f, "%s%s is new", n++ ? "; " : "", name);
	fclose(f);
	if (!n) {
		free(text);
		return NULL;
	}
	return text;
}

int key_refuse(const char *difference, struct err *e)
{
	return err_blame(e, ERR_SCENARIO,
		err_set(e, -EINVAL,
			"it is not the same run any more: %.800s; 'culprit run' begins a new one",
			difference));
}

/* Copies a label's inputs. */
static void take(json_t *into, const json_t *inputs, const char *kind, const char *label)
{
	static const char *const suffixes[] = {"", ": file"};
	char name[512];

	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s %s%s", kind, label, suffixes[i]);
		json_object_set(into, name, jget(inputs, name));
	}
}

static bool is_of_all(const char *name)
{
	return strncmp(name, "workload ", 9) && strncmp(name, "fault ", 6) &&
		strncmp(name, "tracer ", 7) && strncmp(name, "training.", 9) &&
		strcmp(name, "repeats") && strcmp(name, "controls") && strcmp(name, "only");
}

int key_cells(const struct scenario *s, struct plan *p, const struct cluster *c,
	const json_t *inputs, struct err *e)
{
	json_t *common = json_object(), *v;
	const char *name;
	int rc = 0;

	json_object_foreach((json_t *)inputs, name, v) if (is_of_all(name))
		json_object_set(common, name, v);
	for (size_t i = 0; i < p->n && !rc; i++) {
		struct cell *cell = &p->cells[i];
		json_t *own = json_copy(common), *victims = json_array();
		char *text;

		for (size_t k = 0; k < cell->n_victims; k++)
			json_array_append_new(
				victims, json_string(c->servers[cell->victims[k]]->host->ssh.name));
		take(own, inputs, "workload", s->workloads[cell->workload].label);
		if (cell->fault != SIZE_MAX)
			take(own, inputs, "fault", s->faults[cell->fault].label);
		take(own, inputs, "tracer", s->tracers[cell->tracer].label);
		json_object_set_new(own, "cell",
			json_pack("{s:b, s:I, s:o}", "training", cell->training, "repeat",
				(json_int_t)cell->repeat, "victims", victims));
		text = json_dumps(own, JSON_COMPACT | JSON_SORT_KEYS);
		rc = hash(text, strlen(text), cell->key, e);
		free(text);
		json_decref(own);
	}
	json_decref(common);
	return rc;
}
