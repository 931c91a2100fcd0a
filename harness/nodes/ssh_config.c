/* Reads the user's SSH configuration through 'ssh -G'. */
#include "harness/nodes/ssh_config.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/proc.h"

/* ssh -G prints defaults like settings. This value replaces the defaults, so that settings can be
 * recognised. */
#define UNSET "culprit.unset"
#define TIMEOUT_S 10

struct ssh_config {
	char *path; /* given to ssh: includes the user's file, then sets UNSET; NULL: no ssh */
};

static bool have_ssh(void)
{
	const char *const argv[] = {"ssh", "-V", NULL};

	return proc_run(argv, TIMEOUT_S, NULL, NULL) == 0;
}

static int write_config(const char *file, char **path, struct err *e)
{
	char text[2 * 4096], name[] = "/tmp/culprit-ssh-XXXXXX";
	int fd, rc;

	snprintf(text, sizeof(text), "%s%s%s\n%sHost *\nUser " UNSET "\nIdentityFile " UNSET "\n",
		file ? "Include \"" : "Include ~/.ssh/config", file ? file : "", file ? "\"" : "",
		file ? "" : "Host *\nInclude /etc/ssh/ssh_config\n");
	fd = mkstemp(name);
	if (fd < 0)
		return err_errno(e, -errno, "cannot write '%s'", name);
	rc = fd_write_all(fd, text, strlen(text));
	close(fd);
	if (rc) {
		unlink(name);
		return err_errno(e, rc, "cannot write '%s'", name);
	}
	*path = alloc_copy(name);
	return 0;
}

int ssh_config_open(const char *file, struct ssh_config **out, struct err *e)
{
	auto_free char *full = file ? realpath(file, NULL) : NULL;
	char *path = NULL;
	int rc = 0;

	if (file && !full)
		return err_errno(e, -errno, "cannot read SSH configuration '%s'", file);
	if (full && (strpbrk(full, "\"*?[\n") || strlen(full) > 4000))
		rc = err_set(e, -EINVAL,
			"SSH configuration '%.200s': its name must not have \", *, ? or [", full);
	else if (have_ssh())
		rc = write_config(full, &path, e);
	else if (file)
		rc = err_set(e, -ENOENT,
			"cannot read SSH configuration '%s' without ssh (install openssh-client)",
			file);
	if (rc)
		return rc;
	*out = alloc_zero(1, sizeof(**out));
	(*out)->path = path;
	return 0;
}

void ssh_config_free(struct ssh_config *c)
{
	if (!c)
		return;
	if (c->path)
		unlink(c->path);
	free(c->path);
	free(c);
}

struct bag {
	struct bag *next;
	void *thing;
};

struct bag *bag_new(void)
{
	return alloc_zero(1, sizeof(struct bag));
}

void bag_free(struct bag *b)
{
	for (struct bag *next; b; b = next) {
		next = b->next;
		free(b->thing);
		free(b);
	}
}

void *bag_keep(struct bag *b, void *thing)
{
	struct bag *more = alloc_zero(1, sizeof(*more));

	*more = (struct bag){.thing = thing, .next = b->next};
	b->next = more;
	return thing;
}

/* Appends a word to the list; the bag keeps the previous arrays. */
static void list_add(struct bag *bag, const char ***list, const char *word)
{
	const char **more;
	size_t n = 0;

	while (*list && (*list)[n])
		n++;
	more = bag_keep(bag, alloc_zero(n + 2, sizeof(*more)));
	for (size_t i = 0; i < n; i++)
		more[i] = (*list)[i];
	more[n] = bag_keep(bag, alloc_copy(word));
	*list = more;
}

/* Settings during parsing, with the values of tokens: ssh_config(5), TOKENS. */
struct tokens {
	const char *destination, *user;
	struct ssh_settings *s;
	struct bag *bag;
};

static const char *token(char letter, const struct tokens *t, char *room, size_t size)
{
	const struct passwd *me = getpwuid(geteuid());

	switch (letter) {
	case '%': return "%";
	case 'd': return me ? me->pw_dir : NULL;
	case 'h': return t->s->host_name;
	case 'i': snprintf(room, size, "%u", (unsigned)geteuid()); return room;
	case 'k': return t->s->host_key_alias ? t->s->host_key_alias : t->destination;
	case 'l':
	case 'L':
		if (gethostname(room, size))
			return NULL;
		room[letter == 'L' ? strcspn(room, ".") : strlen(room)] = '\0';
		return room;
	case 'n': return t->destination;
	case 'p': snprintf(room, size, "%u", t->s->port); return room;
	case 'r': return t->user ? t->user : t->s->user ? t->s->user : "root";
	case 'u': return me ? me->pw_name : NULL;
	default: return NULL;
	}
}

/* Expands '~/', %-tokens and ${NAME} in '*text', in place. -EINVAL if one has no value. */
static int expand(const char **text, const struct tokens *t, struct err *e)
{
	const struct passwd *me = getpwuid(geteuid());
	const char *at = *text, *with = "";
	char *out, room[256], name[64];
	size_t size;
	FILE *f = alloc_text(&out, &size);

	if (at[0] == '~' && at[1] == '/' && me) {
		fputs(me->pw_dir, f);
		at++;
	}
	for (; with && *at; at++) {
		int len = 0;

		if (at[0] == '%') {
			with = token(*++at, t, room, sizeof(room));
		} else if (sscanf(at, "${%63[A-Za-z0-9_]}%n", name, &len) == 1 && len) {
			with = getenv(name);
			at += len - 1;
		} else {
			fputc(*at, f);
			continue;
		}
		if (with)
			fputs(with, f);
	}
	fclose(f);
	if (!with) {
		free(out);
		return err_set(
			e, -EINVAL, "'%s' has a token or variable without a value here", *text);
	}
	*text = bag_keep(t->bag, out);
	return 0;
}

