/*
 * The agent's way to a node: a folder named by its content, uploaded under a
 * temporary name beside its place and renamed once every byte was read back.
 *
 * So a folder with the final name is whole, whoever made it, and of two orchestrators
 * that upload at once the second's rename fails and it uses the first's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "harness/base/file.h"
#include "harness/remote/node_impl.h"

#define AGENT "culprit-agent"

/* What may stand in a command line that a remote shell reads, whatever shell that is. */
static bool plain(const char *s)
{
	return *s &&
		!s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-")];
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct bundle_file *)a)->name, ((const struct bundle_file *)b)->name);
}

static int add_file(struct bundle *b, const char *dir, const char *name, struct err *e)
{
	struct bundle_file *more, *f;
	struct stat st;
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return err_errno(e, -ENOMEM, "cannot read '%s'", dir);
	if (stat(path, &st) < 0) {
		rc = err_errno(e, -errno, "cannot read '%s'", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode))
		goto out;
	if (!plain(name)) {
		rc = err_set(e, -EINVAL,
			"cannot deploy '%s': letters, digits and ._- only in its name", path);
		goto out;
	}
	more = reallocarray(b->files, b->n + 1, sizeof(*more));
	if (!more) {
		rc = err_errno(e, -ENOMEM, "cannot read '%s'", dir);
		goto out;
	}
	b->files = more;
	f = &b->files[b->n++];
	*f = (struct bundle_file){.name = strdup(name), .mode = st.st_mode & 0100 ? 0700 : 0600};
	rc = file_read(path, &f->data, &f->size, e);
	if (!rc && !strncmp(name, "ld-linux", 8))
		b->loader = f->name;
out:
	free(path);
	return rc;
}

static int hash_files(struct bundle *b, struct err *e)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char sum[EVP_MAX_MD_SIZE];
	bool ok;
	size_t i;

	ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (i = 0; i < b->n && ok; i++) {
		const struct bundle_file *f = &b->files[i];
		char head[300];
		int len = snprintf(
			head, sizeof(head), "%s %o %zu\n", f->name, (unsigned)f->mode, f->size);

		ok = EVP_DigestUpdate(ctx, head, (size_t)len) &&
			EVP_DigestUpdate(ctx, f->data, f->size);
	}
	ok = ok && EVP_DigestFinal_ex(ctx, sum, NULL);
	EVP_MD_CTX_free(ctx);
	if (!ok)
		return err_set(e, -EIO, "cannot hash the agent's files");
	for (i = 0; i < 8; i++)
		snprintf(b->hash + 2 * i, 3, "%02x", sum[i]);
	return 0;
}

int bundle_load(const char *dir, struct bundle *b, struct err *e)
{
	bool agent = false;
	struct dirent *d;
	DIR *handle;
	int rc = 0;
	size_t i;

	handle = opendir(dir);
	if (!handle)
		return err_errno(e, -errno, "cannot read the agent's folder '%s'", dir);
	while (!rc && (errno = 0, d = readdir(handle)))
		if (d->d_name[0] != '.')
			rc = add_file(b, dir, d->d_name, e);
	if (!rc && errno)
		rc = err_errno(e, -errno, "cannot read the agent's folder '%s'", dir);
	closedir(handle);
	if (rc < 0)
		return rc;
	for (i = 0; i < b->n; i++)
		agent |= !strcmp(b->files[i].name, AGENT);
	if (!agent)
		return err_set(e, -ENOENT, "there is no " AGENT " in '%s': run make", dir);
	qsort(b->files, b->n, sizeof(*b->files), by_name);
	return hash_files(b, e);
}

void bundle_clear(struct bundle *b)
{
	size_t i;

	for (i = 0; i < b->n; i++) {
		free(b->files[i].name);
		free(b->files[i].data);
	}
	free(b->files);
	*b = (struct bundle){0};
}

/* What is culprit's on the node; the agents are in its folder "agent", and the agent keeps its
 * sessions and journals in it. '*state' is the caller's to free. */
