#include "harness/experiment/cell_key.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/file.h"
#include "harness/base/home.h"

#define HASH_TIMEOUT_S 60

/* Words after its name: programs by their names, or absolute paths. A line each: "NAME SHA256". */
static const char hash_programs[] =
	"for p; do f=$(command -v \"$p\") || f=; s=$(sha256sum <\"$f\" 2>/dev/null) || s=unknown; "
	"echo \"$p ${s%% *}\"; done";

int key_hash(const void *data, size_t size, char hex[65], struct err *e)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (!EVP_Digest(data, size, digest, &len, EVP_sha256(), NULL) || len != 32)
		return err_set(e, -EIO, "cannot hash");
	for (unsigned i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
	return 0;
}

/* inputs[name] = SHA-256 of the file. */
static int add_file(json_t *inputs, const char *name, const char *path, struct err *e)
{
	char hex[65], *text;
	size_t size;
	int rc = file_read(path, &text, &size, e);

	if (rc)
		return rc;
	rc = key_hash(text, size, hex, e);
	if (!rc)
		json_object_set_new(inputs, name, json_sprintf("sha256:%s", hex));
	free(text);
	return rc;
}

static json_t *texts(char *const *list)
{
	json_t *all = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(all, json_string(list[i]));
	return all;
}

static int add_part(json_t *inputs, const struct part *p, struct err *e)
{
	const char *kind = p->kind == PART_FAULT ? "fault" : "workload";
	char name[512];
	json_t *v = json_pack("{s:O}", "params", p->params);

	if (p->kind == PART_FAULT) {
		json_object_set_new(v, "victims", json_integer(p->victims));
		json_object_set_new(v, "after_s", json_real(p->after_s));
		json_object_set_new(v, "workloads", texts(p->under));
	}
	snprintf(name, sizeof(name), "%s %s", kind, p->label);
	json_object_set_new(inputs, name, v);
	if (!p->path)
		return 0;
	snprintf(name, sizeof(name), "%s %s: file", kind, p->label);
	return add_file(inputs, name, p->path, e);
}

static void add_tracing(json_t *inputs, const char *role, const struct tracing *t)
{
	char name[256];
	json_t *v = tracing_args(t, "", NULL);

	json_object_set_new(v, "one_server", json_boolean(t->one_server));
	json_object_set_new(v, "workloads", texts(t->under));
	snprintf(name, sizeof(name), "%s %s", role, t->label);
	json_object_set_new(inputs, name, v);
}

/* Addresses, keys and users are ways to a host, not what is measured there. */
static void add_hosts(json_t *inputs, const struct cluster *c)
{
	char name[256];

	for (size_t i = 0; i < c->n_members; i++) {
		const struct host *h = c->members[i].host;

		snprintf(name, sizeof(name), "host %s", h->ssh.name);
		json_object_set_new(inputs, name,
			json_pack("{s:s, s:s?, s:s?, s:i, s:s?}", "role", role_name(h->role),
				"storage", h->storage, "spare", h->spare, "service_port",
				(int)h->service_port, "mount", h->mount));
	}
	json_object_set_new(inputs, "file system",
		json_pack("{s:s, s:s?}", "type", c->inv->fs_type, "layout", c->inv->layout));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* The agent with the libraries that travel beside it. */
static int add_agent(json_t *inputs, struct err *e)
{
	struct dirent **list = NULL;
	char *dir = NULL, *all = NULL, hex[65];
	json_t *hashes = json_object();
	int rc = home_agent_dir(&dir, e), n = 0;

	if (!rc && (n = scandir(dir, &list, is_file, by_name)) < 0)
		rc = err_errno(e, -errno, "cannot list '%s'", dir);
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (!rc && asprintf(&path, "%s/%s", dir, list[i]->d_name) < 0)
			rc = err_errno(e, -ENOMEM, "cannot hash the agent");
		if (!rc)
			rc = add_file(hashes, list[i]->d_name, path, e);
		free(path);
		free(list[i]);
	}
	all = json_dumps(hashes, JSON_COMPACT | JSON_SORT_KEYS);
	if (!rc && all)
		rc = key_hash(all, strlen(all), hex, e);
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
	if (s->beside.name)
		add_tracing(all, "beside", &s->beside);
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

/* 'needs' of the workloads that the plan has, each once. */
static json_t *needed_programs(struct scenario *s, const struct plan *p)
{
	json_t *names = json_object();
	lua_State *L = s->L;
	int top = lua_gettop(L);

	for (size_t i = 0; i < p->n; i++) {
		lua_rawgeti(L, LUA_REGISTRYINDEX, s->workloads[p->cells[i].workload].def_ref);
		lua_getfield(L, -1, "needs");
		for (lua_Integer k = 1; lua_istable(L, -1); k++) {
			bool more = lua_rawgeti(L, -1, k) == LUA_TSTRING;

			if (more)
				json_object_set_new(names, lua_tostring(L, -1), json_true());
			lua_pop(L, 1);
			if (!more)
				break;
		}
		lua_settop(L, top);
	}
	return names;
}

static json_t *hash_command(const struct member *m, const json_t *programs)
{
	json_t *argv = json_pack("[s, s, s, s]", "sh", "-c", hash_programs, "sh");
	json_int_t pid = json_integer_value(json_array_get(m->pids, 0));
	const char *name;
	json_t *v;

	if (m->host->role == ROLE_CLIENT)
		json_object_foreach((json_t *)programs, name, v)
			json_array_append_new(argv, json_string(name));
	if (pid)
		json_array_append_new(argv, json_sprintf("/proc/%lld/exe", (long long)pid));
	return json_pack("{s:o, s:i}", "argv", argv, "timeout_s", HASH_TIMEOUT_S);
}

static void read_hashes(const struct member *m, const char *output, json_t *inputs)
{
	char *copy = strdup(output ? output : ""), *save = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		char name[512], *hash = strrchr(line, ' ');

		if (!hash)
			continue;
		*hash++ = '\0';
		/* The process's number says nothing. */
		snprintf(name, sizeof(name), "program %s on %s",
			strncmp(line, "/proc/", 6) ? line : "of the file system",
			m->host->ssh.name);
		json_object_set_new(inputs, name,
			json_sprintf("%s%s", strlen(hash) == 64 ? "sha256:" : "", hash));
	}
	free(copy);
}

