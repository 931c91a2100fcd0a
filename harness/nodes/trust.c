/*
 * Checks host keys against the key pinned in the inventory, or against known_hosts. Never learns
 * a key on first use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/nodes/node_impl.h"

static char *fingerprint(ssh_key key)
{
	unsigned char *hash = NULL;
	size_t len = 0;
	char *text = NULL;

	if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &len) == 0)
		text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, len);
	ssh_clean_pubkey_hash(&hash);
	return text;
}

/* Splits "TYPE BASE64 [COMMENT]". */
int hop_pin(struct hop *h, ssh_key *key, char **type, struct err *e)
{
	char *name = NULL, *blob = NULL;
	int rc = 0;

	if (!h->host_key)
		return 0;
	if (sscanf(h->host_key, "%ms %ms", &name, &blob) != 2 ||
		ssh_pki_import_pubkey_base64(blob, ssh_key_type_from_name(name), key) != SSH_OK) {
		rc = err_set(e, -EINVAL,
			"host_key '%.40s' is not a public key: copy the line from"
			" /etc/ssh/ssh_host_ed25519_key.pub on the host",
			h->host_key);
		free(name);
		name = NULL;
	}
	free(blob);
	*type = name;
	return rc;
}

static int check_pinned(struct hop *h, ssh_key offered, ssh_key pinned, struct err *e)
{
	char *is, *was;
	int rc;

	if (!ssh_key_cmp(offered, pinned, SSH_KEY_CMP_PUBLIC))
		return 0;
	is = fingerprint(offered);
	was = fingerprint(pinned);
	rc = err_set(e, -EKEYREJECTED,
		"host key of %s:%u has changed: the inventory has %s, the host shows %s;"
		" if it was reinstalled, put the new key into host_key;"
		" otherwise suspect an attack",
		h->address, h->port, was ? was : "?", is ? is : "?");
	ssh_string_free_char(is);
	ssh_string_free_char(was);
	return rc;
}

static int check_known(struct hop *h, ssh_key offered, struct err *e)
{
	enum ssh_known_hosts_e known = ssh_session_is_known_server(h->session);
	bool jump = h != &h->node->hops[h->node->n_hops - 1];
	char name[300], *is;
	int rc;

	if (known == SSH_KNOWN_HOSTS_OK)
		return 0;
	/* Formats the host's name like known_hosts. */
	if (h->host_key_alias || h->port == 22)
		snprintf(name, sizeof(name), "%s",
			h->host_key_alias ? h->host_key_alias : h->address);
	else
		snprintf(name, sizeof(name), "[%s]:%u", h->address, h->port);
	is = fingerprint(offered);
	if (known == SSH_KNOWN_HOSTS_CHANGED || known == SSH_KNOWN_HOSTS_OTHER)
		rc = err_set(e, -EKEYREJECTED,
			"host key of %s:%u is not the one in known_hosts: the host shows %s;"
			" if it was reinstalled, run ssh-keygen -R '%s' and ssh to it once;"
			" otherwise suspect an attack",
			h->address, h->port, is ? is : "?", name);
	else
		rc = err_set(e, -EKEYREJECTED,
			"host key of %s:%u is unknown (%s): %sssh to it once by hand", h->address,
			h->port, is ? is : "?", jump ? "" : "give host_key in the inventory, or ");
	ssh_string_free_char(is);
	return rc;
}

int hop_trust(struct hop *h, ssh_key pinned, struct err *e)
{
	ssh_key offered = NULL;
	int rc;

	if (ssh_get_server_publickey(h->session, &offered) != SSH_OK)
		return hop_error(h, e, "the SSH handshake", "no host key");
	rc = pinned ? check_pinned(h, offered, pinned, e) : check_known(h, offered, e);
	ssh_key_free(offered);
	return rc;
}
