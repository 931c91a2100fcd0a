/* culprit undo: an agent, when it starts, undoes what earlier sessions left on its node. So it is
 * enough to connect to every node. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/cli/cmd.h"
#include "harness/run/contact.h"
#include "harness/cli/tables.h"

static void print_line(const char *name, const char *what, const char *text)
{
	printf("  %-12s %s", name, what);
	text_print_clean(stdout, text);
	putchar('\n');
}

static void print_names(const char *name, const char *what, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		print_line(name, what, json_string_value(json_array_get(list, i)));
}

/* Waits while a long undo (a file-system check) runs on the node; false if it failed. */
static bool wait_quarantine(const struct contact *c, bool say)
{
	const json_t *list = jget(node_hello(c->node), "quarantined");

	if (!json_array_size(list))
		return true;
	if (say) {
		print_names(c->host->ssh.name, "waiting: ", list);
		fflush(stdout);
	}
	for (;;) {
		json_auto_t *now = NULL;

		usleep(500000);
		if (node_call(c->node, "quarantine", NULL, 20, &now, NULL) < 0)
			return false;
		if (!jget_true(now, "working"))
			return !json_array_size(jget(now, "quarantined"));
	}
}

/* Reports on one node; true if it is clean now. */
static bool report(const struct contact *c, json_t *all)
{
	const char *name = c->host->ssh.name;
	const json_t *hello;
	json_t *cleaned, *unclean, *quarantined;
	bool over;

	if (c->rc < 0) {
		if (all)
			json_array_append_new(all,
				json_pack("{s:s, s:b, s:s}", "node", name, "reached", 0, "error",
					c->err.text));
		else
			print_line(name, "not reached: ", c->err.text);
		return false;
	}
	hello = node_hello(c->node);
	cleaned = jget(hello, "cleaned");
	unclean = jget(hello, "unclean");
	quarantined = jget(hello, "quarantined");
	over = wait_quarantine(c, !all);
	if (all) {
		json_array_append_new(all,
			json_pack("{s:s, s:b, s:O?, s:O?, s:O?, s:b}", "node", name, "reached", 1,
				"undone", cleaned, "not_undone", unclean, "quarantined",
				quarantined, "quarantine_over", over));
	} else {
		if (json_array_size(quarantined))
			print_line(name, "",
				over ? "repaired" : "NOT repaired; try again, and see its journal");
		else if (!json_array_size(cleaned) && !json_array_size(unclean))
			print_line(name, "", "clean");
		print_names(name, "undone: ", cleaned);
		print_names(name, "NOT undone: ", unclean);
	}
	return over && !json_array_size(unclean);
}

struct options {
	const char *inventory;
	bool json;
};

static int undo_run(const struct call *c)
{
	const struct options *o = c->options;
	struct contact *contacts = NULL;
	struct inventory *inv = NULL;
	json_t *all = NULL;
	bool clean = true;
	struct err e;

	if (!o->inventory)
		return cmd_fail("undo", CULPRIT_EXIT_USAGE, "which nodes? give --inventory FILE");
	if (inventory_load(o->inventory, &inv, &e) < 0)
		return cmd_error("undo", &e, ERR_USAGE);
	if (contacts_new(inv, &contacts, &e) < 0) {
		inventory_free(inv);
		return cmd_error("undo", &e, ERR_HARNESS);
	}
	if (o->json)
		all = json_array();
	for (size_t i = 0; i < inv->n_hosts; i++)
		clean &= report(&contacts[i], all);
	if (all)
		cmd_print_json(all);
	contacts_free(contacts, inv->n_hosts);
	inventory_free(inv);
	return clean ? CULPRIT_EXIT_OK : CULPRIT_EXIT_INVALID;
}

static const struct option_row rows[] = {
	{"", 0, OPTION_GROUP, offsetof(struct options, inventory), NULL, "",
		.group = inventory_rows},
	{"json", 0, OPTION_FLAG, offsetof(struct options, json), NULL, "print as JSON"},
	{0},
};

const struct command undo_command = {.name = "undo",
	.summary = "undo what a run left behind",
	.arguments = "--inventory FILE",
	.about = "Connects to every node and undoes what interrupted runs left there. What a run "
		 "that is still going on holds is left alone. If an undo takes time (a file-system "
		 "check), it waits for the end. Prints one line for each node.",
	.examples = "culprit undo --inventory my-hosts.lua",
	.exits = "0 all nodes are clean; 2 usage error, or the inventory is wrong; 3 a node is not "
		 "clean, or was not reached.",
	OPTIONS(rows, struct options),
	.run = undo_run};
