/* culprit doctor SCENARIO: the files that a scenario is made of, without a node. */
#include <string.h>

#include "harness/base/auto.h"
#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"
#include "harness/cli/running.h"
#include "harness/run/needs.h"
#include "harness/fs/fs.h"

/* Adds a sentence once: the scenario's own may be that of one of its files. */
static void doctor_scenario_add(json_t *mistakes, const char *sentence)
{
	json_t *known;
	size_t i;

	json_array_foreach(mistakes, i, known) {
		if (!strcmp(json_string_value(known), sentence))
			return;
	}
	json_array_append_new(mistakes, json_string(sentence));
}

/* Each detector alone, so that one's mistake does not hide another's. */
static void load_detectors(const json_t *detectors, json_t *mistakes)
{
	json_auto_t *servers = json_pack("[s, s, s]", "s1", "s2", "s3");
	json_t *detector;
	size_t i;

	json_array_foreach((json_t *)detectors, i, detector) {
		json_auto_t *alone = json_pack("[O]", detector);
		struct judge *judge = NULL;
		struct err e;

		if (judge_new(alone, servers, NULL, &judge, &e))
			doctor_scenario_add(mistakes, e.text);
		judge_free(judge);
	}
}

static void load_inventory(const char *path, json_t *mistakes)
{
	struct inventory *inv = NULL;
	struct fs *fs = NULL;
	struct err e;

	if (inventory_load(path, &inv, &e) || fs_load(inv->fs_type, &fs, &e))
		doctor_scenario_add(mistakes, e.text);
	fs_free(fs);
	inventory_free(inv);
}

int doctor_scenario(const char *name, const char *inventory, json_t *needs, struct scenario **out)
{
	json_auto_t *mistakes = json_array(), *found = json_array(), *detectors = NULL;
	auto_free char *path = NULL;
	struct scenario *s = NULL;
	json_t *mistake;
	struct err e;
	size_t i;

	if (scenario_find(name, &path, &e))
		return cmd_error("doctor", &e, ERR_USAGE);
	if (!scenario_load(path, &s, &e)) {
		detectors = running_detectors(s);
		for (size_t w = 0; w < s->n_workloads; w++)
			if (needs_add(s->L, &s->workloads[w], needs, &e))
				doctor_scenario_add(mistakes, e.text);
	} else {
		doctor_scenario_add(mistakes, e.text);
		scenario_mistakes(path, found, &detectors);
		json_array_foreach(found, i, mistake)
			doctor_scenario_add(mistakes, json_string_value(mistake));
	}
	load_detectors(detectors, mistakes);
	if (!inventory && s)
		inventory = s->inventory;
	if (inventory)
		load_inventory(inventory, mistakes);
	json_array_foreach(mistakes, i, mistake)
		cmd_fail("doctor", CULPRIT_EXIT_USAGE, "%s", json_string_value(mistake));
	if (json_array_size(mistakes)) {
		scenario_free(s);
		return CULPRIT_EXIT_USAGE;
	}
	*out = s;
	return CULPRIT_EXIT_OK;
}
