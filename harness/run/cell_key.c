/* Hashes what a cell depends on, so that only the same experiment is resumed. */
#include "harness/run/cell_key.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/sha256.h"
#include "harness/run/needs.h"
#include "harness/lua/library.h"

#define HASH_TIMEOUT_S 60

/* Its arguments are names of programs or absolute paths. It prints a line each: "NAME SHA256". */
static const char hash_programs[] =
	"for p; do f=$(command -v \"$p\") || f=; s=$(sha256sum <\"$f\" 2>/dev/null) || s=unknown; "
	"echo \"$p ${s%% *}\"; done";

/* SHA-256 in hex of a value's text; members are sorted by name. */
static void hash_json(const json_t *v, char hex[65])
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);

	sha256_hex(text, strlen(text), hex);
	free(text);
}

/* inputs[name, formatted] = v, whose reference is stolen. */
__attribute__((format(printf, 3, 4))) static void set(
	json_t *inputs, json_t *v, const char *fmt, ...)
{
	char name[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	json_object_set_new(inputs, name, v);
}

/* inputs[name] = "sha256:..." of the file's text. */
static int add_file(json_t *inputs, const char *name, const char *path, struct err *e)
{
	char *text, hex[65];
	size_t size;
	int rc = file_read(path, &text, &size, e);

	if (rc)
		return rc;
	sha256_hex(text, size, hex);
	free(text);
	json_object_set_new(inputs, name, json_sprintf("sha256:%s", hex));
	return 0;
}

/* The same of a file of culprit's own, by its path below culprit's folder. */
static int add_own_file(json_t *inputs, const char *name, const char *sub, struct err *e)
{
	char *path = NULL;
	int rc = home_path(sub, &path, e) ?: add_file(inputs, name, path, e);

	free(path);
	return rc;
}

static json_t *texts(char *const *list)
{
	json_t *all = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(all, json_string(list[i]));
	return all;
}

/* What a workload takes along, by content. */
static int add_data(json_t *inputs, const struct part *p, struct err *e)
{
	json_t *hashes = json_object(), *file;
	const char *key;
	int rc = 0;

	json_object_foreach(p->files, key, file)
		rc = rc ?: add_file(hashes, key, jget_text(file, "path"), e);
	if (p->files)
		set(inputs, hashes, "workload %s: data", p->label);
	else
		json_decref(hashes);
	return rc;
}

static int add_part(json_t *inputs, const struct part *p, struct err *e)
{
	const char *kind = p->kind == PART_FAULT ? "fault" : "workload";
	json_t *v = json_pack("{s:O}", "params", p->params);
	char name[512];

	if (p->kind == PART_FAULT)
		json_object_update_new(v,
			json_pack("{s:I, s:f, s:o}", "victims", (json_int_t)p->victims, "after_s",
				p->after_s, "workloads", texts(p->under)));
	set(inputs, v, "%s %s", kind, p->label);
	snprintf(name, sizeof(name), "%s %s: file", kind, p->label);
	return (p->path ? add_file(inputs, name, p->path, e) : 0) ?: add_data(inputs, p, e);
}

static void add_tracing(json_t *inputs, const char *role, const struct tracing *t)
{
	json_t *v = tracing_args(t, "", NULL);

	json_object_set_new(v, "one_server", json_boolean(t->one_server));
	json_object_set_new(v, "workloads", texts(t->under));
	set(inputs, v, "%s %s", role, t->label);
}

static int add_recorder(json_t *inputs, const struct recorder *r, struct err *e)
{
	json_t *v = recorder_args(r, "");

	json_object_update_new(v,
		json_pack("{s:f, s:b, s:b}", "after_onset_s", r->after_onset_s, "at_offset",
			r->at_offset, "at_end", r->at_end));
	json_object_set_new(inputs, "recorder", v);
	return r->trigger ? add_file(inputs, "recorder's trigger", r->trigger, e) : 0;
}

/* A loop device's number is the order of attaching: it differs when a lab is up again. */
static json_t *device(const char *path)
{
	static const char loop[] = "/dev/loop";

	return path ? json_string(strncmp(path, loop, strlen(loop)) ? path : loop) : NULL;
}

/* Addresses, keys and users are ways to reach a host and no part of what is measured there. */
static void add_hosts(json_t *inputs, const struct cluster *c)
{
	cluster_each(m, c) {
		const struct host *h = m->host;

		set(inputs,
			json_pack("{s:s, s:o?, s:o?, s:i, s:s?}", "role", role_name(h->role),
				"storage", device(h->storage), "spare", device(h->spare),
				"service_port", (int)h->service_port, "mount", h->mount),
			"host %s", h->ssh.name);
	}
	json_object_set_new(inputs, "file system",
		json_pack("{s:s, s:s?}", "type", c->inv->fs_type, "layout", c->inv->layout));
	if (c->inv->settings)
		json_object_set_new(
			inputs, "settings of the file system", json_string(c->inv->settings));
}

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* The agent with its libraries. */
static int add_agent(json_t *inputs, struct err *e)
{
	struct dirent **list = NULL;
	char *dir = NULL, hex[65];
	json_auto_t *hashes = json_object();
	int rc = home_agent_dir(&dir, e), n = 0;

	if (!rc && (n = scandir(dir, &list, is_file, NULL)) < 0)
		rc = err_errno(e, -errno, "cannot list '%s'", dir);
	for (int i = 0; i < n; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		rc = rc ?: add_file(hashes, list[i]->d_name, path, e);
		free(list[i]);
	}
	hash_json(hashes, hex);
	json_object_set_new(inputs, "agent", json_sprintf("sha256:%s", hex));
	free(list);
	free(dir);
	return rc;
}

static void add_values(
	json_t *inputs, const struct scenario *s, const struct plan *p, const char *only)
{
	bool runtime = s->measure == MEASURE_RUNTIME;
	json_t *training = json_array();

	for (size_t i = 0; i < s->n_training; i++)
		json_array_append_new(training, json_string(s->workloads[s->training[i]].label));
	json_object_update_new(inputs,
		json_pack("{s:s, s:I, s:I, s:o*, s:s?}", "measure",
			runtime ? "runtime" : "verdicts", "seed", (json_int_t)p->seed, "repeats",
			(json_int_t)s->repeats, "controls",
			s->controls != 1 ? json_integer(s->controls) : NULL, "only", only));
	json_object_update_new(inputs,
		runtime ? json_pack("{s:f}", "limit", s->limit_s)
			: json_pack("{s:f, s:f, s:f}", "phases.before", s->before_s, "phases.fault",
				  s->fault_s, "phases.after", s->after_s));
	json_object_update_new(inputs,
		json_pack("{s:o, s:I, s:s}", "training.workloads", training, "training.repeats",
			(json_int_t)s->training_repeats, "culprit", CULPRIT_VERSION));
}

int key_inputs(const struct scenario *s, const struct plan *p, const struct cluster *c,
	const char *only, json_t **inputs, struct err *e)
{
	json_t *all = json_object();
	auto_free char *adapter = NULL;
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
	if (s->recorder.tracing.name)
		rc = rc ?: add_recorder(all, &s->recorder, e);
	add_hosts(all, c);
	rc = rc ?: library_find(LIBRARY_FILE_SYSTEM, c->inv->fs_type, NULL, &adapter, e)
		?: add_file(all, "file system's adapter", adapter, e)
		?: add_own_file(all, "prelude", LUAX_PRELUDE, e)
		?: add_agent(all, e);
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
		json_t *v = json_object();
		char sub[256];

		snprintf(sub, sizeof(sub), "diag/detectors/%.200s.lua", name);
		rc = strchr(name, '/') || strstr(name, ".lua") ? add_file(v, "file", name, e)
							       : add_own_file(v, "file", sub, e);
		json_object_set(v, "params", s->detectors[i].params);
		json_object_set_new(all, name, v);
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
	char *copy = alloc_copy(output ? output : ""), *save;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *digest = strrchr(line, ' ');

		if (!digest)
			continue;
		*digest++ = '\0';
		/* The number of a process is not the same in the next run. */
		line = strncmp(line, "/proc/", 6) ? line : "of the file system";
		set(inputs, json_sprintf("%s%s", strlen(digest) == 64 ? "sha256:" : "", digest),
			"program %s on %s", line, node);
	}
	free(copy);
}