int key_add_programs(
	struct scenario *s, const struct plan *p, struct cluster *c, json_t *inputs, struct err *e)
{
	struct node_request *requests = calloc(c->n_members, sizeof(*requests));
	json_t *programs = needed_programs(s, p);
	int rc = requests ? 0 : err_errno(e, -ENOMEM, "cannot hash programs");

	for (size_t i = 0; i < c->n_members && !rc; i++)
		requests[i] = (struct node_request){.node = c->members[i].node,
			.op = "run",
			.args = hash_command(&c->members[i], programs)};
	if (!rc)
		rc = node_call_all(requests, c->n_members, HASH_TIMEOUT_S + 10, e);
	for (size_t i = 0; i < c->n_members && requests; i++) {
		if (!rc)
			read_hashes(&c->members[i],
				json_string_value(json_object_get(requests[i].result, "output")),
				inputs);
		json_decref(requests[i].result);
	}
	free(requests);
	json_decref(programs);
	return rc;
}

static void show_value(FILE *f, const json_t *v)
{
	char *text = v
		? json_dumps(v,
			  JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6))
		: NULL;

	fprintf(f, "%s", text ? text : "?");
	free(text);
}

char *key_difference(const json_t *was, const json_t *is)
{
	char *text = NULL;
	size_t size, n = 0;
	FILE *f = open_memstream(&text, &size);
	const char *name;
	json_t *v;

	if (!f)
		return strdup("?");
	json_object_foreach((json_t *)was, name, v)
	{
		const json_t *now = json_object_get(is, name);
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
			show_value(f, now);
			fputs(", was ", f);
			show_value(f, v);
		}
	}
	json_object_foreach((json_t *)is, name, v) if (!json_object_get(was, name))
		fprintf(f, "%s%s is new", n++ ? "; " : "", name);
	fclose(f);
	if (!n) {
		free(text);
		return NULL;
	}
	return text;
}

/* Copies what a label has in the inputs. */
static void take(json_t *into, const json_t *inputs, const char *kind, const char *label)
{
	char name[512];

	snprintf(name, sizeof(name), "%s %s", kind, label);
	json_object_set(into, name, json_object_get(inputs, name));
	snprintf(name, sizeof(name), "%s %s: file", kind, label);
	json_object_set(into, name, json_object_get(inputs, name));
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
		rc = text ? key_hash(text, strlen(text), cell->key, e)
			  : err_errno(e, -ENOMEM, "cannot make a key");
		free(text);
		json_decref(own);
	}
	json_decref(common);
	return rc;
}
