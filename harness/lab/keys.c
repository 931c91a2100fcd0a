#include <errno.h>
#include <libssh/libssh.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

/* Makes a key pair at 'path' and 'path'.pub; '*public_key' is "ssh-ed25519 AAAA...". */
static int key_make(const char *path, char **public_key, struct err *e)
{
	char pub[PATH_MAX + 40], *base64 = NULL, *text = NULL;
	ssh_key key = NULL;
	int rc = -EIO;

	if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) != SSH_OK ||
		ssh_pki_export_privkey_file(key, NULL, NULL, NULL, path) != SSH_OK ||
		ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK || chmod(path, 0600) < 0) {
		err_set(e, rc, "cannot make the key '%s'", path);
		goto out;
	}
	text = alloc_format("ssh-ed25519 %s\n", base64);
	snprintf(pub, sizeof(pub), "%s.pub", path);
	rc = file_write_atomic(pub, 0644, text, strlen(text), e);
	if (!rc) {
		text[strlen(text) - 1] = '\0';
		*public_key = text;
		text = NULL;
	}
out:
	free(text);
	ssh_string_free_char(base64);
	ssh_key_free(key);
	return rc;
}

static const char sshd_config[] = "# sshd of a lab node: this lab's key, nothing else.\n"
				  "HostKey " LAB_NODE_RUN "/host_key\n"
				  "AuthorizedKeysFile " LAB_NODE_RUN "/authorized_keys\n"
				  "AuthenticationMethods publickey\n"
				  "PermitRootLogin prohibit-password\n"
				  "AllowUsers root\n"
				  "UsePAM no\n"
				  "UseDNS no\n"
				  "PidFile none\n"
				  "PrintMotd no\n"
				  "PrintLastLog no\n"
				  "MaxStartups 200\n"
				  "MaxSessions 200\n"
				  "Subsystem sftp internal-sftp\n";

/* Some installers leave root with the password "!"; sshd takes such an account for locked. */
static const char shadow[] = "root:*:19000:0:99999:7:::\n";

static int node_files(const struct lab_options *o, const struct lab_node *n, const char *user_key,
	FILE *known, struct err *e)
{
	char folder[PATH_MAX + 32], path[PATH_MAX + 48], *host_key = NULL;
	int rc;

	snprintf(folder, sizeof(folder), "%s/node/%s", o->dir, n->name);
	snprintf(path, sizeof(path), "%s/host_key", folder);
	rc = file_mkdirs(folder, 0755, e);
	if (!rc)
		rc = key_make(path, &host_key, e);
	if (!rc)
		rc = lab_save(folder, "authorized_keys", true, user_key, e);
	if (!rc)
		rc = lab_save(folder, "sshd_config", true, sshd_config, e);
	if (!rc)
		rc = lab_save(folder, "shadow", true, shadow, e);
	if (!rc)
		rc = lab_save(folder, "hostname", true, n->name, e);
	if (!rc)
		fprintf(known, "%s %s\n", n->address, host_key);
	free(host_key);
	return rc;
}

int keys_make(const struct lab_options *o, struct err *e)
{
	char path[PATH_MAX + 16], *user_key = NULL, *known = NULL, *hosts = NULL;
	size_t known_size, hosts_size;
	FILE *k = open_memstream(&known, &known_size), *h = open_memstream(&hosts, &hosts_size);
	int rc = 0;

	snprintf(path, sizeof(path), "%s/id_ed25519", o->dir);
	if (!k || !h)
		rc = err_errno(e, -errno, "cannot make the keys");
	else
		rc = key_make(path, &user_key, e);
	if (!rc)
		fputs("127.0.0.1 localhost\n", h);
	for (unsigned i = 0; i < lab_node_count(o) && !rc; i++) {
		struct lab_node n = lab_node_at(o, i);

		fprintf(h, "%s %s\n", n.address, n.name);
		rc = node_files(o, &n, user_key, k, e);
	}
	if (k)
		fclose(k);
	if (h)
		fclose(h);
	if (!rc)
		rc = lab_save(o->dir, "known_hosts", false, known, e);
	if (!rc)
		rc = lab_save(o->dir, "hosts", false, hosts, e);
	free(user_key);
	free(known);
	free(hosts);
	return rc;
}

int keys_host_key(const char *dir, const char *node, char **key, struct err *e)
{
	char path[PATH_MAX + 64];
	int rc;

	snprintf(path, sizeof(path), "%s/node/%s/host_key.pub", dir, node);
	rc = file_read(path, key, NULL, e);
	if (!rc)
		(*key)[strcspn(*key, "\n")] = '\0';
	return rc;
}