static int expand_list(const char **list, const struct tokens *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; list && list[i] && !rc; i++)
		rc = expand(&list[i], t, e);
	return rc;
}

/* One line of ssh -G: keyword (lower case), value. */
static void ssh_config_take_line(const struct tokens *t, char *line)
{
	struct ssh_settings *s = t->s;
	const struct {
		const char *name, *unset; /* the value that means "not set" */
		const char **text,
			***list; /* destination; each blank-separated word is appended to a list */
	} keywords[] = {
		{"hostname", "", .text = &s->host_name},
		{"user", UNSET, .text = &s->user},
		{"identityfile", UNSET, .list = &s->identities},
		{"identityagent", "SSH_AUTH_SOCK", .text = &s->auth_socket},
		{"hostkeyalias", "", .text = &s->host_key_alias},
		{"proxyjump", "none", .text = &s->proxy_jump},
		{"proxycommand", "none", .text = &s->proxy_command},
		{"userknownhostsfile", "none", .list = &s->known_hosts},
		{"globalknownhostsfile", "none", .list = &s->known_hosts},
	};
	char *value = strchr(line, ' '), *word, *rest = NULL;
	/* An identity is one file name and may contain blanks. */
	const char *between = strncmp(line, "identityfile ", 13) ? " " : "\n";

	if (!value)
		return;
	*value++ = '\0';
	if (!strcmp(line, "port"))
		s->port = (unsigned)strtoul(value, NULL, 10);
	if (!strcmp(line, "connecttimeout")) /* "none" */
		s->connect_timeout_s = (unsigned)strtoul(value, NULL, 10);
	if (!strcmp(line, "identitiesonly"))
		s->identities_only = !strcmp(value, "yes");
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++) {
		if (strcmp(keywords[i].name, line))
			continue;
		if (keywords[i].text && strcmp(value, keywords[i].unset))
			*keywords[i].text = bag_keep(t->bag, alloc_copy(value));
		for (word = keywords[i].list ? strtok_r(value, between, &rest) : NULL; word;
			word = strtok_r(NULL, between, &rest))
			if (strcmp(word, keywords[i].unset))
				list_add(t->bag, keywords[i].list, word);
	}
}

/* Reports the last line that ssh printed before it failed, ignoring "terminating". */
static void say_refusal(char *output, const char *destination, struct err *e)
{
	const char *why = "it gave no reason";
	char *line, *rest;

	for (line = output ? strtok_r(output, "\r\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\r\n", &rest))
		if (!strstr(line, "terminating"))
			why = line;
	err_set(e, -EINVAL, "ssh refuses its configuration for '%s': %.300s", destination, why);
}

static int run_ssh(struct ssh_config *c, const char *destination, const char *user, unsigned port,
	char **output, struct err *e)
{
	char port_text[12];
	const char *argv[16] = {"ssh", "-G", "-T", "-F", c->path};
	size_t n = 5;
	int rc;

	snprintf(port_text, sizeof(port_text), "%u", port);
	if (port) {
		argv[n++] = "-p";
		argv[n++] = port_text;
	}
	if (user) {
		argv[n++] = "-l";
		argv[n++] = user;
	}
	argv[n++] = "--";
	argv[n++] = destination;
	rc = proc_run(argv, TIMEOUT_S, output, e);
	if (rc > 0) {
		say_refusal(*output, destination, e);
		rc = -EINVAL;
	}
	return rc;
}

int ssh_config_lookup(struct ssh_config *c, const char *destination, const char *user,
	unsigned port, struct bag *bag, struct ssh_settings *out, struct err *e)
{
	struct ssh_settings s = {.port = port ? port : 22};
	const struct tokens t = {destination, user, &s, bag};
	auto_free char *output = NULL;
	char *line, *rest;
	int rc = 0;

	if (destination[0] == '-' || strpbrk(destination, " \t\r\n/"))
		return err_set(e, -EINVAL, "'%.100s' is not an SSH destination", destination);
	if (c->path)
		rc = run_ssh(c, destination, user, port, &output, e);
	if (rc)
		return rc;
	for (line = output ? strtok_r(output, "\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\n", &rest))
		ssh_config_take_line(&t, line);
	if (!s.host_name)
		s.host_name = bag_keep(bag, alloc_copy(destination));
	if (!s.port || s.port > 65535)
		rc = err_set(e, -EINVAL, "the SSH configuration for '%s' has no valid port",
			destination);
	if (!rc)
		rc = expand_list(s.identities, &t, e);
	if (!rc)
		rc = expand_list(s.known_hosts, &t, e);
	/* "$NAME" has its own syntax here; "${NAME}" is expanded as in any path. */
	if (!rc && s.auth_socket && s.auth_socket[0] == '$' && s.auth_socket[1] != '{') {
		const char *value = getenv(s.auth_socket + 1);

		s.auth_socket = bag_keep(bag, alloc_copy(value ? value : "none"));
	} else if (!rc && s.auth_socket) {
		rc = expand(&s.auth_socket, &t, e);
	}
	if (!rc)
		*out = s;
	return rc;
}
