/*
 * Corpora: a run's measurements packed into one file, run.db.gz, and read from there into memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/base/file.h"
#include "harness/store/store_impl.h"

enum { UNPACKED_MAX = 1 << 30 };

/* All of the file, decompressed, in memory of SQLite's. */
static int unpack(const char *path, unsigned char **out, size_t *size, struct err *e)
{
	size_t room = 1 << 20, n = 0;
	unsigned char *data = sqlite3_malloc64(room), *more;
	gzFile f = gzopen(path, "rb");
	int got = 0, rc = 0;

	if (!data || !f) {
		rc = err_errno(e, f ? -ENOMEM : -errno, "cannot open '%s'", path);
		goto out;
	}
	while ((got = gzread(f, data + n, (unsigned)(room - n))) > 0) {
		n += (size_t)got;
		if (n < room)
			continue;
		if (room >= UNPACKED_MAX) {
			rc = err_set(e, -EFBIG, "'%s' unpacks to more than %d MiB", path,
				UNPACKED_MAX >> 20);
			goto out;
		}
		more = sqlite3_realloc64(data, room *= 2);
		if (!more) {
			rc = err_errno(e, -ENOMEM, "cannot unpack '%s'", path);
			goto out;
		}
		data = more;
	}
	if (got < 0 || gzclose_r(f) != Z_OK) {
		f = got < 0 ? f : NULL;
		rc = err_set(e, -EBADMSG, "'%s' is damaged: it does not unpack", path);
		goto out;
	}
	f = NULL;
out:
	if (f)
		gzclose(f);
	if (rc) {
		sqlite3_free(data);
	} else {
		*out = data;
		*size = n;
	}
	return rc;
}

int store_load_packed(struct store *s, const char *path, struct err *e)
{
	unsigned char *data = NULL;
	size_t size = 0;
	int rc = unpack(path, &data, &size, e);

	if (rc)
		return rc;
	if (sqlite3_deserialize(s->db, "main", data, (sqlite3_int64)size, (sqlite3_int64)size,
		    SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
		return store_fail(s, e, "read what was packed");
	s->packed = true;
	return 0;
}

static int pack(const char *from, const char *to, struct err *e)
{
	char *data = NULL;
	size_t size = 0;
	gzFile f;
	int rc = file_read(from, &data, &size, e);

	if (rc)
		return rc;
	f = gzopen(to, "wb9");
	if (!f || gzwrite(f, data, (unsigned)size) != (int)size)
		rc = err_errno(e, -EIO, "cannot write '%s'", to);
	if (f && gzclose(f) != Z_OK && !rc)
		rc = err_errno(e, -EIO, "cannot write '%s'", to);
	free(data);
	return rc;
}

/* What judging does not need, and what is nobody's business: hosts, keys, paths, what was said of
 * the run. */
static const char strip[] =
	"DELETE FROM verdict; DELETE FROM model; DELETE FROM file;"
	"UPDATE attempt SET detail = NULL;"
	"DELETE FROM fact WHERE key IN ('inventory_text', 'hosts', 'inventory_path', 'scenario_path');"
	"VACUUM";

/* Of a run to look at: its files do not come along, and where they lay means nothing elsewhere. */
static const char strip_whole[] =
	"DELETE FROM file;"
	"DELETE FROM fact WHERE key IN ('inventory_text', 'inventory_path', 'scenario_path');"
	"VACUUM";

int store_pack(struct store *s, const char *folder, bool whole, struct err *e)
{
	char *copy = NULL, *packed = NULL, key[80];
	struct store half = {.folder = (char *)folder};
	sqlite3_stmt *st;
	int rc;

	if (s->packed)
		return err_set(e, -EINVAL, "'%s' is a corpus already", s->folder);
	store_blind_key(s, key);
	rc = file_mkdirs(folder, 0755, e);
	if (rc)
		return rc;
	if (asprintf(&copy, "%s/run.db.tmp", folder) < 0 ||
		asprintf(&packed, "%s/run.db.gz", folder) < 0) {
		rc = err_errno(e, -ENOMEM, "cannot pack '%s'", s->folder);
		goto out;
	}
	unlink(copy);
	rc = store_statement(s, &st, e, "VACUUM INTO ?", "s", copy);
	if (!rc)
		rc = store_finish(s, st, e, "copy it");
	if (!rc && sqlite3_open_v2(copy, &half.db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		rc = store_fail(&half, e, "open the copy");
	if (!rc)
		rc = store_set(&half, "blind_key", key, e);
	if (!rc)
		rc = store_exec(&half, whole ? strip_whole : strip, e, "strip the copy");
	sqlite3_close(half.db);
	if (!rc)
		rc = pack(copy, packed, e);
	unlink(copy);
out:
	free(copy);
	free(packed);
	return rc;
}
