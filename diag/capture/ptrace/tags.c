/* File tags: which file a descriptor means, and when it was first met. Memory grows with the files
 * met. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "diag/capture/ptrace/tracer.h"
#include "harness/base/hash.h"

struct tagged {
	struct file_tag tag; /* inode 0: free */
	uint64_t identity;   /* differs for a file that has the inode number later */
};

struct tags {
	struct tagged *slot;
	size_t mask, n;
};

struct tags *tags_new(void)
{
	struct tags *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->mask = 1023;
	t->slot = calloc(t->mask + 1, sizeof(*t->slot));
	if (t->slot)
		return t;
	free(t);
	return NULL;
}

void tags_free(struct tags *t)
{
	if (t)
		free(t->slot);
	free(t);
}

static uint64_t mix(uint64_t v)
{
	v ^= v >> 32;
	v *= 0x9e3779b97f4a7c15u;
	return v ^ v >> 29;
}

static struct tagged *find(const struct tags *t, uint64_t device, uint64_t inode)
{
	for (size_t i = mix(device * 31 + inode);; i++) {
		struct tagged *f = &t->slot[i & t->mask];

		if (!f->tag.inode || (f->tag.inode == inode && f->tag.device == device))
			return f;
	}
}

static void grow(struct tags *t)
{
	struct tags bigger = {.mask = t->mask * 2 + 1, .n = t->n};

	bigger.slot = calloc(bigger.mask + 1, sizeof(*bigger.slot));
	if (!bigger.slot)
		return; /* fuller, and slower */
	for (size_t i = 0; i <= t->mask; i++)
		if (t->slot[i].tag.inode)
			*find(&bigger, t->slot[i].tag.device, t->slot[i].tag.inode) = t->slot[i];
	free(t->slot);
	*t = bigger;
}

/* The handle by which a file server would know the file holds the generation of its inode number.
 * The time of birth, for file systems that give no handle, is as coarse as a clock tick: too coarse
 * for a file that is made anew at once. */
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

	/* Of what the kernel knows: to ask the daemon of a FUSE mount would be to wait for ever, if
	 * that is traced, too, and stopped. */
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
	if (t->n * 2 > t->mask)
		grow(t);
	known = find(t, f->tag.device, f->tag.inode);
	if (known->tag.inode && known->identity == identity) {
		f->tag = known->tag;
		return true;
	}
	if (!known->tag.inode && t->n < t->mask)
		t->n++;
	else if (!known->tag.inode)
		return true; /* no memory to remember it */
	*known = (struct tagged){f->tag, identity};
	return true;
}
