/*
 * Uploads the agent to a folder named by its content. It is written under a temporary name in the
 * same folder and renamed once its checksums match. A folder with the final name is therefore
 * complete, whoever made it; if two orchestrators upload at the same time, the slower one uses
 * the faster one's folder.
 *
 * The host needs only sshd, sh and coreutils (or busybox); an SFTP server is not needed.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"
#include "harness/base/file.h"
#include "harness/base/sha256.h"
#include "harness/nodes/node_impl.h"

#define AGENT "culprit-agent"
/* A slow host is silent while it writes and hashes six megabytes. */
#define UPLOAD_S 60

/* Can the name be used in a shell without quotes? */
static bool plain(const char *s)
{
	return *s &&
		!s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-")];
}

static int deploy_by_name(const void *a, const void *b)
{
	return strcmp(((const struct bundle_file *)a)->name, ((const struct bundle_file *)b)->name);
}

static int add_file(struct bundle *b, const char *dir, const char *name, struct err *e)
{
	char *path = alloc_format("%s/%s", dir, name);
	struct bundle_file *f;
	struct stat st;
	int rc = 0;

	if (stat(path, &st) < 0) {
		rc = err_errno(e, -errno, "cannot read '%s'", path);
	} else if (S_ISREG(st.st_mode) && !plain(name)) {
		rc = err_set(e, -EINVAL,
			"cannot deploy '%s': only letters, digits and ._+- are allowed", path);
	} else if (S_ISREG(st.st_mode)) {
		b->files = alloc_room(b->files, b->n, sizeof(*b->files));
		f = &b->files[b->n++];
		*f = (struct bundle_file){
			.name = alloc_copy(name), .mode = st.st_mode & 0100 ? 0700 : 0600};
		rc = file_read(path, &f->data, &f->size, e);
		if (!rc && !strncmp(name, "ld-linux", 8))
			b->loader = f->name;
	}
	free(path);
	return rc;
}

static int hash_files(struct bundle *b, struct err *e)
{
	char hex[SHA256_HEX];
	size_t size;
	FILE *f = open_memstream(&b->sums, &size);

	for (size_t i = 0; f && i < b->n; i++) {
		sha256_hex(b->files[i].data, b->files[i].size, hex);
		fprintf(f, "%s  %s\n", hex, b->files[i].name);
	}
	if (!f || fclose(f))
		return err_errno(e, -ENOMEM, "cannot hash the agent's files");
	sha256_hex(b->sums, size, hex);
	snprintf(b->hash, sizeof(b->hash), "%.16s", hex);
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
		return err_set(e, -ENOENT, "no " AGENT " in '%s': run make", dir);
	qsort(b->files, b->n, sizeof(*b->files), deploy_by_name);
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
	free(b->sums);
	*b = (struct bundle){0};
}

/*
 * The commands. The user's login shell, which can be any shell, parses them, so each is one word
 * of constant text for sh(1), without ' ! \ or a newline. Only our own data is inserted:
 * hexadecimal names, numbers, and the loader's name, which bundle_load has checked. All other
 * data is sent on standard input.
 *
 * The shell starts in the user's home folder. 's' is culprit's folder on the node (with the
 * agent's sessions and journals), 'd' the agent's folder.
 */
#define SH(script)                                                                                 \
	"exec %s/bin/sh -c 's=/var/lib/culprit; [ $(id -u) = 0 ] || s=$(pwd)/.cache/culprit; "     \
	"b=$s/agent; d=$b/%s; " script "'"

static const char start[] = SH("exec %s \"$d/" AGENT "\" %s");

static const char check[] = SH("echo culprit: ready; cd \"$d\" 2>/dev/null && "
			       "sha256sum -c >/dev/null 2>&1 && [ -x " AGENT " ] && [ -x %s ] && "
			       "echo culprit: whole; exit 0");

/* Input: lines of mode, size and name, an empty line, the files' bytes. The list is written with
 * cat because cat reports write errors and a shell's echo does not. mv -T is rename(2): it fails
 * if another orchestrator was faster, and that folder is used if it is complete. If it is not, it
 * is damaged and replaced; a running agent keeps its files open. */
