/* Makes the lab's SSH keys and its known_hosts. */
#include <libssh/libssh.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/alloc.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"

/* Makes the key pair NAME and NAME.pub; returns "ssh-ed25519 AAAA...". */
static char *key_make(const char *folder, const char *name)
{
	struct lab_path path = lab_path(folder, "%s", name);
	char *base64, *text, *line;
	ssh_key key;

	if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) != SSH_OK ||
		ssh_pki_export_privkey_file(key, NULL, NULL, NULL, path.s) != SSH_OK ||
		ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK || chmod(path.s, 0600) < 0)
		child_die("cannot make the key '%s'", path.s);
	text = alloc_format("ssh-ed25519 %s", base64);
	line = alloc_format("%s\n", text);
	lab_save(lab_path(folder, "%s.pub", name), 0644, line);
	free(line);
	ssh_string_free_char(base64);
	ssh_key_free(key);
	return text;
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

void keys_make(const struct lab_options *o)
{
	char *user_key = key_make(o->dir, "id_ed25519");
	struct lab_text known = {0}, hosts = {0};

	lab_put(&hosts, "127.0.0.1 localhost\n");
	lab_each(n, o, lab_node_count(o)) {
		struct lab_path folder = lab_path(o->dir, "node/%s", n.name);
		const struct {
			const char *name, *text;
		} files[] = {{"authorized_keys", user_key}, {"sshd_config", sshd_config},
			{"shadow", shadow}, {"hostname", n.name}};
		char *host_key;

		child_must(file_mkdirs(folder.s, 0755, &child_err));
		host_key = key_make(folder.s, "host_key");
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
			lab_save(lab_path(folder.s, "%s", files[k].name), 0600, files[k].text);
		lab_put(&known, "%s %s\n", n.address, host_key);
		lab_put(&hosts, "%s %s\n", n.address, n.name);
		free(host_key);
	}
	lab_save(lab_path(o->dir, "known_hosts"), 0644, known.s);
	lab_save(lab_path(o->dir, "hosts"), 0644, hosts.s);
	free(user_key);
}
