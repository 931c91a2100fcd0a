/* Works out how to reach a host over SSH. */
#include "harness/nodes/reach.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/lua/luax.h"

#define JUMPS_MAX 8
#define FROM_FILE "inventory"
#define FROM_SSH "SSH configuration"
#define FROM_DEFAULT "default"

static void origin(struct host *h, const char *what, const char *from, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void origin(struct host *h, const char *what, const char *from, const char *fmt, ...)
{
	char value[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	json_array_append_new(h->origins,
		json_pack("{s:s, s:s, s:s}", "what", what, "value", value, "from", from));
}

/* Splits "[user@]host[:port]" or "[user@][host]:port", with or without "ssh://", in place. */
static int split_jump(char *text, char **user, char **host, unsigned *port, struct err *e)
{
	char *at, *colon, *end;
	unsigned long number = 0;

	*user = NULL;
	*port = 0;
	if (!strncmp(text, "ssh://", 6))
		text += 6;
	at = strrchr(text, '@');
	if (at) {
		*at = '\0';
		*user = text;
		text = at + 1;
	}
	if (*text == '[' && (end = strchr(text, ']'))) {
		text++;
		*end = '\0';
		colon = end[1] == ':' ? end + 1 : NULL;
	} else {
		colon = strrchr(text, ':');
		/* Several colons without brackets: an IPv6 address without a port. */
		if (colon && strchr(text, ':') != colon)
			colon = NULL;
	}
	*host = text;
	if (colon) {
		*colon = '\0';
		number = strtoul(colon + 1, &end, 10);
		if (*end || !number || number > 65535)
			return err_set(e, -EINVAL, "'%.20s' is not a port", colon + 1);
		*port = (unsigned)number;
	}
	return *text && (!*user || **user) ? 0 : err_set(e, -EINVAL, "the host is missing");
}

/* The route through jump hosts, each looked up like any destination. The first jump host may
 * itself have jump hosts. */
struct way {
	struct inventory *inv;
	struct ssh_config *config;
	struct node_spec specs[JUMPS_MAX];
	size_t n;
};

static struct node_spec spec_from(struct way *w, const char *name, const struct ssh_settings *s)
{
	return (struct node_spec){.name = bag_keep(w->inv->bag, alloc_copy(name)),
		.address = s->host_name,
		.port = s->port,
		.user = s->user,
		.identities = s->identities,
		.identities_only = s->identities_only,
		.auth_socket = s->auth_socket,
		.host_key_alias = s->host_key_alias,
		.connect_timeout_s = s->connect_timeout_s,
		.known_hosts = s->known_hosts};
}

static int add_jumps(struct way *w, const char *list, bool first_has_own, struct err *e);

static int add_jump(struct way *w, char *text, bool has_own, struct err *e)
{
	struct ssh_settings s = {0};
	struct node_spec spec;
	char *user, *host;
	unsigned port;
	int rc;

	rc = split_jump(text, &user, &host, &port, e);
	if (rc)
		return rc;
	rc = ssh_config_lookup(w->config, host, user, port, w->inv->bag, &s, e);
	if (rc)
		return rc;
	if (has_own && s.proxy_jump)
		rc = add_jumps(w, s.proxy_jump, true, e);
	else if (has_own && s.proxy_command)
		rc = err_set(e, -EINVAL,
			"jump host '%s' has a ProxyCommand, which culprit does not run: use "
			"ProxyJump",
			host);
	if (!rc && w->n == JUMPS_MAX)
		rc = err_set(e, -ELOOP, "more than %d jump hosts: do they form a loop?", JUMPS_MAX);
	if (!rc) {
		spec = spec_from(w, host, &s);
		/* As in ssh, the default user of a jump host is the caller, not root. */
		if (user || !spec.user) {
			const struct passwd *me = getpwuid(geteuid());

			user = user ? user : me ? me->pw_name : "root";
			spec.user = bag_keep(w->inv->bag, alloc_copy(user));
		}
		w->specs[w->n++] = spec;
	}
	return rc;
}

/* Appends the hops of "a,b,...". Only the first one's own jump hosts are used: the others are
 * reached through it. */
static int add_jumps(struct way *w, const char *list, bool first_has_own, struct err *e)
{
	static int depth;
	auto_free char *copy = alloc_copy(list);
	char *rest, *text;
	int rc = 0;

	if (++depth > JUMPS_MAX)
		rc = err_set(e, -ELOOP, "more than %d jump hosts: do they form a loop?", JUMPS_MAX);
	for (text = strtok_r(copy, ", ", &rest); text && !rc; text = strtok_r(NULL, ", ", &rest)) {
		rc = add_jump(w, text, first_has_own, e);
		first_has_own = false;
	}
	depth--;
	return rc;
}

static int take_jumps(struct way *w, const char *list, struct node_spec *spec, struct err *e)
{
	struct node_spec *specs;
	int rc = add_jumps(w, list, true, e);

	if (rc)
		return err_prefix(e, rc, "jump hosts '%.200s'", list);
	specs = bag_keep(w->inv->bag, alloc_zero(w->n, sizeof(*specs)));
	memcpy(specs, w->specs, w->n * sizeof(*specs));
	spec->jumps = specs;
	spec->n_jumps = w->n;
	return 0;
}

/* The inventory takes precedence. Its strings are already in the bag. */
static void override(struct inventory *inv, const struct entry *en, struct node_spec *spec)
{
	if (en->ssh_port)
		spec->port = (unsigned)en->ssh_port;
	if (en->user)
		spec->user = en->user;
	if (en->host_key)
		spec->host_key = en->host_key;
	if (en->identity)
		spec->identity = bag_keep(inv->bag, luax_beside(inv->path, en->identity));
	spec->sudo = en->become != NULL;
}

/* The existing files, separated by blanks; 'otherwise' if the list is empty. */
static const char *existing(const char *const *files, const char *otherwise, char text[400])
{
	size_t len = 0;

	for (size_t i = 0; files && files[i] && len < 400; i++)
		if (!access(files[i], F_OK))
			len += (size_t)snprintf(
				text + len, 400 - len, "%s%s", len ? " " : "", files[i]);
	return !files ? otherwise : len ? text : "no file exists";
}

static const char *from(bool file, bool ssh)
{
	return file ? FROM_FILE : ssh ? FROM_SSH : FROM_DEFAULT;
}

static void say_origins(struct host *h, const struct entry *en, const char *dest)
{
	const struct node_spec *s = &h->ssh;
	bool named = en->ssh || en->address, resolved = strcmp(s->address, dest) != 0,
	     agent = !s->identities_only && (s->auth_socket || getenv("SSH_AUTH_SOCK"));
	char list[400];

	origin(h, "destination", from(named, false), "%s", dest);
	origin(h, "address", from(named && !resolved, resolved), "%s", s->address);
	origin(h, "port", from(en->ssh_port, s->port != 22), "%u", s->port);
	origin(h, "user", from(en->user, s->user), "%s%s", s->user ? s->user : "root",
		s->sudo ? ", root by sudo" : "");
	if (s->identity)
		origin(h, "key", FROM_FILE, "%s", s->identity);
	else
		origin(h, "key", from(false, s->identities), "%s%s", agent ? "ssh-agent, " : "",
			existing(s->identities, "~/.ssh/id_*", list));
	for (size_t i = 0; i < s->n_jumps; i++)
		origin(h, "jump host", from(en->jump, true), "%s@%s:%u", s->jumps[i].user,
			s->jumps[i].address, s->jumps[i].port);
	if (s->host_key)
		origin(h, "host key", FROM_FILE, "%.60s...", s->host_key);
	else
		origin(h, "host key", from(false, s->known_hosts), "known hosts: %s",
			existing(s->known_hosts, "~/.ssh/known_hosts", list));
	if (s->connect_timeout_s)
		origin(h, "connect timeout", FROM_SSH, "%u s", s->connect_timeout_s);
}

int reach(struct inventory *inv, struct ssh_config *config, const struct entry *en, struct host *h,
	struct err *e)
{
	const char *dest = en->ssh ? en->ssh : en->address ? en->address : en->name;
	struct way way = {.inv = inv, .config = config};
	struct ssh_settings s = {.port = 22};
	const char *jump = en->jump;
	int rc = 0;

	if (config)
		rc = ssh_config_lookup(
			config, dest, en->user, (unsigned)en->ssh_port, inv->bag, &s, e);
	else
		s.host_name = bag_keep(inv->bag, alloc_copy(dest));
	if (rc)
		return rc;
	h->origins = json_array();
	h->ssh = spec_from(&way, en->name, &s);
	override(inv, en, &h->ssh);
	if (!jump)
		jump = s.proxy_jump;
	if (jump && !strcmp(jump, "none"))
		jump = NULL;
	if (!en->jump && !jump && s.proxy_command)
		rc = err_set(e, -EINVAL,
			"the SSH configuration has a ProxyCommand for '%s', which culprit does not "
			"run: use ProxyJump, or give jump = \"none\" here",
			dest);
	if (!rc && jump && !config)
		rc = err_set(e, -EINVAL,
			"'jump' needs the SSH configuration, which ssh_config = \"none\" "
			"turns off");
	if (!rc && jump)
		rc = take_jumps(&way, jump, &h->ssh, e);
	if (!rc) {
		/* Without an address, assume that peers know the host by its HostName. */
		h->address = alloc_copy(en->address ? en->address : h->ssh.address);
		say_origins(h, en, dest);
	}
	return rc;
}
