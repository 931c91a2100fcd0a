/* Shows a run's progress on the terminal, in a log and in a status file. */
#include "harness/run/progress.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/clock.h"

#define TEXT 1200
#define LAST 5 /* lines that status.json repeats */
#define STATUS_PERIOD_S 1
#define MAX_BAR 30
#define MAX_GROUPS 8 /* lines of nodes that do the same */

struct node_line {
	char *name;
	char doing[96];
};

struct progress {
	FILE *log;
	char *status, *status_new; /* paths */
	size_t cells, done, before, failed, invalid;
	double cell_s, spent_s, left_s, status_s;
	double phase_from_s; /* clock_mono_s at its begin */
	bool quiet, terminal, colour;
	int painted; /* lines on the terminal that are ours to erase */
	size_t cell; /* 0: none */
	long attempt;
	int64_t inject_ns, onset_ns, offset_ns; /* of its fault */
	char title[256], phase[640], last[LAST][TEXT];
	size_t n_last;
	struct node_line *nodes; /* as they came */
	size_t n_nodes;
	bool changed; /* since status.json was written */
};

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(2) && term && *term && strcmp(term, "dumb");
}

int progress_new(const char *folder, size_t cells, double cell_s, bool quiet, struct progress **out,
	struct err *e)
{
	const char *no_colour = getenv("NO_COLOR");
	char *path = alloc_format("%s/run.log", folder);
	FILE *log = fopen(path, "ae");
	int rc = log ? 0 : err_errno(e, -errno, "cannot open '%s'", path);
	struct progress *p;

	free(path);
	if (!log)
		return rc;
	setvbuf(log, NULL, _IOLBF, 0);
	p = alloc_zero(1, sizeof(*p));
	*p = (struct progress){.log = log,
		.status = alloc_format("%s/status.json", folder),
		.status_new = alloc_format("%s/.status.json", folder),
		.cells = cells,
		.cell_s = cell_s,
		.quiet = quiet,
		.terminal = is_terminal() && !quiet};
	p->colour = p->terminal && !(no_colour && *no_colour);
	*out = p;
	return 0;
}

static double eta_s(const struct progress *p)
{
	size_t here = p->done + p->failed - p->before, settled = p->done + p->failed;
	double each = here ? p->spent_s / (double)here : p->cell_s;

	return p->left_s +
		(double)(p->cells > settled ? p->cells - settled - (p->cell > 0) : 0) * each;
}

/* How long the current phase has lasted. */
static double phase_lasts_s(const struct progress *p)
{
	return *p->phase ? clock_mono_s() - p->phase_from_s : 0;
}

/* Before the first cell nothing is known of how long preparing takes: the cells come after it. */
static const char *eta_word(const struct progress *p)
{
	return p->cell || p->done + p->failed > p->before ? "ETA" : "then about";
}

static void erase(struct progress *p)
{
	if (p->painted)
		fprintf(stderr, "\033[%dA\r\033[J", p->painted);
	p->painted = 0;
}