static int state_dir(struct node *n, char **state, struct err *e)
{
	char *home = NULL;
	int rc = 0;

	if (n->sudo || !strcmp(n->user, "root")) {
		*state = strdup("/var/lib/culprit");
		return 0;
	}
	home = sftp_canonicalize_path(n->sftp, ".");
	if (!home)
		return sftp_error(n, e, "cannot find the home folder of", n->user);
	if (!plain(home) || home[0] != '/')
		rc = err_set(e, -EINVAL,
			"home folder '%s' there has a name that a shell might misread", home);
	else if (asprintf(state, "%s/.cache/culprit", home) < 0)
		rc = err_set(e, -ENOMEM, "cannot prepare the upload");
	ssh_string_free_char(home);
	return rc;
}

static int remote_mkdirs(struct node *n, const char *path, struct err *e)
{
	char *part = strdup(path), *slash;
	int rc = 0;

	for (slash = part + 1; !rc; *slash++ = '/') {
		sftp_attributes a;

		slash = strchrnul(slash, '/');
		bool last = !*slash;
		*slash = '\0';
		a = sftp_stat(n->sftp, part);
		if (!a && sftp_mkdir(n->sftp, part, 0700) < 0) {
			/* Another orchestrator may have been quicker. */
			a = sftp_stat(n->sftp, part);
			if (!a)
				rc = sftp_error(n, e, "cannot make folder", part);
		}
		sftp_attributes_free(a);
		if (last)
			break;
	}
	free(part);
	return rc;
}

static void remote_remove(struct node *n, const char *dir)
{
	sftp_dir handle = sftp_opendir(n->sftp, dir);
	sftp_attributes a;

	while (handle && (a = sftp_readdir(n->sftp, handle))) {
		char *path;

		if (strcmp(a->name, ".") && strcmp(a->name, "..") &&
			asprintf(&path, "%s/%s", dir, a->name) >= 0) {
			sftp_unlink(n->sftp, path);
			free(path);
		}
		sftp_attributes_free(a);
		node_watch(n, n->set->opt.timeout_s);
	}
	if (handle)
		sftp_closedir(handle);
	sftp_rmdir(n->sftp, dir);
}

/* Whether 'dir' holds our files, by name and size: someone may have tidied up in it. */
static bool remote_whole(struct node *n, const char *dir)
{
	const struct bundle *b = &n->set->bundle;
	sftp_dir handle = sftp_opendir(n->sftp, dir);
	sftp_attributes a;
	size_t i, found = 0;

	while (handle && (a = sftp_readdir(n->sftp, handle))) {
		for (i = 0; i < b->n; i++)
			found += !strcmp(b->files[i].name, a->name) &&
				b->files[i].size == a->size &&
				(a->permissions & 0777) == b->files[i].mode;
		sftp_attributes_free(a);
	}
	if (handle)
		sftp_closedir(handle);
	return found == b->n;
}

/* Leftovers of uploads that were cut off: those that were old when 'now' was made. */
static void remove_stale(struct node *n, const char *base, const char *now)
{
	sftp_attributes a = sftp_stat(n->sftp, now);
	sftp_dir handle = sftp_opendir(n->sftp, base);
	uint32_t limit = a && a->mtime > 600 ? a->mtime - 600 : 0;

	sftp_attributes_free(a);
	while (handle && (a = sftp_readdir(n->sftp, handle))) {
		char *path;

		if (!strncmp(a->name, ".tmp-", 5) && a->mtime < limit &&
			asprintf(&path, "%s/%s", base, a->name) >= 0) {
			remote_remove(n, path);
			free(path);
		}
		sftp_attributes_free(a);
	}
	if (handle)
		sftp_closedir(handle);
}

static int upload_file(
	struct node *n, const struct bundle_file *f, const char *path, char *buf, struct err *e)
{
	sftp_file file;
	size_t done, len;
	ssize_t got;
	int rc = 0;

