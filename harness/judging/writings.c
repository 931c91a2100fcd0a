/* Finds the writings of an attempt's flight recorder. */
#include "harness/judging/writings.h"

#include <errno.h>
#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"
#include "harness/judging/places.h"

static const json_t *recorder_of(const json_t *row)
{
	return jget(jget(row, "detail"), "recorder");
}

size_t writing_count(const json_t *row, bool *never)
{
	const size_t n = json_array_size(jget(recorder_of(row), "written"));

	if (never)
		*never = json_is_object(recorder_of(row)) && !n;
	return n;
}

json_t *writing_row(const json_t *row, size_t n)
{
	const json_t *recorder = recorder_of(row), *all = jget(recorder, "written"),
		     *one = n ? json_array_get(all, n - 1) : NULL;
	const char *why = jget_text(one, "why");
	const double to_s = (double)(jget_int(one, "at_ns") - jget_int(row, "start_ns")) * 1e-9,
		     from_s = to_s - jget_real(recorder, "ring_s");
	json_t *out;

	if (!json_is_object(one))
		return NULL;
	out = json_copy((json_t *)row);
	json_object_set_new(out, "written",
		json_pack("{s:I, s:I, s:s, s:f, s:f}", "number", (json_int_t)n, "of",
			(json_int_t)json_array_size(all), "why", why ? why : "?", "from_s",
			from_s > 0 ? from_s : 0.0, "to_s", to_s > 0 ? to_s : 0.0));
	return out;
}

int writing_choose(const json_t *row, size_t n, json_t **out, struct err *e)
{
	const size_t count = writing_count(row, NULL);
	json_t *found = writing_row(row, n ? n : count);

	if (!found && !n)
		found = json_incref((json_t *)row);
	if (found) {
		*out = found;
		return 0;
	}
	return err_set(e, -ENOENT,
		"cell %lld: its flight recorder wrote %zu times, so there "
		"is no recording %zu",
		(long long)jget_int(row, "cell"), count, n);
}

char *writing_folder(const char *run, const json_t *row)
{
	auto_free char *folder = places_folder(run, row);
	const json_t *written = jget(row, "written");

	return written
		? alloc_format("%s/recorder.%lld", folder, (long long)jget_int(written, "number"))
		: alloc_copy(folder);
}

char *writing_name(const json_t *row)
{
	const json_t *written = jget(row, "written");

	return written ? alloc_format("recorder.%lld: %s", (long long)jget_int(written, "number"),
				 jget_text(written, "why"))
		       : alloc_copy("");
}

char *written_never(const json_t *row)
{
	const json_t *trigger = jget(recorder_of(row), "trigger");

	if (!trigger)
		return alloc_copy("its flight recorder never wrote");
	return alloc_format(
		"its flight recorder never wrote: its trigger was called %lld times and was true "
		"%lld times",
		(long long)jget_int(trigger, "asked"), (long long)jget_int(trigger, "held"));
}
