/* Corpora: packs a run's measurements into run.db.gz, and reads it into memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/store/store_impl.h"

enum { UNPACKED_MAX = 1 << 30 };

/* Unpacks all of 'f' into SQLite's memory, which the caller frees, even on error. -EBADMSG comes
 * without a sentence. */
static int unpack(gzFile f, const char *path, unsigned char **out, size_t *size, struct err *e)
{
	size_t room = 0;
	int got;

	do {
		if (*size == room) {
			unsigned char *more;

			if (room >= UNPACKED_MAX)
				return err_set(e, -EFBIG, "'%s' unpacks to more than %d MiB", path,
					UNPACKED_MAX >> 20);
			room = room ? 2 * room : 1 << 20;
			more = sqlite3_realloc64(*out, room);
			if (!more)
				return err_errno(e, -ENOMEM, "cannot unpack '%s'", path);
			*out = more;
		}
		got = gzread(f, *out + *size, (unsigned)(room - *size));
		*size += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	/* zlib passes a file that is not gzip through unchanged. */
	return got < 0 || gzdirect(f) ? -EBADMSG : 0;
}

int store_load_packed(struct store *s, struct err *e)
{
	gzFile f = gzopen(s->path, "rb");
	unsigned char *data = NULL;
	size_t size = 0;
	int rc;

	if (!f)
		return err_errno(e, -errno, "cannot open '%s'", s->path);
	rc = unpack(f, s->path, &data, &size, e);
	/* gzclose reports a truncated stream. */
	if (gzclose_r(f) != Z_OK && !rc)
		rc = -EBADMSG;
	if (rc == -EBADMSG) {
		err_set(e, rc, "'%s' is damaged: it cannot be unpacked", s->path);
		err_blame(e, ERR_DAMAGED, rc);
	}
	if (rc) {
		sqlite3_free(data);
		return rc;
	}
	if (sqlite3_deserialize(s->db, "main", data, (sqlite3_int64)size, (sqlite3_int64)size,
		    SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
		return store_fail(s, e, "read the packed run");
	s->packed = true;
	return 0;
}

/* Afterwards 'to' is complete or unchanged. */
static int pack(const char *from, const char *to, struct err *e)
{
	auto_free char *tmp = alloc_format("%s.tmp", to), *data = NULL;
	size_t size = 0;
	gzFile f;
	int rc = file_read(from, &data, &size, e);

	if (rc)
		return rc;
	f = gzopen(tmp, "wb9");
	errno = 0;
	rc = !f || gzwrite(f, data, (unsigned)size) != (int)size;
	if ((f && gzclose(f) != Z_OK) || rc || rename(tmp, to) < 0) {
		rc = file_write_error(to, errno ? -errno : -EIO, e);
		unlink(tmp);
	}
	return rc;
}

/* Deletes private data and data that judging does not need: hosts, keys, paths, verdicts. */
static const char strip[] = "DELETE FROM verdict; DELETE FROM model; DELETE FROM file;"
			    "DROP TABLE IF EXISTS request;"
			    "UPDATE attempt SET detail = NULL;"
			    "DELETE FROM fact WHERE key IN"
			    " ('inventory_text', 'hosts', 'inventory_path', 'scenario_path');"
			    "VACUUM";

/* From a whole run only machine-specific data is deleted: its files are not packed. */
static const char strip_whole[] =
	"DELETE FROM file;"
	"DELETE FROM fact WHERE key IN ('inventory_text', 'inventory_path', 'scenario_path');"
	"VACUUM";

int store_pack(struct store *s, const char *folder, bool whole, struct err *e)
{
	auto_free char *copy = alloc_format("%s/run.db.tmp", folder),
		       *packed = alloc_format("%s/run.db.gz", folder);
	struct store stripped = {.folder = (char *)folder, .path = copy};
	struct stat st;
	bool made;
	int rc;

	if (s->packed)
		return err_set(e, -EINVAL, "'%s' is already a corpus", s->folder);
	made = stat(folder, &st) < 0;
	if (!made && !S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "cannot write to '%s': it is %s, not a folder", folder,
			file_kind(st.st_mode));
	rc = file_mkdirs(folder, 0755, e);
	if (rc)
		return rc;
	unlink(copy);
	rc = store_do(s, e, "copy the run", "VACUUM INTO ?", "s", copy);
	if (!rc && sqlite3_open_v2(copy, &stripped.db, SQLITE_OPEN_READWRITE, NULL))
		rc = store_fail(&stripped, e, "open the copy");
	if (!rc)
		rc = store_exec(&stripped, whole ? strip_whole : strip, e, "strip the copy");
	sqlite3_close(stripped.db);
	if (!rc)
		rc = pack(copy, packed, e);
	unlink(copy);
	if (rc && made)
		rmdir(folder);
	return rc;
}
