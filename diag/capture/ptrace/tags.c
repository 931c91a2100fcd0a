/* File tags: which file a descriptor refers to, and when it was first seen. Memory grows with the
 * files seen. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "diag/capture/ptrace/tracer.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"
#include "harness/base/vec.h"

struct tagged {
	struct file_tag tag;
	uint64_t identity; /* differs for a later file with the same inode number */
};

struct tags {
	struct tagged *v;
	size_t n;
	struct map index; /* by hash of device and inode: index in v, plus 1 */
};

struct tags *tags_new(void)
{
	return calloc(1, sizeof(struct tags));
}

void tags_free(struct tags *t)
{
	if (!t)
		return;
	free(t->v);
	map_clear(&t->index);
	free(t);
}

static uint64_t tags_key_of(const struct file_tag *f)
{
	return hash_mix(hash_mix(0, f->device), f->inode);
}

static struct tagged *tags_find(const struct tags *t, const struct file_tag *f)
{
	size_t at = 0;
	uint64_t i;

	while ((i = map_next(&t->index, tags_key_of(f), &at)))
		if (t->v[i - 1].tag.inode == f->inode && t->v[i - 1].tag.device == f->device)
			return &t->v[i - 1];
	return NULL;
}

/* If memory runs out, the file is not remembered. */
static void tags_add(struct tags *t, const struct file_tag *f, uint64_t identity)
{
	struct tagged *v = vec_room(t->v, t->n, sizeof(*v));

	if (!v)
		return;
	t->v = v;
	if (!map_add(&t->index, tags_key_of(f), t->n + 1))
		return;
	t->v[t->n++] = (struct tagged){*f, identity};
}

/* The handle by which a file server identifies the file has the generation of its inode number. The
 * time of birth, used on file systems without handles, has the resolution of a clock tick: too
 * coarse for a file that is recreated at once. */
static uint64_t identity_of(const char *link, const struct statx *st)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = {.h.handle_bytes = MAX_HANDLE_SZ};
	uint64_t v = (uint64_t)st->stx_btime.tv_sec * 1000000000 + st->stx_btime.tv_nsec;
	int mount;

	if (!(st->stx_mask & STATX_BTIME))
		v = 0;
	if (name_to_handle_at(AT_FDCWD, link, &u.h, &mount, AT_SYMLINK_FOLLOW) == 0)
		v = hash_bytes(u.h.f_handle, u.h.handle_bytes, v);
	return v;
}

bool tags_describe(struct tags *t, const char *link, int64_t now_ns, struct record_fd *f)
{
	uint64_t identity;
	struct tagged *known;
	struct statx st;

	/* Asks only for cached attributes: asking the daemon of a FUSE mount would wait for ever if
	 * that daemon is traced and stopped. */
	if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_BTIME, &st) <
		0)
		return false;
	f->kind = S_ISREG(st.stx_mode)                         ? FD_FILE
		: S_ISDIR(st.stx_mode)                         ? FD_DIR
		: S_ISFIFO(st.stx_mode)                        ? FD_PIPE
		: S_ISBLK(st.stx_mode) || S_ISCHR(st.stx_mode) ? FD_DEVICE
							       : FD_OTHER;
	f->tag.device = makedev(st.stx_dev_major, st.stx_dev_minor);
	f->tag.inode = st.stx_ino;
	f->tag.first_ns = now_ns;
	if (S_ISBLK(st.stx_mode)) {
		f->tag.device = makedev(st.stx_rdev_major, st.stx_rdev_minor);
		f->tag.inode = 0;
		return true;
	}
	if (!st.stx_ino)
		return true;
	identity = identity_of(link, &st);
	known = tags_find(t, &f->tag);
	if (!known)
		tags_add(t, &f->tag, identity);
	else if (known->identity == identity)
		f->tag = known->tag;
	else
		*known = (struct tagged){f->tag, identity};
	return true;
}
