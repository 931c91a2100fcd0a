/* Converts a selection of calls to the form of the programs. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "diag/capture/choice.h"
#include "diag/capture/ebpf/ebpf.h"

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is " #b)
SAME(FILTER_PIDS, CHOICE_PIDS);
SAME(FILTER_NAMES, CHOICE_NAMES);
SAME(FILTER_NAME, CHOICE_NAME);
SAME(FILTER_CLIENTS, CHOICE_CLIENTS);
SAME(PREFIXES, CHOICE_PATHS);
SAME(PREFIX_MAX, CHOICE_PATH);
SAME(KIND_NETWORK, CHOICE_NETWORK);
SAME(KIND_DISK, CHOICE_DISK);
SAME(KIND_FUSE, CHOICE_FUSE);
SAME(KIND_METADATA, CHOICE_METADATA);
SAME(KIND_OTHER, CHOICE_OTHER);

/* A path is identified by its file, so it matches under any name. */
static int fill_prefix(
	struct prefix *p, char text[PREFIX_MAX], const char *path, bool may_miss, struct err *e)
{
	struct stat st = {.st_ino = UINT64_MAX};

	if (stat(path, &st) < 0 && !(may_miss && errno == ENOENT))
		return err_errno(e, -errno, "cannot filter by '%s'", path);
	if (S_ISBLK(st.st_mode)) {
		st.st_dev = st.st_rdev;
		st.st_ino = 0;
	}
	p->ino = st.st_ino;
	p->dev = major(st.st_dev) << 20 | minor(st.st_dev);
	p->size = (uint32_t)strlen(path);
	while (p->size && path[p->size - 1] == '/')
		p->size--;
	memcpy(text, path, p->size);
	return 0;
}

int filter_fill(const struct choice *c, bool may_miss, struct filter *out, struct err *e)
{
	int rc = 0;

	memset(out, 0, sizeof(*out));
	out->calls = c->calls;
	out->n_pids = (uint32_t)c->n_pids;
	out->n_names = (uint32_t)c->n_names;
	out->n_clients = (uint32_t)c->n_clients;
	for (size_t i = 0; i < c->n_pids; i++)
		out->pids[i] = (uint32_t)c->pids[i];
	memcpy(out->names, c->names, sizeof(out->names));
	memcpy(out->clients, c->clients, sizeof(out->clients));
	for (size_t i = 0; !rc && i < c->n_paths; i++)
		rc = fill_prefix(&out->prefixes[i], out->prefix_text[i], c->paths[i], may_miss, e);
	out->n_prefixes = (uint32_t)c->n_paths;
	return rc;
}
