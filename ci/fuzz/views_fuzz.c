/* libFuzzer entry of view files: make fuzz, then out/fuzz/views_fuzz CORPUS. Whatever a file holds,
 * it is a view or says in which of its lines it is none; its query compiles or is refused, and is
 * made a dashboard's or left out with the reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/web/serve/dashboard_impl.h"
#include "harness/web/serve/views.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long lines_of(const uint8_t *data, size_t size)
{
	long n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

/* "PATH:LINE: reason" */
static void check_wrong(const struct view *v, const char *path, long lines)
{
	const char *at = v->wrong + strlen(path);
	char *end;
	long line;

	if (strncmp(v->wrong, path, strlen(path)) != 0 || *at != ':')
		abort();
	line = strtol(at + 1, &end, 10);
	if (line < 1 || line > lines + 1 || strncmp(end, ": ", 2) != 0 || !end[2])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct query_spec spec = {.params = view_params};
	static struct query *q;
	static char path[64];
	static int fd = -1;
	struct view v;

	if (fd < 0) {
		fd = memfd_create("view", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fd < 0 || query_new(&spec, &q, NULL))
			abort();
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	view_read(path, &v);
	view_check(&v, q);
	if (!v.name || !v.title || (!v.wrong && !v.sql))
		abort();
	if (v.wrong) {
		check_wrong(&v, path, lines_of(data, size));
	} else {
		char *why = NULL, *sql = dashboard_sql(&v, v.chart != VIEW_TABLE, &why);

		if (!sql == !why)
			abort();
		free(sql);
		free(why);
	}
	view_clear(&v);
	return 0;
}
