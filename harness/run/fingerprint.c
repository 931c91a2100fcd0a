/* Compares what nodes look like before and after an attempt. */
#include "harness/run/fingerprint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/jget.h"

#define CALL_TIMEOUT_S 30

int fingerprint_pids(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	(void)ctx, (void)e;
	if (json_array_size(m->pids))
		*args = json_pack("{s:O}", "pids", m->pids);
	return 0;
}

int fingerprint_take(struct cluster *c, json_t **out, struct err *e)
{
	json_t *all;
	int rc = cluster_ask(c, "fingerprint", fingerprint_pids, NULL, CALL_TIMEOUT_S, &all, e);

	if (rc)
		json_decref(all);
	else
		*out = all;
	return rc;
}

#define WORDS_SHOWN 160 /* characters of what has changed */

/* Is 'text' one of the list's? */
static bool fingerprint_has(const json_t *list, const char *text)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		if (!strcmp(json_string_value(v), text))
			return true;
	}
	return false;
}

/* The first string of 'list' that 'other' lacks, or NULL. */
static const char *first_not_in(const json_t *list, const json_t *other)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		if (!fingerprint_has(other, json_string_value(v)))
			return json_string_value(v);
	}
	return NULL;
}

/* What the agent lists, as users call it. An entry begins with its name, one word, unless all of it
 * is one. */
struct listed {
	const char *key, *noun;
	bool one_name; /* all of it */
	bool of_fault; /* else it is the machine's or the file system's */
};

static const struct listed all_listed[] = {
	{"nft", "packet filter table", true, true},
	{"processes", "process of a fault", true, true},
	{"journals", "undo journal of session", true, true},
	{"mounts", "mount", false, false},
	{"block_devices", "block device", false, false},
	{"sockets", "listening socket", true, false},
	{"services", "file-system process", false, false},
	{NULL, "entry", true, false},
};

static const struct listed *listed_as(const char *key)
{
	const struct listed *l = all_listed;

	while (l->key && strcmp(l->key, key))
		l++;
	return l;
}

static int name_length(const struct listed *l, const char *text)
{
	return (int)(l->one_name ? strlen(text) : strcspn(text, " "));
}

/* The string of 'list' with the name of 'text' that 'other' lacks, or NULL. */
static const char *renewed(
	const struct listed *l, const char *text, const json_t *list, const json_t *other)
{
	const int n = name_length(l, text);
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v) {
		const char *candidate = json_string_value(v);

		if (name_length(l, candidate) == n && !strncmp(candidate, text, (size_t)n) &&
			!fingerprint_has(other, candidate))
			return candidate;
	}
	return NULL;
}

/* A part of a text, cut between two words if it is long. */
static void print_words(FILE *f, const char *text, size_t n)
{
	size_t shown = n;

	if (n > WORDS_SHOWN)
		for (shown = WORDS_SHOWN; shown && text[shown] != ' ';)
			shown--;
	if (n > WORDS_SHOWN && !shown)
		shown = WORDS_SHOWN;
	fprintf(f, "%.*s%s", (int)shown, text, n > shown ? " ..." : "");
}

/* "NEW, was OLD" of the words between those that both texts begin and end with. */
static void print_change(FILE *f, const char *was, const char *is)
{
	size_t begin = 0, n_was = strlen(was), n_is = strlen(is), same = 0;

	for (size_t i = 0; was[i] && was[i] == is[i]; i++)
		begin = was[i] == ' ' ? i + 1 : begin;
	for (size_t i = 1; i <= n_was - begin && i <= n_is - begin; i++) {
		if (was[n_was - i] != is[n_is - i])
			break;
		same = was[n_was - i] == ' ' ? i : same;
	}
	print_words(f, is + begin, n_is - begin - same);
	fputs(", was ", f);
	print_words(f, was + begin, n_was - begin - same);
}

/* One sentence on what differs first in a list of a node. */
static char *fingerprint_describe(
	const char *node, const char *key, const json_t *was, const json_t *is)
{
	const struct listed *l = listed_as(key);
	const char *lost = first_not_in(was, is), *new = first_not_in(is, was);
	const char *entry = lost ? lost : new, *other = lost ? renewed(l, lost, is, was) : NULL;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return alloc_format("%s: %s has changed", node, key);
	fprintf(f, "%s: %s '", node, l->noun);
	print_words(f, entry, (size_t)name_length(l, entry));
	if (other) {
		fputs("' has changed: ", f);
		print_change(f, lost, other);
	} else {
		fputs(lost ? "' is missing" : "' is new", f);
	}
	fputs(l->of_fault && !lost
			? "; 'culprit undo' removes what a fault left"
			: "; restore it, or end the run and resume it with the node as it is",
		f);
	fclose(f);
	return text;
}

int fingerprint_compare(const json_t *before, const json_t *after, struct err *e)
{
	const char *name, *key;
	json_t *was, *value;

	json_object_foreach((json_t *)before, name, was) {
		json_object_foreach(was, key, value) {
			const json_t *is = jget(jget(after, name), key);
			auto_free char *text = NULL;

			if (!first_not_in(value, is) && !first_not_in(is, value))
				continue;
			text = fingerprint_describe(name, key, value, is);
			return err_set(e, -EBUSY, "%s", text);
		}
	}
	return 0;
}
