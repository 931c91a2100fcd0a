/* Lists the files below a folder before and after an application runs. */
#include "diag/app/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/clock.h"

enum { MOST_FILES = 1000000, MOST_S = 60 };

static int64_t size_of(const FTSENT *entry)
{
	struct statx now;

	if (entry->fts_info != FTS_F)
		return 0;
	if (statx(AT_FDCWD, entry->fts_accpath, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
		    STATX_SIZE, &now))
		return entry->fts_statp->st_size;
	return (int64_t)now.stx_size;
}

static int walk(FTS *fts, const char *root, void (*fn)(void *ctx, const char *path, int64_t size),
	void *ctx, struct err *e)
{
	size_t skip = strlen(root) + (root[1] != '\0'), n = 0;
	double end = clock_mono_s() + MOST_S;
	FTSENT *entry;

	while ((errno = 0, entry = fts_read(fts))) {
		if (entry->fts_info == FTS_DP)
			continue;
		if (!entry->fts_level && entry->fts_info == FTS_NS)
			return err_errno(e, -entry->fts_errno, "cannot look at '%s'", root);
		if (!entry->fts_level && entry->fts_info != FTS_D)
			return err_set(e, -ENOTDIR, "'%s' is not a folder", root);
		if (++n > MOST_FILES)
			return err_set(e, -E2BIG,
				"there are more than %d files below '%s': give the folder of the "
				"command's files by --root",
				MOST_FILES, root);
		if (clock_mono_s() > end)
			return err_set(e, -ETIMEDOUT,
				"listing the files below '%s' takes more than %d s: give a "
				"smaller folder by --root",
				root, MOST_S);
		fn(ctx, entry->fts_level ? entry->fts_path + skip : "", size_of(entry));
	}
	return errno ? err_errno(e, -errno, "cannot look at the files below '%s'", root) : 0;
}

int app_walk(const char *root, void (*fn)(void *ctx, const char *path, int64_t size), void *ctx,
	struct err *e)
{
	char *roots[] = {(char *)root, NULL};
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	int rc;

	if (!fts)
		return err_errno(e, -errno, "cannot look at '%s'", root);
	rc = walk(fts, root, fn, ctx, e);
	fts_close(fts);
	return rc;
}
