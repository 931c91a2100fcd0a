/*
 * One SSH session: socket, host key, authentication, SFTP channel.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/node/impl.h"

static void quiet(int priority, const char *function, const char *buffer, void *userdata)
{
	(void)priority, (void)function, (void)buffer, (void)userdata;
}

/* Never asks anybody: not on a terminal that somebody else may be reading. */
static int no_passphrase(const char *prompt, char *buf, size_t len, int echo, int verify, void *userdata)
{
	(void)prompt, (void)buf, (void)len, (void)echo, (void)verify, (void)userdata;
	return -1;
}

static int connect_error(int code, struct node *n, struct err *e)
{
	char text[128];

	if (code == ETIMEDOUT)
		return err_set(e, -ETIMEDOUT, "no answer within %g s at %s:%u", n->set->opt.connect_timeout_s,
			       n->address, n->port);
	snprintf(text, sizeof(text), "%s", strerror(code));
	if (text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z'))
		text[0] = (char)(text[0] - 'A' + 'a');
	return err_set(e, -code, "%s at %s:%u", text, n->address, n->port);
}

/* 0 or a positive errno. */
static int connect_one(struct node *n, const struct addrinfo *ai, double deadline_s, int *out)
{
	int fd, code = 0;
	socklen_t len = sizeof(code);

	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS) {
		code = errno;
		goto out;
	}
	for (;;) {
		struct pollfd p[2] = {{.fd = fd, .events = POLLOUT}, {.fd = n->wake, .events = POLLIN}};
		double left_s = deadline_s - clock_mono_s();

		if (left_s <= 0) {
			code = ETIMEDOUT;
			goto out;
		}
		if (poll(p, 2, (int)(left_s * 1000) + 1) < 0 && errno != EINTR) {
			code = errno;
			goto out;
		}
		if (atomic_load(&n->set->closing)) {
			code = ECANCELED;
			goto out;
		}
		if (p[0].revents)
			break;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
out:
	if (code)
		close(fd);
	else
		*out = fd;
	return code;
}

/* A peer that vanishes must end every blocking call, also one that only waits to read. The agent's
 * heartbeat comes first and knows the better words, hence half as long again here. */
static void set_keepalive(int fd, double timeout_s)
{
	int on = 1, idle = 2, interval = 2, count = (int)(timeout_s / interval) + 1;
	unsigned user_ms = (unsigned)(timeout_s * 1500);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

static int connect_socket(struct node *n, double deadline_s, struct err *e)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list, *ai;
	int code, fd = -1;
	char port[12];

	snprintf(port, sizeof(port), "%u", n->port);
	code = getaddrinfo(n->address, port, &hints, &list);
	if (code)
		return err_set(e, -EHOSTUNREACH, "cannot find address '%s': %s", n->address,
			       gai_strerror(code));
	code = EHOSTUNREACH;
	for (ai = list; ai; ai = ai->ai_next) {
		code = connect_one(n, ai, deadline_s, &fd);
		if (!code || code == ECANCELED)
			break;
	}
	freeaddrinfo(list);
	if (code)
		return connect_error(code, n, e);
	set_keepalive(fd, n->set->opt.timeout_s);
	pthread_mutex_lock(&n->set->lock);
	n->fd = fd;
	pthread_mutex_unlock(&n->set->lock);
	if (atomic_load(&n->set->closing))
		return err_set(e, -ECANCELED, "given up");
	return 0;
}

int session_error(struct node *n, struct err *e, const char *what)
{
	const char *text = ssh_get_error(n->session);

	if (atomic_load(&n->stalled))
		return err_set(e, -ETIMEDOUT, "no answer from %s:%u in time (%s)", n->address, n->port, what);
	return err_set(e, -EIO, "%s: %s", what, text && *text ? text : "the connection ended");
}

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

/* Splits "TYPE BASE64 [COMMENT]". '*type' is the part of the type, for the caller to free. */
static int pinned_key(struct node *n, ssh_key *key, char **type, struct err *e)
{
	char *name = NULL, *blob = NULL;
	int rc = 0;

	*key = NULL;
	if (sscanf(n->host_key, "%ms %ms", &name, &blob) != 2 ||
	    ssh_pki_import_pubkey_base64(blob, ssh_key_type_from_name(name), key) != SSH_OK) {
		rc = err_set(e, -EINVAL,
			     "host_key '%.40s' is no public key: it should read as"
			     " /etc/ssh/ssh_host_ed25519_key.pub does on the host",
			     n->host_key);
		free(name);
		name = NULL;
	}
	free(blob);
	*type = name;
	return rc;
}

static int check_pinned(struct node *n, ssh_key offered, ssh_key pinned, struct err *e)
{
	char *is, *was;
	int rc;

	if (!ssh_key_cmp(offered, pinned, SSH_KEY_CMP_PUBLIC))
		return 0;
	is = fingerprint(offered);
	was = fingerprint(pinned);
	rc = err_set(e, -EKEYREJECTED,
		     "host key of %s:%u has changed: the inventory has %s, the host shows %s;"
		     " if the host was set up anew, put its new key into host_key,"
		     " else somebody is in between",
		     n->address, n->port, was ? was : "?", is ? is : "?");
	ssh_string_free_char(is);
	ssh_string_free_char(was);
	return rc;
}

static int check_known(struct node *n, ssh_key offered, struct err *e)
{
	enum ssh_known_hosts_e known = ssh_session_is_known_server(n->session);
	char *is;
	int rc;

	if (known == SSH_KNOWN_HOSTS_OK)
		return 0;
	is = fingerprint(offered);
	if (known == SSH_KNOWN_HOSTS_CHANGED || known == SSH_KNOWN_HOSTS_OTHER)
		rc = err_set(e, -EKEYREJECTED,
			     "host key of %s:%u is not the one in known_hosts: the host shows %s;"
			     " if the host was set up anew, run ssh-keygen -R '%s' and ssh to it once",
			     n->address, n->port, is ? is : "?", n->address);
	else
		rc = err_set(e, -EKEYREJECTED,
			     "host key of %s:%u is not known (%s): give host_key in the inventory,"
			     " or ssh to it once by hand",
			     n->address, n->port, is ? is : "?");
	ssh_string_free_char(is);
	return rc;
}

static int set_options(struct node *n, const char *key_type, struct err *e)
{
	const bool no_config = false;
	long timeout_s = (long)n->set->opt.connect_timeout_s + 1;
	int fd, rc = 0;

	fd = fcntl(n->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_errno(e, -errno, "cannot duplicate the socket");
	rc |= ssh_options_set(n->session, SSH_OPTIONS_PROCESS_CONFIG, &no_config);
	rc |= ssh_options_set(n->session, SSH_OPTIONS_HOST, n->address);
	rc |= ssh_options_set(n->session, SSH_OPTIONS_PORT, &n->port);
	rc |= ssh_options_set(n->session, SSH_OPTIONS_USER, n->user);
	rc |= ssh_options_set(n->session, SSH_OPTIONS_TIMEOUT, &timeout_s);
	if (key_type) {
		/* An RSA key signs by hashes that have names of their own. */
		if (!strcmp(key_type, "ssh-rsa"))
			key_type = "rsa-sha2-512,rsa-sha2-256";
		rc |= ssh_options_set(n->session, SSH_OPTIONS_HOSTKEYS, key_type);
		rc |= ssh_options_set(n->session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null");
		rc |= ssh_options_set(n->session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
	}
	if (rc || ssh_options_set(n->session, SSH_OPTIONS_FD, &fd)) {
		rc = session_error(n, e, "cannot set up the session");
		close(fd);
	}
	return rc;
}

static int import_identity(struct node *n, ssh_key *key, struct err *e)
{
	struct stat st;

	if (stat(n->identity, &st) < 0)
		return err_errno(e, -errno, "cannot use private key '%s'", n->identity);
	if (st.st_mode & 077)
		return err_set(e, -EACCES,
			       "private key '%s' can be used by others than its owner: chmod 600 it",
			       n->identity);
	if (ssh_pki_import_privkey_file(n->identity, NULL, no_passphrase, NULL, key) != SSH_OK)
		return err_set(e, -EACCES,
			       "cannot read private key '%s': it is damaged, or has a passphrase (then"
			       " add it to ssh-agent and leave identity out)",
			       n->identity);
	return 0;
}

static int authenticate(struct node *n, struct err *e)
{
	ssh_key key = NULL;
	int rc, auth;

	if (n->identity) {
		rc = import_identity(n, &key, e);
		if (rc < 0)
			return rc;
		auth = ssh_userauth_publickey(n->session, NULL, key);
		ssh_key_free(key);
	} else {
		auth = ssh_userauth_publickey_auto(n->session, NULL, NULL);
	}
	if (auth == SSH_AUTH_SUCCESS)
		return 0;
	if (auth == SSH_AUTH_ERROR)
		return session_error(n, e, "authentication failed");
	if (auth == SSH_AUTH_PARTIAL)
		return err_set(e, -EACCES,
			       "%s@%s:%u wants more than a key (a password or a code), which culprit"
			       " does not send",
			       n->user, n->address, n->port);
	if (n->identity)
		return err_set(e, -EACCES,
			       "%s@%s:%u does not accept key '%s': add its public half to"
			       " ~/.ssh/authorized_keys there",
			       n->user, n->address, n->port, n->identity);
	return err_set(e, -EACCES,
		       "%s@%s:%u accepts no key of ssh-agent or ~/.ssh: give identity in the"
		       " inventory, or add a key to ~/.ssh/authorized_keys there",
		       n->user, n->address, n->port);
}

int session_open(struct node *n, struct err *e)
{
	static struct ssh_callbacks_struct callbacks = {.size = sizeof(callbacks),
							.auth_function = no_passphrase};
	double deadline_s = clock_mono_s() + n->set->opt.connect_timeout_s;
	ssh_key pinned = NULL, offered = NULL;
	char *type = NULL;
	int rc;

	/* Both are per thread in libssh. */
	ssh_set_log_callback(quiet);
	ssh_set_log_level(SSH_LOG_NOLOG);

	if (n->host_key) {
		rc = pinned_key(n, &pinned, &type, e);
		if (rc < 0)
			return rc;
	}
	rc = connect_socket(n, deadline_s, e);
	if (rc < 0)
		goto out;
	node_watch(n, deadline_s - clock_mono_s());
	n->session = ssh_new();
	if (!n->session) {
		rc = err_errno(e, -ENOMEM, "cannot make a session");
		goto out;
	}
	ssh_set_callbacks(n->session, &callbacks);
	rc = set_options(n, type, e);
	if (rc < 0)
		goto out;
	if (ssh_connect(n->session) != SSH_OK) {
		rc = session_error(n, e, "no SSH session");
		if (type && strstr(e->text, "no match for method server host key algo"))
			rc = err_set(e, -EKEYREJECTED,
				     "%s:%u has no host key of the pinned type %s: if the host was"
				     " set up anew, put its new key into host_key,"
				     " else somebody is in between",
				     n->address, n->port, type);
		goto out;
	}
	if (ssh_get_server_publickey(n->session, &offered) != SSH_OK) {
		rc = session_error(n, e, "no host key");
		goto out;
	}
	rc = pinned ? check_pinned(n, offered, pinned, e) : check_known(n, offered, e);
	if (rc < 0)
		goto out;
	rc = authenticate(n, e);
out:
	node_watch(n, 0);
	ssh_key_free(pinned);
	ssh_key_free(offered);
	free(type);
	return rc;
}

void session_close(struct node *n)
{
	node_watch(n, 2);
	if (n->sftp)
		sftp_free(n->sftp);
	n->sftp = NULL;
	if (n->channel)
		ssh_channel_free(n->channel);
	n->channel = NULL;
	if (n->session) {
		ssh_disconnect(n->session);
		ssh_free(n->session);
	}
	n->session = NULL;
	node_watch(n, 0);
}

int session_sftp(struct node *n, struct err *e)
{
	int rc = 0;

	if (n->sftp)
		return 0;
	n->sftp = sftp_new(n->session);
	if (!n->sftp)
		return session_error(n, e, "no SFTP channel (is Subsystem sftp on in its sshd_config?)");
	if (sftp_init(n->sftp) != SSH_OK) {
		rc = session_error(n, e, "no SFTP");
		sftp_free(n->sftp);
		n->sftp = NULL;
	}
	return rc;
}

int sftp_error(struct node *n, struct err *e, const char *what, const char *path)
{
	if (atomic_load(&n->stalled) || !ssh_is_connected(n->session))
		return session_error(n, e, what);
	switch (sftp_get_error(n->sftp)) {
	case SSH_FX_NO_SUCH_FILE:
	case SSH_FX_NO_SUCH_PATH:
		return err_set(e, -ENOENT, "%s '%s' there: no such file or folder", what, path);
	case SSH_FX_PERMISSION_DENIED:
		return err_set(e, -EACCES, "%s '%s' there: permission denied", what, path);
	default:
		return err_set(e, -EIO, "%s '%s' there: it failed (is the disk full?)", what, path);
	}
}
