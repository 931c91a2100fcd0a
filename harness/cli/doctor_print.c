#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/doctor.h"

static void print_line(
	const char *level, const char *indent, const char *what, int width, const char *text)
{
	printf("  %-4s  %s%-*s  ", strcmp(level, "bad") ? level : "BAD", indent,
		width - (int)strlen(indent), what);
	print_wrapped(stdout, width + 10, text);
}

static const char *member(const json_t *check, const char *name)
{
	const char *text = json_string_value(json_object_get(check, name));

	return text ? text : "";
}

static bool is_node(const json_t *check)
{
	const char *where = member(check, "where");

	return strcmp(where, "here") && strcmp(where, "cluster") && strcmp(where, "faults");
}

/* Prints the checks of one section: this machine, the cluster, or the faults. */
static void print_section(const json_t *checks, const char *where)
{
	bool any = false;

	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i);

		if (strcmp(member(c, "where"), where))
			continue;
		if (!any)
			printf("%s%s\n", strcmp(where, "here") ? "\n" : "", where);
		any = true;
		print_line(member(c, "level"), "", member(c, "what"),
			strcmp(where, "faults") ? 14 : 17, member(c, "text"));
	}
}

static void print_nodes(const json_t *checks)
{
	const char *where = "";

	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i);

		if (!is_node(c))
			continue;
		if (!*where)
			puts("\nnodes");
		if (strcmp(where, member(c, "where")))
			print_line(
				member(c, "level"), "", member(c, "where"), 14, member(c, "text"));
		else if (strcmp(member(c, "level"), "ok") ||
			!strcmp(member(c, "what"), "file system"))
			print_line(
				member(c, "level"), "  ", member(c, "what"), 14, member(c, "text"));
		where = member(c, "where");
	}
}

/* The table's entry for check 'what' of node 'where', or "". */
static const char *cell(const json_t *checks, const char *where, const char *what)
{
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i);

		if (!strcmp(member(c, "where"), where) && !strcmp(member(c, "what"), what) &&
			*member(c, "short"))
			return member(c, "short");
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

	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i);

		if (!is_node(c) || !strcmp(where, member(c, "where")))
			continue;
		where = member(c, "where");
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
	json_t *all = json_object();

	for (size_t i = 0; i < inv->n_hosts; i++) {
		const struct host *h = &inv->hosts[i];

		json_object_set(all, h->ssh.name, h->origins);
		if (json)
			continue;
		puts(h->ssh.name);
		for (size_t k = 0; k < json_array_size(h->origins); k++) {
			const json_t *o = json_array_get(h->origins, k);

			printf("  %-12s %-18s ", member(o, "what"), member(o, "from"));
			print_wrapped(stdout, 34, member(o, "value"));
		}
	}
	if (json)
		cmd_print_json(json_incref(all));
	json_decref(all);
}