	file = sftp_open(n->sftp, path, O_CREAT | O_EXCL | O_RDWR, f->mode);
	if (!file)
		return sftp_error(n, e, "cannot make", path);
	/* The server's umask had its say in open. */
	if (sftp_chmod(n->sftp, path, f->mode) < 0)
		rc = sftp_error(n, e, "cannot set the mode of", path);
	for (done = 0; done < f->size && !rc; done += len) {
		len = f->size - done < NODE_SLICE ? f->size - done : NODE_SLICE;
		node_watch(n, n->set->opt.timeout_s);
		if (sftp_write(file, f->data + done, len) != (ssize_t)len)
			rc = sftp_error(n, e, "cannot write", path);
		if (!rc && atomic_load(&n->set->closing))
			rc = err_set(e, -ECANCELED, "given up");
	}
	if (!rc)
		sftp_rewind(file);
	for (done = 0; done < f->size && !rc; done += (size_t)got) {
		node_watch(n, n->set->opt.timeout_s);
		got = sftp_read(file, buf, NODE_SLICE);
		if (got < 0)
			rc = sftp_error(n, e, "cannot read", path);
		else if (!got || (size_t)got > f->size - done ||
			memcmp(buf, f->data + done, (size_t)got))
			rc = err_set(e, -EIO,
				"'%s' is not there as it was sent: is its disk full or failing?",
				path);
	}
	if (sftp_close(file) != SSH_OK && !rc)
		rc = sftp_error(n, e, "cannot write", path);
	return rc;
}

static int upload(struct node *n, const char *base, const char *dir, struct err *e)
{
	const struct bundle *b = &n->set->bundle;
	char *tmp = NULL, *path, *buf = NULL;
	uint64_t tag;
	size_t i;
	int rc;

	rc = remote_mkdirs(n, base, e);
	if (rc < 0)
		return rc;
	buf = malloc(NODE_SLICE);
	if (!buf || getrandom(&tag, sizeof(tag), 0) != sizeof(tag) ||
		asprintf(&tmp, "%s/.tmp-%016llx", base, (unsigned long long)tag) < 0) {
		rc = err_set(e, -ENOMEM, "cannot prepare the upload");
		goto out;
	}
	if (sftp_mkdir(n->sftp, tmp, 0700) < 0) {
		rc = sftp_error(n, e, "cannot make folder", tmp);
		goto out;
	}
	remove_stale(n, base, tmp);
	for (i = 0; i < b->n && !rc; i++) {
		if (asprintf(&path, "%s/%s", tmp, b->files[i].name) < 0) {
			rc = err_set(e, -ENOMEM, "cannot prepare the upload");
			break;
		}
		rc = upload_file(n, &b->files[i], path, buf, e);
		free(path);
	}
	node_watch(n, n->set->opt.timeout_s);
	if (!rc && sftp_rename(n->sftp, tmp, dir) < 0 && !remote_whole(n, dir)) {
		/* Damaged, or it would not have been uploaded anew; a running agent keeps its files
		 * open. */
		remote_remove(n, dir);
		if (sftp_rename(n->sftp, tmp, dir) < 0 && !remote_whole(n, dir))
			rc = sftp_error(n, e, "cannot make folder", dir);
	}
	/* Gone already if it was renamed. */
	if (!atomic_load(&n->stalled))
		remote_remove(n, tmp);
out:
	free(tmp);
	free(buf);
	return rc;
}

int deploy(struct node *n, char **command, struct err *e)
{
	const struct bundle *b = &n->set->bundle;
	long lease_ms = (long)(n->set->opt.lease_s * 1000);
	const char *sudo = n->sudo ? "sudo -n " : "";
	char *state = NULL, *base = NULL, *dir = NULL;
	int rc, len;

	node_watch(n, n->set->opt.timeout_s);
	rc = session_sftp(n, e);
	if (rc < 0)
		goto out;
	rc = state_dir(n, &state, e);
	if (rc < 0)
		goto out;
	if (asprintf(&base, "%s/agent", state) < 0 || asprintf(&dir, "%s/%s", base, b->hash) < 0) {
		rc = err_set(e, -ENOMEM, "cannot prepare the upload");
		goto out;
	}
	if (!remote_whole(n, dir)) {
		rc = upload(n, base, dir, e);
		if (rc < 0)
			goto out;
	}
	if (b->loader)
		len = asprintf(command,
			"%s%s/%s --library-path %s %s/" AGENT " serve --lease %ldms --dir %s", sudo,
			dir, b->loader, dir, dir, lease_ms, state);
	else
		len = asprintf(command, "%s%s/" AGENT " serve --lease %ldms --dir %s", sudo, dir,
			lease_ms, state);
	if (len < 0)
		rc = err_set(e, -ENOMEM, "cannot prepare the agent's start");
out:
	node_watch(n, 0);
	free(dir);
	free(base);
	free(state);
	return rc;
}
