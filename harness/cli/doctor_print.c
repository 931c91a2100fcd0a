#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/doctor.h"

/* 'text' in the columns from 'indent' to 80; the cursor is at 'indent' already. */
static void print_wrapped(const char *text, size_t indent)
{
	size_t room = 80 - indent, len, cut;

	for (len = strlen(text); len > room; len = strlen(text)) {
		for (cut = room; cut && text[cut] != ' '; cut--)
			;
		if (!cut)
			cut = strcspn(text, " ");
		if (cut == len)
			break;
		printf("%.*s\n%*s", (int)cut, text, (int)indent, "");
		text += cut + 1;
	}
	puts(text);
}

static void print_line(
	const char *level, const char *indent, const char *what, int width, const char *text)
{
	printf("  %-4s  %s%-*s  ", strcmp(level, "bad") ? level : "BAD", indent,
		width - (int)strlen(indent), what);
	print_wrapped(text, (size_t)width + 10);
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

/* A section of checks that are not about one node. */
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

/* Of node 'where', what stands in the table for 'what'; "" if nothing does. */
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
		if (!any) {
			printf("\n  %-9s", "node");
			for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
				printf(" %-*s", columns[k].width, columns[k].title);
			putchar('\n');
		}
		any = true;
		printf("  %-9s", where);
		for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++)
			printf(" %-*s", columns[k].width, cell(checks, where, columns[k].what));
		putchar('\n');
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
			print_wrapped(member(o, "value"), 34);
		}
	}
	if (json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(all);
}
