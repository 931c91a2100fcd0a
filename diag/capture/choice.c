/* Parses and prints the selection of calls to record. */
#include "diag/capture/choice.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/auto.h"
#include "harness/base/near.h"

static const char *const kinds[] = {"network", "disk", "fuse", "metadata", "other", NULL};

enum { MAX_PID = 1 << 22 };

static int too_many(const char *word, const char *text, struct err *e)
{
	return err_set(e, -EINVAL, "%s: too many entries for a filter, from '%s' on", word, text);
}

static int add_process(struct choice *c, const char *text, struct err *e)
{
	char *end;
	long pid = strtol(text, &end, 10);

	if (isdigit((unsigned char)*text) && !*end) {
		if (pid <= 0 || pid >= MAX_PID)
			return err_set(e, -EINVAL, "process: '%s' is not a process number", text);
		if (c->n_pids == CHOICE_PIDS)
			return too_many("process", text, e);
		c->pids[c->n_pids++] = (pid_t)pid;
		return 0;
	}
	if (strlen(text) >= CHOICE_NAME)
		return err_set(e, -EINVAL,
			"process: the kernel keeps 15 bytes of a name, and '%s' is longer", text);
	if (c->n_names == CHOICE_NAMES)
		return too_many("process", text, e);
	strcpy(c->names[c->n_names++], text);
	return 0;
}

static int add_kind(struct choice *c, const char *text, struct err *e)
{
	char hint[96];

	for (unsigned i = 0; kinds[i]; i++)
		if (!strcmp(text, kinds[i])) {
			c->calls |= 1u << i;
			return 0;
		}
	return err_set(e, -EINVAL,
		"calls: unknown kind '%s'; kinds are network, disk, fuse, metadata, other%s", text,
		near_hint(text, kinds, hint));
}

static int add_client(struct choice *c, const char *text, struct err *e)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, &a.s6_addr[12]) != 1 && inet_pton(AF_INET6, text, &a) != 1)
		return err_set(e, -EINVAL, "client: '%s' is not an IP address", text);
	if (c->n_clients == CHOICE_CLIENTS)
		return too_many("client", text, e);
	c->clients[c->n_clients++] = a;
	return 0;
}

static int add_path(struct choice *c, const char *text, struct err *e)
{
	size_t n = strlen(text);

	if (*text != '/')
		return err_set(e, -EINVAL, "path: '%s' is not absolute", text);
	if (n >= CHOICE_PATH)
		return err_set(e, -EINVAL, "a path to filter by must be shorter than %d bytes",
			CHOICE_PATH);
	if (c->n_paths == CHOICE_PATHS)
		return too_many("path", text, e);
	strcpy(c->paths[c->n_paths++], text);
	return 0;
}

static const struct {
	const char *word;
	int (*add)(struct choice *c, const char *text, struct err *e);
} adders[] = {
	{"process", add_process}, {"calls", add_kind}, {"client", add_client}, {"path", add_path}};

static const char *const words[] = {"process", "calls", "client", "path", "none", NULL};

/* Decodes %XX to a byte. False: not two digits, or a NUL. */
static bool decode(char *text)
{
	char *to = text;
	unsigned byte;

	for (; *text; text++, to++) {
		*to = *text;
		if (*text != '%')
			continue;
		if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]) ||
			sscanf(text + 1, "%2x", &byte) != 1 || !byte)
			return false;
		*to = (char)byte;
		text += 2;
	}
	*to = '\0';
	return true;
}

int choice_add(struct choice *c, const char *word, const char *list, struct err *e)
{
	auto_free char *copy = strdup(list);
	char *rest = copy, *one, hint[96];
	size_t i = 0;
	int rc = 0;

	if (!copy)
		return err_errno(e, -ENOMEM, "cannot read a filter");
	while (i < sizeof(adders) / sizeof(adders[0]) && strcmp(adders[i].word, word))
		i++;
	if (i == sizeof(adders) / sizeof(adders[0]))
		return err_set(e, -EINVAL,
			"a filter has no word '%.100s'; it has process=, calls=, client=, path= "
			"and none%s",
			word, near_hint(word, words, hint));
	while (!rc && (one = strsep(&rest, ",")))
		rc = !decode(one) ? err_set(e, -EINVAL, "%s: %%XX with two digits", word)
			: !*one   ? err_set(e, -EINVAL, "%s: an empty entry", word)
				  : adders[i].add(c, one, e);
	return rc;
}

int choice_parse(const char *line, struct choice *c, struct err *e)
{
	auto_free char *copy = strdup(line);
	struct choice *found;
	auto_free void *holds = calloc(1, sizeof(*found));
	char *rest = copy, *word, *list, seen[sizeof(words) / sizeof(words[0])] = "";
	bool none = false;
	size_t n = 0;
	int rc = 0;

	if (!copy || !holds)
		return err_errno(e, -ENOMEM, "cannot read a filter");
	found = holds;
	while (!rc && (word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		n++;
		if (!strcmp(word, "none")) {
			none = true;
			continue;
		}
		list = strchr(word, '=');
		if (list)
			*list++ = '\0';
		for (size_t i = 0; words[i]; i++)
			if (!strcmp(words[i], word) && seen[i]++)
				rc = err_set(e, -EINVAL, "%s= twice in one filter", word);
		rc = rc ?: choice_add(found, word, list ? list : "", e);
	}
	if (!rc && (!n || (none && n > 1)))
		rc = err_set(e, -EINVAL,
			n ? "'none' must be the only word"
			  : "an empty filter; 'none' records everything");
	if (!rc)
		*c = *found;
	return rc;
}

static void put_encoded(FILE *f, const char *text)
{
	for (; *text; text++) {
		const unsigned char byte = (unsigned char)*text;

		if (byte <= ' ' || byte == ',' || byte == '%' || byte == 0x7f)
			fprintf(f, "%%%02x", byte);
		else
			putc(byte, f);
	}
}

/* Prints the separator or word before the next entry. */
static void put_before(FILE *f, size_t *n, const char *word)
{
	if ((*n)++)
		putc(',', f);
	else
		fprintf(f, "%s%s=", ftell(f) ? " " : "", word);
}

static void put_processes(FILE *f, const struct choice *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_names; i++) {
		put_before(f, &n, "process");
		put_encoded(f, c->names[i]);
	}
	for (size_t i = 0; i < c->n_pids; i++) {
		put_before(f, &n, "process");
		fprintf(f, "%d", (int)c->pids[i]);
	}
}

static void put_clients(FILE *f, const struct choice *c)
{
	char text[INET6_ADDRSTRLEN];
	size_t n = 0;

	for (size_t i = 0; i < c->n_clients; i++) {
		const struct in6_addr *a = &c->clients[i];
		const bool v4 = IN6_IS_ADDR_V4MAPPED(a);

		inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? (const void *)&a->s6_addr[12] : a, text,
			sizeof(text));
		put_before(f, &n, "client");
		fputs(text, f);
	}
}

char *choice_text(const struct choice *c)
{
	char *text = NULL;
	size_t size, n = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_processes(f, c);
	for (unsigned i = 0; kinds[i]; i++)
		if (c->calls & 1u << i) {
			put_before(f, &n, "calls");
			fputs(kinds[i], f);
		}
	put_clients(f, c);
	n = 0;
	for (size_t i = 0; i < c->n_paths; i++) {
		put_before(f, &n, "path");
		put_encoded(f, c->paths[i]);
	}
	if (choice_is_all(c))
		fputs("none", f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

bool choice_is_all(const struct choice *c)
{
	return !c->n_names && !c->n_pids && !c->calls && !c->n_clients && !c->n_paths;
}
