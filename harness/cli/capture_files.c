/* Records the sizes of all files below a folder. */
#include "harness/cli/capture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/walk.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/map.h"

struct one {
	char *path;
	int64_t size;
};

struct capture_files {
	struct one *files;
	size_t n;
	struct map map; /* by hash of the path, and on; number, and one */
};

/* Its place in the table: the number, and one; 0 and the free key if it is not there. */
static uint64_t capture_files_find(const struct capture_files *f, const char *path, uint64_t *key)
{
	uint64_t i;

	for (*key = hash_seeded(path, strlen(path), 0); (i = map_get(&f->map, *key)); ++*key)
		if (!strcmp(f->files[i - 1].path, path))
			return i;
	return 0;
}

static void capture_files_add(struct capture_files *f, const char *path, int64_t size)
{
	uint64_t key;

	if (capture_files_find(f, path, &key))
		return;
	f->files = alloc_room(f->files, f->n, sizeof(*f->files));
	f->files[f->n++] = (struct one){alloc_copy(path), size};
	map_put(&f->map, key, f->n);
}

static void capture_files_take(void *files, const char *path, int64_t size)
{
	capture_files_add(files, path, size);
}

int capture_files_new(const char *root, struct capture_files **out, struct err *e)
{
	struct capture_files *f = alloc_zero(1, sizeof(*f));
	int rc = app_walk(root, capture_files_take, f, e);

	if (rc)
		capture_files_free(f);
	else
		*out = f;
	return rc;
}

/* "SIZE PATH" */
static bool add_entry(struct capture_files *f, const char *entry)
{
	char *end;
	long long size = strtoll(entry, &end, 10);

	if (end == entry || *end != ' ' || size < 0)
		return false;
	capture_files_add(f, end + 1, size);
	return true;
}

int capture_files_read(const char *list, struct capture_files **out, struct err *e)
{
	struct capture_files *f = alloc_zero(1, sizeof(*f));
	auto_free char *text = NULL;
	const char *at;
	size_t n;
	int rc = file_read(list, &text, &n, e);

	/* The text has a NUL behind its end as well. */
	for (at = text; !rc && *at; at += strlen(at) + 1)
		if (!add_entry(f, at))
			break;
	if (!rc && (*at || at + 1 != text + n))
		rc = err_set(e, -EBADMSG, "the list of files '%s' is damaged", list);
	if (rc)
		capture_files_free(f);
	else
		*out = f;
	return rc;
}

void capture_files_free(struct capture_files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->files[i].path);
	free(f->files);
	map_clear(&f->map);
	free(f);
}

int64_t capture_files_size(const struct capture_files *f, const char *path)
{
	uint64_t key, i = capture_files_find(f, path, &key);

	return i ? f->files[i - 1].size : -1;
}
