/* Writes several copies of an application trace as one larger application. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "diag/app/app.h"

struct scaling {
	const struct app_trace *from;
	struct app_writer *to;
	uint32_t copy;
};

static int check_size(const struct app_trace *t, uint32_t copies, struct err *e)
{
	static const struct {
		const char *what;
		uint64_t most;
	} limits[] = {{"processes", APP_RANKS}, {"threads", APP_THREADS}, {"files", APP_FILES},
		{"open files", APP_HANDLES}};
	const uint64_t sizes[] = {
		app_n_ranks(t), app_n_threads(t), app_n_files(t), app_n_handles(t)};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (sizes[i] * copies > limits[i].most)
			return err_set(e, -E2BIG,
				"%u copies of the trace have %llu %s, and a trace holds %llu at "
				"most",
				copies, (unsigned long long)sizes[i] * copies, limits[i].what,
				(unsigned long long)limits[i].most);
	return 0;
}

static int add_ranks(const struct scaling *s, struct err *e)
{
	for (uint32_t r = 0; r < app_n_ranks(s->from); r++) {
		const struct app_rank *rank = app_rank(s->from, r);
		int number = app_add_rank(s->to, rank->pid, rank->name, rank->node);

		for (uint32_t i = 0; i < rank->n_threads && number >= 0; i++)
			if (app_add_thread(s->to, (uint32_t)number,
				    app_thread(s->from, rank->first_thread + i)->tid) < 0)
				number = -ENOMEM;
		if (number < 0)
			return err_errno(e, number, "cannot copy the trace's processes");
	}
	return 0;
}

static int add_files(const struct scaling *s, struct err *e)
{
	char path[APP_PATH];

	for (uint32_t i = 0; i < app_n_files(s->from); i++) {
		const struct app_file *f = app_file(s->from, i);
		int n = snprintf(
			path, sizeof(path), "copy%u%s%s", s->copy, *f->path ? "/" : "", f->path);
		int rc = n < (int)sizeof(path)
			? app_add_file(s->to, path, f->before, f->after, f->directory)
			: -ENAMETOOLONG;

		if (rc < 0)
			return err_errno(e, rc, "cannot copy the trace's file '%.200s'", f->path);
	}
	return 0;
}

static int add_handles(const struct scaling *s, struct err *e)
{
	for (uint32_t i = 1; i <= app_n_handles(s->from); i++) {
		struct app_handle h = *app_handle(s->from, i);
		int rc;

		h.file += s->copy * (uint32_t)app_n_files(s->from);
		h.rank += s->copy * (uint32_t)app_n_ranks(s->from);
		rc = app_add_handle(s->to, &h);
		if (rc < 0)
			return err_errno(e, rc, "cannot copy the trace's open files");
	}
	return 0;
}

static int copy_op(const struct scaling *s, uint32_t thread, const struct app_op *op, struct err *e)
{
	const uint32_t threads = s->copy * (uint32_t)app_n_threads(s->from);
	const uint32_t files = s->copy * (uint32_t)app_n_files(s->from);
	struct app_edge edges[APP_EDGES];
	struct app_op copied = *op;

	for (uint32_t i = 0; i < op->n_edges; i++)
		edges[i] = (struct app_edge){op->edges[i].thread + threads, op->edges[i].ops};
	copied.edges = edges;
	copied.file += op->file == APP_NO_FILE ? 0 : files;
	copied.file2 += op->file2 == APP_NO_FILE ? 0 : files;
	copied.handle += op->handle ? s->copy * (uint32_t)app_n_handles(s->from) : 0;
	return app_put(s->to, threads + thread, &copied, e);
}

static int copy_thread(const struct scaling *s, uint32_t thread, struct err *e)
{
	struct app_cursor *c;
	struct app_op op;
	int rc = app_cursor_new(s->from, thread, &c);

	if (rc)
		return err_errno(e, rc, "cannot read the trace");
	while ((rc = app_next(c, &op, e)) > 0) {
		rc = copy_op(s, thread, &op, e);
		if (rc)
			break;
	}
	app_cursor_free(c);
	return rc;
}

static int copy_all(struct scaling *s, uint32_t copies, struct err *e)
{
	int (*const parts[])(const struct scaling *, struct err *) = {
		add_ranks, add_files, add_handles};
	int rc = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (s->copy = 0; s->copy < copies && !rc; s->copy++)
			rc = parts[i](s, e);
	for (s->copy = 0; s->copy < copies && !rc; s->copy++)
		for (uint32_t i = 0; i < app_n_threads(s->from) && !rc; i++)
			rc = copy_thread(s, i, e);
	return rc;
}

int app_scale(const struct app_trace *t, uint32_t copies, const char *path, struct err *e)
{
	struct scaling s = {.from = t};
	int rc = check_size(t, copies, e);

	rc = rc ?: app_create(path, &s.to, e);
	if (rc)
		return rc;
	rc = copy_all(&s, copies, e);
	if (!rc)
		return app_finish(s.to, app_about(t), e);
	app_drop(s.to);
	return rc;
}
