/* Prints an application trace, call by call or summed up. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "diag/app/app.h"
#include "harness/base/text.h"

static const char *const names[APP_CALLS] = {
	[APP_OPEN] = "open",
	[APP_CLOSE] = "close",
	[APP_READ] = "read",
	[APP_WRITE] = "write",
	[APP_PREAD] = "pread",
	[APP_PWRITE] = "pwrite",
	[APP_SEEK] = "lseek",
	[APP_FSYNC] = "fsync",
	[APP_FDATASYNC] = "fdatasync",
	[APP_TRUNCATE] = "truncate",
	[APP_STAT] = "stat",
	[APP_UNLINK] = "unlink",
	[APP_RENAME] = "rename",
	[APP_MKDIR] = "mkdir",
	[APP_RMDIR] = "rmdir",
	[APP_READDIR] = "readdir",
	[APP_FALLOCATE] = "fallocate",
};

const char *app_call_name(unsigned call)
{
	return call && call < APP_CALLS ? names[call] : "?";
}

static void print_path(const struct app_trace *t, uint32_t file, FILE *out)
{
	fputc('"', out);
	text_print_clean(out, app_file(t, file)->path);
	fputc('"', out);
}

static void print_op(const struct app_trace *t, const struct app_op *op, FILE *out)
{
	fprintf(out, "%s(", app_call_name(op->call));
	if (op->file != APP_NO_FILE)
		print_path(t, op->file, out);
	if (op->file2 != APP_NO_FILE) {
		fputs(", ", out);
		print_path(t, op->file2, out);
	}
	if (op->handle)
		fprintf(out, "%shandle=%" PRIu32, op->file == APP_NO_FILE ? "" : ", ", op->handle);
	if (op->call == APP_OPEN || op->flags)
		fprintf(out, ", flags=0x%" PRIx32, op->flags);
	if (op->mode)
		fprintf(out, ", mode=0%" PRIo32, op->mode);
	if (op->offset != -1)
		fprintf(out, ", offset=%" PRId64, op->offset);
	if (op->size)
		fprintf(out, ", size=%" PRIu64, op->size);
	if (op->result < 0)
		fprintf(out, ") = %" PRId64 " (%s)", op->result,
			op->result > -4096 ? strerror((int)-op->result) : "?");
	else
		fprintf(out, ") = %" PRId64, op->result);
	if (op->took_ns >= 0)
		fprintf(out, " <%.6f>", (double)op->took_ns / 1e9);
}

static void print_before(const struct app_trace *t, const struct app_op *op, FILE *out)
{
	if (op->compute_ns)
		fprintf(out, " compute=%.6f", (double)op->compute_ns / 1e9);
	if (op->away_ns)
		fprintf(out, " away=%.6f", (double)op->away_ns / 1e9);
	for (uint32_t i = 0; i < op->n_edges; i++) {
		const struct app_edge *edge = &op->edges[i];
		const struct app_thread *th = app_thread(t, edge->thread);

		fprintf(out, " after=%" PRIu32 ".%" PRIu32 ":%" PRIu64, th->rank,
			edge->thread - app_rank(t, th->rank)->first_thread, edge->ops);
	}
}

static int print_thread(const struct app_trace *t, uint32_t thread, FILE *out, struct err *e)
{
	uint32_t rank = app_thread(t, thread)->rank;
	uint32_t in_rank = thread - app_rank(t, rank)->first_thread;
	struct app_cursor *c;
	struct app_op op;
	uint64_t n = 0;
	int rc;

	if (app_cursor_new(t, thread, &c))
		return err_set(e, -ENOMEM, "out of memory");
	while ((rc = app_next(c, &op, e)) > 0) {
		fprintf(out, "%" PRIu32 ".%" PRIu32 ":%" PRIu64 " ", rank, in_rank, ++n);
		if (op.start_ns >= 0)
			fprintf(out, "%.6f ", (double)op.start_ns / 1e9);
		print_op(t, &op, out);
		print_before(t, &op, out);
		fputc('\n', out);
	}
	app_cursor_free(c);
	return rc;
}

bool app_several_nodes(const struct app_trace *t)
{
	for (uint32_t i = 1; i < app_n_ranks(t); i++)
		if (strcmp(app_rank(t, i)->node, app_rank(t, 0)->node))
			return true;
	return false;
}

static void print_tables(const struct app_trace *t, FILE *out)
{
	const bool several = app_several_nodes(t);

	for (uint32_t i = 0; i < app_n_ranks(t) && !ferror(out); i++) {
		const struct app_rank *r = app_rank(t, i);

		fprintf(out, "rank %" PRIu32 " threads=%" PRIu32 " pid=%" PRIu32 " ", i,
			r->n_threads, r->pid);
		if (several) {
			fputs("node=", out);
			text_print_clean(out, r->node);
			fputc(' ', out);
		}
		text_print_clean(out, r->name);
		fputc('\n', out);
	}
	for (uint32_t i = 0; i < app_n_files(t) && !ferror(out); i++) {
		const struct app_file *f = app_file(t, i);

		fprintf(out, "file %" PRIu32 " ", i);
		print_path(t, i, out);
		fprintf(out, " was=%" PRId64 " is=%" PRId64 "%s\n", f->before, f->after,
			f->directory ? " folder" : "");
	}
}

int app_print(const struct app_trace *t, uint32_t rank, FILE *out, struct err *e)
{
	int rc = 0;

	print_tables(t, out);
	for (uint32_t i = 0; !rc && i < app_n_threads(t) && !ferror(out); i++)
		if (rank == UINT32_MAX || app_thread(t, i)->rank == rank)
			rc = print_thread(t, i, out, e);
	return rc;
}

struct sums {
	uint64_t ops, errors, read, written, edges, took_ns, compute_ns, away_ns;
};

static int sum_rank(const struct app_trace *t, uint32_t rank, struct sums *s, struct err *e)
{
	const struct app_rank *r = app_rank(t, rank);
	int rc = 0;

	for (uint32_t i = 0; !rc && i < r->n_threads; i++) {
		struct app_cursor *c;
		struct app_op op;

		if (app_cursor_new(t, r->first_thread + i, &c))
			return err_set(e, -ENOMEM, "out of memory");
		while ((rc = app_next(c, &op, e)) > 0) {
			s->ops++;
			s->errors += op.result < 0;
			if ((op.call == APP_READ || op.call == APP_PREAD) && op.result > 0)
				s->read += (uint64_t)op.result;
			if ((op.call == APP_WRITE || op.call == APP_PWRITE) && op.result > 0)
				s->written += (uint64_t)op.result;
			s->edges += op.n_edges;
			s->took_ns += op.took_ns > 0 ? (uint64_t)op.took_ns : 0;
			s->compute_ns += op.compute_ns;
			s->away_ns += op.away_ns;
		}
		app_cursor_free(c);
	}
	return rc;
}

static void print_about(const struct app_trace *t, FILE *out)
{
	const struct app_about *a = app_about(t);

	fputs("command       ", out);
	text_print_clean(out, a->comment);
	fprintf(out, "\nran           %.3f s\n", (double)a->wall_ns / 1e9);
	if (a->anonymised) {
		fputs("names         anonymised\n", out);
	} else {
		fputs("root          ", out);
		text_print_clean(out, a->root);
		fputc('\n', out);
	}
	fprintf(out, "captured      by %s, ",
		a->method == APP_BY_THROTTLING         ? "throttling"
			: a->method == APP_BY_MESSAGES ? "messages"
						       : "both methods");
	text_print_clean(out, a->kernel);
	fprintf(out, "\nfiles         %zu\noperations    %" PRIu64 "\nwaits         %" PRIu64 "\n",
		app_n_files(t), app_n_ops(t), app_n_edges(t));
	if (a->not_captured)
		fprintf(out,
			"not captured  %" PRIu64
			" calls that map files, copy between them, or are asynchronous\n",
			a->not_captured);
	if (app_misses_waits(a))
		fputs("warning       processes share memory: waits through it are missing\n", out);
}

int app_print_summary(const struct app_trace *t, FILE *out, struct err *e)
{
	const bool several = app_several_nodes(t);
	int rc;

	print_about(t, out);
	fprintf(out, "\n%5s %-15s %7s %9s %6s %9s %9s %9s %9s %9s %6s%s\n", "rank", "program",
		"threads", "calls", "errors", "read MB", "written", "in calls", "compute", "away",
		"waits", several ? "  node" : "");
	for (uint32_t i = 0; i < app_n_ranks(t) && !ferror(out); i++) {
		const struct app_rank *r = app_rank(t, i);
		struct sums s = {0};
		char name[64];

		rc = sum_rank(t, i, &s, e);
		if (rc)
			return rc;
		text_clean(r->name, name, sizeof(name));
		fprintf(out,
			"%5" PRIu32 " %-15s %7" PRIu32 " %9" PRIu64 " %6" PRIu64
			" %9.1f %9.1f %9.3f %9.3f %9.3f %6" PRIu64,
			i, name, r->n_threads, s.ops, s.errors, (double)s.read / 1e6,
			(double)s.written / 1e6, (double)s.took_ns / 1e9,
			(double)s.compute_ns / 1e9, (double)s.away_ns / 1e9, s.edges);
		if (several) {
			fputs("  ", out);
			text_print_clean(out, r->node);
		}
		fputc('\n', out);
	}
	return 0;
}