/* Paints a line of at most 'width' bytes: multi-byte characters make it narrower than allowed. */
static void paint_line(struct progress *p, int width, const char *text)
{
	int n = (int)strlen(text);

	if (n > width)
		for (n = width; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
			;
	fprintf(stderr, "%.*s\n", n, text);
	p->painted++;
}

/* "serving, traced by ebpf: s1 s3 s4", one line for all nodes that do the same. */
static void paint_nodes(struct progress *p, int width)
{
	char text[TEXT];
	int lines = 0;

	for (size_t i = 0; i < p->n_nodes && lines < MAX_GROUPS; i++) {
		size_t n = 0, k = 0;

		while (k < i && strcmp(p->nodes[k].doing, p->nodes[i].doing))
			k++;
		if (k < i)
			continue;
		n = (size_t)snprintf(text, sizeof(text), "    %s:", p->nodes[i].doing);
		for (k = i; k < p->n_nodes && n < sizeof(text); k++)
			if (!strcmp(p->nodes[k].doing, p->nodes[i].doing))
				n += (size_t)snprintf(
					text + n, sizeof(text) - n, " %s", p->nodes[k].name);
		paint_line(p, width, text);
		lines++;
	}
}

static void paint(struct progress *p)
{
	struct winsize ws = {.ws_col = 80};
	int eta = (int)(eta_s(p) + 0.5), width, bar, full;
	char text[TEXT], line[MAX_BAR + 1] = "";

	if (!p->terminal)
		return;
	ioctl(2, TIOCGWINSZ, &ws);
	width = ws.ws_col > 20 ? ws.ws_col - 1 : 79;
	bar = width > 70 ? MAX_BAR : width > 50 ? 10 : 0;
	full = p->cells ? (int)((size_t)bar * (p->done + p->failed) / p->cells) : 0;
	memset(line, '#', (size_t)full);
	memset(line + full, '.', (size_t)(bar - full));
	erase(p);
	snprintf(text, sizeof(text), "%s%s%zu/%zu cells%s  %s %d:%02d:%02d", line, bar ? " " : "",
		p->done + p->failed, p->cells, p->failed ? ", some without a result" : "",
		eta_word(p), eta / 3600, eta / 60 % 60, eta % 60);
	if (p->invalid) {
		size_t n = strlen(text);

		snprintf(text + n, sizeof(text) - n, "  %zu attempts invalid", p->invalid);
	}
	if (p->colour)
		fputs("\033[1m", stderr);
	paint_line(p, width, text);
	if (p->colour)
		fputs("\033[0m", stderr);
	if (p->cell)
		snprintf(text, sizeof(text), "cell %zu  %s%s", p->cell, p->title,
			p->attempt > 1 ? ", tried again" : "");
	if (p->cell)
		paint_line(p, width, text);
	if (p->left_s >= 1)
		snprintf(text, sizeof(text), "  %s, %.0f s left", p->phase, p->left_s);
	else if (phase_lasts_s(p) >= 1)
		snprintf(text, sizeof(text), "  %s, for %.0f s", p->phase, phase_lasts_s(p));
	else
		snprintf(text, sizeof(text), "  %s", p->phase);
	paint_line(p, width, text);
	paint_nodes(p, width);
	fflush(stderr);
}

/* A failure (a full disk, say) is ignored: it is no reason to end a run. */
static void write_status(struct progress *p, bool running)
{
	json_t *last = json_array(), *nodes = json_array(), *all;
	bool written;

	for (size_t i = p->n_last > LAST ? p->n_last - LAST : 0; i < p->n_last; i++)
		json_array_append_new(last, json_string(p->last[i % LAST]));
	for (size_t i = 0; running && i < p->n_nodes; i++)
		json_array_append_new(nodes,
			json_pack("{s:s, s:s}", "name", p->nodes[i].name, "doing",
				p->nodes[i].doing));
	all = json_pack("{s:b, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:f, s:f, s:o, s:o}",
		"running", running, "pid", (int)getpid(), "cells", (json_int_t)p->cells, "done",
		(json_int_t)p->done, "failed", (json_int_t)p->failed, "invalid",
		(json_int_t)p->invalid, "eta_s", eta_s(p), "updated_s",
		(double)clock_real_ns() / 1e9, "phase", p->phase, "left_s", p->left_s,
		"phase_for_s", phase_lasts_s(p), "nodes", nodes, "last", last);
	if (all && p->cell)
		json_object_set_new(all, "cell",
			json_pack("{s:I, s:I, s:s, s:I, s:I, s:I}", "number", (json_int_t)p->cell,
				"attempt", (json_int_t)p->attempt, "title", p->title, "inject_ns",
				(json_int_t)p->inject_ns, "onset_ns", (json_int_t)p->onset_ns,
				"offset_ns", (json_int_t)p->offset_ns));
	written = all && !json_dump_file(all, p->status_new, JSON_INDENT(1));
	if (!written || rename(p->status_new, p->status) < 0)
		unlink(p->status_new);
	p->status_s = clock_mono_s();
	p->changed = false;
	json_decref(all);
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	erase(p);
	p->cell = 0;
	p->phase[0] = '\0';
	p->left_s = 0;
	write_status(p, false);
	fclose(p->log);
	for (size_t i = 0; i < p->n_nodes; i++)
		free(p->nodes[i].name);
	free(p->nodes);
	free(p->status);
	free(p->status_new);
	free(p);
}

void progress_begin_at(struct progress *p, size_t done)
{
	p->done = p->before = done;
}

void progress_cells(struct progress *p, size_t cells)
{
	p->cells = cells;
}

static void log_line(struct progress *p, const char *text)
{
	char stamp[32];

	clock_utc((double)time(NULL), "%Y-%m-%dT%H:%M:%SZ", stamp, sizeof(stamp));
	fprintf(p->log, "%s %s\n", stamp, text);
}

void progress_attempt(struct progress *p, size_t cell, long attempt, const char *title)
{
	p->cell = cell;
	p->attempt = attempt;
	p->inject_ns = p->onset_ns = p->offset_ns = 0;
	snprintf(p->title, sizeof(p->title), "%s", title);
}

void progress_fault(struct progress *p, int64_t inject_ns, int64_t onset_ns, int64_t offset_ns)
{
	p->inject_ns = inject_ns;
	p->onset_ns = onset_ns;
	p->offset_ns = offset_ns;
	p->changed = true;
}

/* Formats a function's variable arguments. */
#define FORMAT(text, size, fmt)                                                                    \
	do {                                                                                       \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		vsnprintf(text, size, fmt, ap);                                                    \
		va_end(ap);                                                                        \
	} while (0)

static void replace(struct progress *p, char *old, const char *text, size_t size)
{
	p->changed = p->changed || strcmp(text, old);
	memcpy(old, text, size);
}

void progress_now(struct progress *p, double left_s, const char *fmt, ...)
{
	char text[sizeof(p->phase)];

	FORMAT(text, sizeof(text), fmt);
	if (strcmp(p->phase, text))
		p->phase_from_s = clock_mono_s();
	replace(p, p->phase, text, sizeof(text));
	p->left_s = left_s;
	progress_refresh(p);
}

void progress_refresh(struct progress *p)
{
	if (p->changed || clock_mono_s() - p->status_s >= STATUS_PERIOD_S)
		write_status(p, true);
	paint(p);
}

/* The node's line, made if it is new. */
static struct node_line *find_node(struct progress *p, const char *node)
{
	for (size_t i = 0; i < p->n_nodes; i++)
		if (!strcmp(p->nodes[i].name, node))
			return &p->nodes[i];
	p->nodes = alloc_room(p->nodes, p->n_nodes, sizeof(*p->nodes));
	p->nodes[p->n_nodes] = (struct node_line){.name = alloc_copy(node)};
	return &p->nodes[p->n_nodes++];
}

void progress_node(struct progress *p, const char *node, const char *fmt, ...)
{
	struct node_line *line = find_node(p, node);
	char text[sizeof(line->doing)];

	FORMAT(text, sizeof(text), fmt);
	replace(p, line->doing, text, sizeof(text));
}

void progress_note(struct progress *p, const char *fmt, ...)
{
	char text[TEXT];

	FORMAT(text, sizeof(text), fmt);
	log_line(p, text);
}

static void progress_keep(struct progress *p, const char *text)
{
	snprintf(p->last[p->n_last++ % LAST], TEXT, "%s", text);
	log_line(p, text);
	write_status(p, true);
}

void progress_ended(struct progress *p, const char *why)
{
	char text[TEXT];

	snprintf(text, sizeof(text), "ended: %s", why);
	progress_keep(p, text);
}

void progress_say(struct progress *p, const char *fmt, ...)
{
	char text[TEXT];

	FORMAT(text, sizeof(text), fmt);
	progress_keep(p, text);
	if (p->quiet)
		return;
	erase(p);
	fprintf(stderr, "%s\n", text);
	paint(p);
}

void progress_invalid(struct progress *p)
{
	p->invalid++;
}

void progress_cell_done(struct progress *p, bool confirmed, double took_s)
{
	p->done += confirmed;
	p->failed += !confirmed;
	p->spent_s += took_s;
	p->cell = 0;
	p->left_s = 0;
}
