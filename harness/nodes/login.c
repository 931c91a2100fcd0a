/*
 * Authentication, with keys only: the named key, or like ssh the keys of ssh-agent and then key
 * files.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/nodes/node_impl.h"

int login_no_passphrase(
	const char *prompt, char *buf, size_t len, int echo, int verify, void *userdata)
{
	(void)prompt, (void)buf, (void)len, (void)echo, (void)verify, (void)userdata;
	return -1;
}

static int import_key(const char *path, ssh_key *key, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_errno(e, -errno, "cannot use private key '%s'", path);
	if (st.st_mode & 077)
		return err_set(e, -EACCES,
			"private key '%s' is accessible to other users: chmod 600 it", path);
	if (ssh_pki_import_privkey_file(path, NULL, login_no_passphrase, NULL, key) != SSH_OK)
		return err_set(e, -EACCES,
			"cannot read private key '%s': it is damaged, or has a passphrase (then"
			" add it to ssh-agent and leave identity out)",
			path);
	return 0;
}

static int try_key(struct hop *h, const char *path, struct err *e)
{
	ssh_key key = NULL;
	int auth;

	if (import_key(path, &key, e) < 0)
		return SSH_AUTH_DENIED;
	auth = ssh_userauth_publickey(h->session, NULL, key);
	ssh_key_free(key);
	return auth;
}

static bool have_agent(const struct hop *h)
{
	const char *path = h->auth_socket ? h->auth_socket : getenv("SSH_AUTH_SOCK");

	return path && *path && strcmp(path, "none");
}

/* Tries all keys in ssh's order. 'why' is the reason why a key file was not usable, or "". */
static int try_all(struct hop *h, struct err *why)
{
	int auth = SSH_AUTH_DENIED;
	size_t i;

	/* ssh -G always lists the default keys, so the list is empty only without ssh. */
	if (!h->identities)
		return ssh_userauth_publickey_auto(h->session, NULL, NULL);
	if (!h->identities_only && have_agent(h))
		auth = ssh_userauth_agent(h->session, NULL);
	for (i = 0; h->identities[i] && auth == SSH_AUTH_DENIED; i++)
		if (!access(h->identities[i], F_OK))
			auth = try_key(h, h->identities[i], why);
	/* libssh cannot ask the agent for a single key: all of its keys are offered, so the agent
	 * is used only if necessary. */
	if (auth == SSH_AUTH_DENIED && h->identities_only && *why->text && have_agent(h))
		auth = ssh_userauth_agent(h->session, NULL);
	return auth;
}

__attribute__((format(printf, 2, 3))) static void append(struct err *e, const char *fmt, ...)
{
	size_t n = strlen(e->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text + n, sizeof(e->text) - n, fmt, ap);
	va_end(ap);
}

/* Reports the host's accepted login methods and the end of its banner. */
static void add_host_words(struct hop *h, struct err *e)
{
	static const struct {
		int bit;
		const char *name;
	} methods[] = {{SSH_AUTH_METHOD_PUBLICKEY, "public keys"},
		{SSH_AUTH_METHOD_PASSWORD, "password"},
		{SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
		{SSH_AUTH_METHOD_HOSTBASED, "hostbased"}, {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi"}};
	int offered = ssh_userauth_list(h->session, NULL);
	char *banner = ssh_get_issue_banner(h->session), line[200];
	const char *before = "; the host accepts ";
	struct text_tail tail = {""};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (offered & methods[i].bit) {
			append(e, "%s%s", before, methods[i].name);
			before = ", ";
		}
	if (banner)
		text_tail_add(&tail, banner, strlen(banner));
	text_tail_line(&tail, line, sizeof(line));
	if (line[0])
		append(e, "; its banner ends with '%s'", line);
	ssh_string_free_char(banner);
}

/* Returns -EACCES. */
static int refused(struct hop *h, int auth, const struct err *why, struct err *e)
{
	if (auth == SSH_AUTH_PARTIAL)
		return err_set(e, -EACCES,
			"%s@%s:%u requires a password or a code as well as a key, which culprit"
			" does not send",
			h->user, h->address, h->port);
	if (h->identity)
		return err_set(e, -EACCES,
			"%s@%s:%u does not accept key '%s': add its public half to"
			" ~/.ssh/authorized_keys there",
			h->user, h->address, h->port, h->identity);
	return err_set(e, -EACCES,
		"%s@%s:%u accepts no key of ssh-agent or %s: give identity in the"
		" inventory, or add a key to ~/.ssh/authorized_keys there%s%.300s",
		h->user, h->address, h->port,
		h->identities && h->identities[0] ? h->identities[0] : "~/.ssh",
		*why->text ? "; " : "", why->text);
}

int hop_authenticate(struct hop *h, struct err *e)
{
	struct err why = {""};
	ssh_key key = NULL;
	int rc, auth;

	if (h->identity) {
		rc = import_key(h->identity, &key, e);
		if (rc < 0)
			return rc;
		auth = ssh_userauth_publickey(h->session, NULL, key);
		ssh_key_free(key);
	} else {
		auth = try_all(h, &why);
	}
	if (auth == SSH_AUTH_SUCCESS)
		return 0;
	if (auth == SSH_AUTH_ERROR)
		/* A refusal is SSH_AUTH_DENIED or SSH_AUTH_PARTIAL, not an error. */
		return hop_error(h, e, "authentication", "no end of authentication");
	rc = refused(h, auth, &why, e);
	add_host_words(h, e);
	return rc;
}