int key_add_programs(
	struct scenario *s, const struct plan *p, struct cluster *c, json_t *inputs, struct err *e)
{
	json_auto_t *results = NULL, *programs = NULL;
	json_t *result;
	const char *name;
	int rc = needed_programs(s, p, &programs, e)
		?: cluster_ask(c, "run", hash_args, programs, HASH_TIMEOUT_S + 10, &results, e);

	json_object_foreach(results, name, result)
		read_hashes(name, jget_text(result, "output"), inputs);
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
		return alloc_copy("?");
	json_object_foreach((json_t *)was, name, v) {
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
	json_object_foreach((json_t *)is, name, v)
		if (!jget(was, name))
			fprintf(f, "%s%s is new", n++ ? "; " : "", name);
	fclose(f);
	if (!n) {
		free(text);
		return NULL;
	}
	return text;
}

/* The fault's file has changed; 'was' gets what is new of it. */
static bool accept_fault(const char *label, json_t *was, const json_t *is)
{
	auto_free char *name = alloc_format("fault %s", label);
	auto_free char *file = alloc_format("fault %s: file", label);
	json_t *own = jget(was, name), *text = jget(is, file);

	if (!jget(was, file) || !text || json_equal(jget(was, file), text))
		return false;
	json_object_set(was, file, text);
	/* A new parameter, or another default. */
	json_object_set(own, "params", jget(jget(is, name), "params"));
	json_object_set(own, "after_s", jget(jget(is, name), "after_s"));
	return true;
}

char *key_accept_faults(const struct scenario *s, struct plan *p, json_t *was, const json_t *is)
{
	char *labels = NULL;

	for (size_t f = 0; f < s->n_faults; f++) {
		auto_free char *before = labels;

		if (!accept_fault(s->faults[f].label, was, is)) {
			before = NULL;
			continue;
		}
		labels = alloc_format(
			"%s%s%s", before ? before : "", before ? ", " : "", s->faults[f].label);
		for (size_t i = 0; i < p->n; i++)
			p->cells[i].outdated |= p->cells[i].fault == f;
	}
	return labels;
}

int key_refuse(const char *difference, struct err *e)
{
	return err_blame(e, ERR_SCENARIO,
		err_set(e, -EINVAL,
			"it is not the same run any more: %.800s; 'culprit run' begins a new one",
			difference));
}

/* Copies a label's inputs. */
static void cell_key_take(json_t *into, const json_t *inputs, const char *kind, const char *label)
{
	static const char *const suffixes[] = {"", ": file", ": data"};
	char name[512];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
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

void key_cells(
	const struct scenario *s, struct plan *p, const struct cluster *c, const json_t *inputs)
{
	json_auto_t *common = json_object();
	json_t *v;
	const char *name;

	json_object_foreach((json_t *)inputs, name, v)
		if (is_of_all(name))
			json_object_set(common, name, v);
	for (size_t i = 0; i < p->n; i++) {
		struct cell *cell = &p->cells[i];
		json_t *own = json_copy(common), *victims = json_array();

		for (size_t k = 0; k < cell->n_victims; k++)
			json_array_append_new(
				victims, json_string(c->servers[cell->victims[k]]->name));
		cell_key_take(own, inputs, "workload", s->workloads[cell->workload].label);
		if (cell->fault != SIZE_MAX)
			cell_key_take(own, inputs, "fault", s->faults[cell->fault].label);
		cell_key_take(own, inputs, "tracer", s->tracers[cell->tracer].label);
		json_object_set_new(own, "cell",
			json_pack("{s:b, s:I, s:o}", "training", cell->training, "repeat",
				(json_int_t)cell->repeat, "victims", victims));
		hash_json(own, cell->key);
		json_decref(own);
	}
}
