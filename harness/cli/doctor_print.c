/* Prints what 'culprit doctor' found. */
#include <stdio.h>
#include <string.h>

#include "harness/base/jget.h"
#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"

/* Level, the member 'name', and text. */
static void print_line(const json_t *check, const char *indent, const char *name, int width)
{
	const char *level = jget_text(check, "level");

	printf("  %-4s  %s%-*s  ", strcmp(level, "bad") ? level : "BAD", indent,
		width - (int)strlen(indent), jget_text(check, name));
	print_wrapped(stdout, width + 10, jget_text(check, "text"));
}

static bool is(const json_t *check, const char *key, const char *text)
{
	return !strcmp(jget_text(check, key), text);
}

static bool is_node(const json_t *check)
{
	return !is(check, "where", "here") && !is(check, "where", "cluster") &&
		!is(check, "where", "faults");
}

/* Prints the checks of one section: this machine, the cluster, or the faults. */
static void print_section(const json_t *checks, const char *where)
{
	bool any = false;
	json_t *c;
	size_t i;

	json_array_foreach(checks, i, c) {
		if (!is(c, "where", where))
			continue;
		if (!any)
			printf("%s%s\n", strcmp(where, "here") ? "\n" : "", where);
		any = true;
		print_line(c, "", "what", strcmp(where, "faults") ? 14 : 17);
	}
}

/* What a function of the file system found is of interest also if nothing is wrong. */
static bool is_of_fs(const char *what)
{
	static const char *const names[] = {
		"file system", "server_pids", "client_pids", "service", "probe", NULL};
	const char *const *name = names;

	while (*name && strcmp(*name, what))
		name++;
	return *name;
}

static void print_nodes(const json_t *checks)
{
	const char *where = "";
	json_t *c;
	size_t i;

	json_array_foreach(checks, i, c) {
		if (!is_node(c))
			continue;
		if (!*where)
			puts("\nnodes");
		if (!is(c, "where", where))
			print_line(c, "", "where", 14);
		else if (!is(c, "level", "ok") || is_of_fs(jget_text(c, "what")))
			print_line(c, "  ", "what", 14);
		where = jget_text(c, "where");
	}
}

/* The table's entry for check 'what' of node 'where', or "". */
static const char *cell(const json_t *checks, const char *where, const char *what)
{
	json_t *c;
	size_t i;

	json_array_foreach(checks, i, c) {
		if (is(c, "where", where) && is(c, "what", what) && jget(c, "short"))
			return jget_text(c, "short");
	}
	return "";
}

static void print_table(const json_t *checks)
{
	static const struct {
		const char *what, *title;
		int width;
	} columns[] = {{"agent", "agent", 8}, {"packets.drop", "drops by", 8},
		{"tracers", "tracers", 26}, {"disk space", "disk", 8}, {"clock", "clock", 0}};
	const char *where = "";
	bool any = false;
	json_t *c;
	size_t i;

	json_array_foreach(checks, i, c) {
		if (!is_node(c) || is(c, "where", where))
			continue;
		where = jget_text(c, "where");
		if (!*cell(checks, where, "agent"))
			continue;
		for (int row = any; row < 2; row++) {
			printf("%s  %-9s", row ? "" : "\n", row ? where : "node");
			for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
				printf(" %-*s", columns[k].width,
					row ? cell(checks, where, columns[k].what)
					    : columns[k].title);
			putchar('\n');
		}
		any = true;
	}
}

void doctor_print(const json_t *checks)
{
	print_section(checks, "here");
	print_nodes(checks);
	print_table(checks);
	print_section(checks, "cluster");
	print_section(checks, "faults");
}

void doctor_print_ssh(const struct inventory *inv, bool json)
{
	json_t *all = json_object(), *o;
	size_t k;

	for (size_t i = 0; i < inv->n_hosts; i++) {
		const struct host *h = &inv->hosts[i];

		json_object_set(all, h->ssh.name, h->origins);
		if (json)
			continue;
		puts(h->ssh.name);
		json_array_foreach(h->origins, k, o) {
			printf("  %-12s %-18s ", jget_text(o, "what"), jget_text(o, "from"));
			print_wrapped(stdout, 34, jget_text(o, "value"));
		}
	}
	if (json)
		cmd_print_json(json_incref(all));
	json_decref(all);
}
