/*
 * culprit undo: an agent's start undoes what earlier sessions on its node left behind, so
 * to visit every node is to clean them all.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/cli/cmd.h"
#include "harness/cli/contact.h"

static void usage(FILE *f)
{
	fputs("usage: culprit undo --inventory FILE [--json]\n\n"
	      "Visits every node and undoes what runs that were cut off have left there. What a\n"
	      "run that is still going holds stays. Where an undo takes its time (a file-system\n"
	      "check), waits until it is over. Prints a line a node.\n\n"
	      "  -i, --inventory FILE  the nodes\n"
	      "      --json            as JSON\n\n"
	      "Exit codes: 0 all nodes are clean; 3 one is not, or was not reached.\n",
		f);
}

static void print_names(const char *name, const char *what, const json_t *list)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		printf("  %-12s %s%s\n", name, what, json_string_value(json_array_get(list, i)));
}

/* Waits while an undo takes its time there (a file-system check); false if it failed. */
static bool wait_quarantine(const struct contact *c, bool say)
{
	const json_t *list = json_object_get(node_hello(c->node), "quarantined");
	const char *name = c->host->ssh.name;
	bool working = json_array_size(list) > 0, over = !working;

	if (working && say) {
		print_names(name, "waiting: ", list);
		fflush(stdout);
	}
	while (working) {
		struct timespec nap = {.tv_nsec = 500000000};
		json_t *now = NULL;
		struct err e;

		nanosleep(&nap, NULL);
		if (node_call(c->node, "quarantine", NULL, 20, &now, &e) < 0)
			break;
		working = json_is_true(json_object_get(now, "working"));
		if (!working && !json_array_size(json_object_get(now, "quarantined")))
			over = true;
		json_decref(now);
	}
	return over;
}

/* True if the node is clean now. */
static bool report(const struct contact *c, json_t *all)
{
	const char *name = c->host->ssh.name;
	json_t *cleaned, *unclean, *quarantined;
	bool over;

	if (c->rc < 0) {
		if (all)
			json_array_append_new(all,
				json_pack("{s:s, s:b, s:s}", "node", name, "reached", 0, "error",
					c->err.text));
		else
			printf("  %-12s not reached: %s\n", name, c->err.text);
		return false;
	}
	cleaned = json_object_get(node_hello(c->node), "cleaned");
	unclean = json_object_get(node_hello(c->node), "unclean");
	quarantined = json_object_get(node_hello(c->node), "quarantined");
	over = wait_quarantine(c, !all);
	if (all) {
		json_array_append_new(all,
			json_pack("{s:s, s:b, s:O?, s:O?, s:O?, s:b}", "node", name, "reached", 1,
				"undone", cleaned, "not_undone", unclean, "quarantined",
				quarantined, "quarantine_over", over));
	} else {
		if (json_array_size(quarantined))
			printf("  %-12s %s\n", name,
				over ? "repaired" : "NOT repaired; try again, and see its journal");
		else if (!json_array_size(cleaned) && !json_array_size(unclean))
			printf("  %-12s clean\n", name);
		print_names(name, "undone: ", cleaned);
		print_names(name, "NOT undone: ", unclean);
	}
	return over && !json_array_size(unclean);
}

int cmd_undo(int argc, char **argv)
{
	static const struct option longs[] = {{"inventory", required_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	struct contact *contacts = NULL;
	struct inventory *inv = NULL;
	const char *path = NULL;
	json_t *all = NULL;
	struct err e = {""};
	size_t i, n = 0;
	bool json = false, clean = true;
	int opt, code = CULPRIT_EXIT_OK;

	while ((opt = getopt_long(argc, argv, "hi:", longs, NULL)) != -1) {
		switch (opt) {
		case 'h': usage(stdout); return CULPRIT_EXIT_OK;
		case 'i': path = optarg; break;
		case 'j': json = true; break;
		default: usage(stderr); return CULPRIT_EXIT_USAGE;
		}
	}
	if (optind < argc)
		return cmd_fail("undo", CULPRIT_EXIT_USAGE,
			"what is '%s'? try 'culprit undo --help'", argv[optind]);
	if (!path)
		return cmd_fail("undo", CULPRIT_EXIT_USAGE, "which nodes? give --inventory FILE");
	if (inventory_load(path, &inv, &e) < 0)
		return cmd_fail("undo", CULPRIT_EXIT_USAGE, "%s", e.text);
	n = inv->n_hosts;
	if (contacts_new(inv, &contacts, &e) < 0) {
		code = cmd_fail("undo", CULPRIT_EXIT_INVALID, "%s", e.text);
		goto out;
	}
	if (json)
		all = json_array();
	for (i = 0; i < n; i++)
		if (!report(&contacts[i], all))
			clean = false;
	if (all) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	if (!clean)
		code = CULPRIT_EXIT_INVALID;
out:
	json_decref(all);
	contacts_free(contacts, n);
	inventory_free(inv);
	return code;
}
