/* Loads a detector and calls its train and diagnose functions. */
#include "diag/judge/detector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/judge/confine.h"
#include "diag/judge/detector_impl.h"
#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/base/name.h"
#include "harness/base/sha256.h"
#include "harness/lua/library.h"
#include "harness/lua/luajson.h"

static int read_definition(struct detector *d, const json_t *given, struct err *e)
{
	const struct luax_field form[] = {
		{"name", LUAX_STRING, .required = true, .out = &d->name},
		{"summary", LUAX_STRING, .required = true, .out = &d->summary},
		{"params", LUAX_TABLE},
		{"train", LUAX_FUNCTION},
		{"diagnose", LUAX_FUNCTION, .required = true},
		{"events", LUAX_BOOLEAN, .out = &d->events},
		{NULL},
	};
	int rc = luax_read(d->L, 1, &d->src, "detector", form, false, e);
	char what[NAME_LENGTH_MAX + 16];
	struct err why;

	if (rc)
		return rc;
	if (name_check("detector", d->name, &why))
		return luax_complain(&d->src, "name", e, "%s", why.text);
	d->trains = lua_getfield(d->L, 1, "train") == LUA_TFUNCTION;
	snprintf(what, sizeof(what), "detector '%s'", d->name);
	luajson_push(d->L, given);
	return library_params(
		d->L, 1, &d->src, given ? 3 : 0, NULL, what, NULL, &d->params, NULL, e);
}

static void digest(struct detector *d, const void *data, size_t size)
{
	int at = snprintf(d->digest, sizeof(d->digest), "sha256:");

	sha256_hex(data, size, d->digest + at);
}

static int digest_program(struct detector *d, struct err *e)
{
	char *data;
	size_t size;
	int rc = file_read(d->path, &data, &size, e);

	if (rc)
		return rc;
	digest(d, data, size);
	free(data);
	return 0;
}

/* A program is named after its file, and gets its parameters as given. */
static int read_program(struct detector *d, const json_t *params, struct err *e)
{
	int rc = confine_check(d->path, e);

	if (rc)
		return err_blame(e, ERR_SCENARIO, rc);
	if (access(d->path, X_OK) < 0) {
		err_set(e, -EINVAL,
			"the detector '%s' is neither a Lua file ('.lua') nor executable", d->path);
		return err_blame(e, ERR_SCENARIO, -EINVAL);
	}
	d->external = d->trains = true;
	d->src.path = alloc_copy(d->path);
	d->summary = alloc_copy("a program");
	d->params = params ? json_deep_copy(params) : json_object();
	return library_name(LIBRARY_DETECTOR, d->path, &d->name, e) ?: digest_program(d, e);
}

int detector_load(const char *name, const json_t *params, struct detector **out, struct err *e)
{
	struct detector *d = alloc_zero(1, sizeof(*d));
	size_t len;
	int rc = library_find(LIBRARY_DETECTOR, name, NULL, &d->path, e);

	len = rc ? 0 : strlen(d->path);
	if (!rc && (len < 5 || strcmp(d->path + len - 4, ".lua"))) {
		rc = read_program(d, params, e);
	} else if (!rc) {
		rc = sandbox_load(d, e);
		if (!rc)
			rc = read_definition(d, params, e);
		if (!rc)
			digest(d, d->src.text, strlen(d->src.text));
	}
	if (rc)
		detector_free(d);
	else
		*out = d;
	return rc;
}

void detector_free(struct detector *d)
{
	if (!d)
		return;
	sandbox_close(d);
	luax_source_clear(&d->src);
	free(d->path);
	free(d->name);
	free(d->summary);
	json_decref(d->params);
	free(d);
}

const char *detector_name(const struct detector *d)
{
	return d->name;
}

const char *detector_digest(const struct detector *d)
{
	return d->digest;
}

const char *detector_summary(const struct detector *d)
{
	return d->summary;
}

bool detector_wants_events(const struct detector *d)
{
	return d->events;
}

bool detector_trains(const struct detector *d)
{
	return d->trains;
}

bool detector_external(const struct detector *d)
{
	return d->external;
}

const char *const *detector_nulls(void)
{
	static const char *const nulls[] = {"always-healthy", "always-same", "seeded-random", NULL};

	return nulls;
}

bool detector_is_null(const char *name)
{
	for (const char *const *null = detector_nulls(); *null; null++)
		if (!strcmp(*null, name))
			return true;
	return false;
}

const json_t *detector_params(const struct detector *d)
{
	return d->params;
}

json_t *detector_declared(const struct detector *d)
{
	json_t *out = NULL;

	if (d->L && lua_istable(d->L, 1)) {
		if (lua_getfield(d->L, 1, "params") == LUA_TTABLE &&
			luajson_get(d->L, -1, &out, NULL))
			out = NULL;
		lua_pop(d->L, 1);
	}
	/* An empty Lua table is an empty array. */
	if (!json_is_object(out)) {
		json_decref(out);
		out = json_object();
	}
	return out;
}

int detector_each(int (*fn)(void *ctx, const struct detector *d), void *ctx, struct err *e)
{
	char **names = library_names(LIBRARY_DETECTOR);
	int rc = 0;

	for (size_t i = 0; !rc && names[i]; i++) {
		struct detector *d;

		rc = detector_load(names[i], NULL, &d, e);
		if (rc)
			break;
		rc = fn(ctx, d);
		detector_free(d);
	}
	alloc_free_list(names);
	return rc;
}