static const char upload[] = SH(
	"umask 077; t=$b/.tmp-%016llx; clean() { cd /; rm -rf \"$t\"; }; "
	"whole() { ( cd \"$d\" && sha256sum -c \"$t/.sums\" ) >/dev/null 2>&1; }; "
	"mkdir -p \"$b\" && mkdir \"$t\" && cd \"$t\" || exit 1; "
	"trap clean EXIT; trap \"exit 1\" HUP TERM PIPE; "
	"for o in \"$b\"/.tmp-*; do a=$(stat -c %%Y \"$o\") && "
	"[ $(($(date +%%s) - a)) -gt 600 ] && rm -rf \"$o\"; done; "
	"while read -r m z f && [ \"$f\" ]; do echo $m $z $f; done | cat >.list && "
	"cat >.all || exit 1; "
	"at=1; while read -r m z f; do "
	"tail -c +$at .all | head -c $z >$f && chmod $m $f || exit 1; at=$((at + z)); done <.list; "
	"sha256sum -c .sums >/dev/null && rm .all .list && "
	"{ mv -T \"$t\" \"$d\" 2>/dev/null || whole || "
	"{ rm -rf \"$d\"; mv -T \"$t\" \"$d\"; } || whole; } && echo culprit: whole");

/* Returns -EACCES: sudo or the account does not let us run commands. */
static int check_there(struct node *n, bool *whole, struct err *e)
{
	const struct bundle *b = &n->set->bundle;
	const struct hop *h = &n->hops[n->n_hops - 1];
	const struct iovec in = {b->sums, strlen(b->sums)};
	struct text_tail out = {""};
	char *command, what[400], said[300];
	int rc;

	snprintf(what, sizeof(what),
		n->sudo ? "%.100s@%.200s:%u cannot become root; let it run sudo without a password"
			  " (NOPASSWD)"
			: "%.100s@%.200s:%u cannot run /bin/sh",
		n->user, h->address, h->port);
	command = alloc_format(
		check, n->sudo ? "sudo -n " : "", b->hash, b->loader ? b->loader : AGENT);
	rc = node_command_run(n, what, command, n->set->opt.timeout_s, &in, 1, &out, e);
	free(command);
	*whole = strstr(out.text, "culprit: whole\n");
	if (strstr(out.text, "culprit: ready\n"))
		return rc;
	text_tail_line(&out, said, sizeof(said));
	if (rc)
		return rc == -ECONNRESET ? -EACCES : rc;
	return err_set(e, -EACCES, "%s: %s", what, said[0] ? said : "it ended without output");
}

static int upload_all(struct node *n, struct err *e)
{
	const struct bundle *b = &n->set->bundle;
	struct iovec *in = alloc_zero(b->n + 2, sizeof(*in));
	struct text_tail out = {""};
	char *list = alloc_format("0600 %zu .sums\n", strlen(b->sums)), *command;
	unsigned long long tag;
	int rc;

	for (size_t i = 0; i < b->n; i++) {
		const struct bundle_file *f = &b->files[i];
		char *more = alloc_format("%s0%o %zu %s\n", list, f->mode, f->size, f->name);

		free(list);
		list = more;
		in[i + 2] = (struct iovec){f->data, f->size};
	}
	/* Includes the NUL, as the newline that ends the list. */
	in[0] = (struct iovec){list, strlen(list) + 1};
	list[strlen(list)] = '\n';
	in[1] = (struct iovec){b->sums, strlen(b->sums)};
	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		tag = (unsigned long long)clock_real_ns() ^ (unsigned long long)getpid() << 48;
	command = alloc_format(upload, n->sudo ? "sudo -n " : "", b->hash, tag);
	rc = node_command_run(n, "cannot upload the agent", command,
		fmax(UPLOAD_S, n->set->opt.timeout_s), in, b->n + 2, &out, e);
	if (!rc && !strstr(out.text, "culprit: whole\n"))
		rc = err_set(e, -EIO, "the upload of the agent ended without output");
	free(command);
	free(list);
	free(in);
	return rc;
}

/* 'words' are the agent's arguments. */
static char *agent_command(struct node *n, const char *words)
{
	const struct bundle *b = &n->set->bundle;
	char loader[320] = "";

	if (b->loader)
		snprintf(loader, sizeof(loader), "\"$d/%s\" --library-path \"$d\"", b->loader);
	return alloc_format(start, n->sudo ? "sudo -n " : "", b->hash, loader, words);
}

int deploy(struct node *n, char **serve, struct err *e)
{
	bool whole = false;
	const long lease_ms = (long)(n->set->opt.lease_s * 1000);
	char words[64];
	int rc;

	rc = check_there(n, &whole, e);
	if (!rc && !whole)
		rc = upload_all(n, e);
	if (rc < 0)
		return rc;
	snprintf(words, sizeof(words), "serve --lease %ldms --dir \"$s\"", lease_ms);
	*serve = agent_command(n, words);
	snprintf(words, sizeof(words), "file --lease %ldms", lease_ms);
	n->file_command = agent_command(n, words);
	return 0;
}
