#include "harness/run/progress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/clock.h"

struct progress {
	FILE *log;
	size_t cells, done, before;
	double cell_s, spent_s, begun_s;
	bool quiet, terminal, line_open;
};

int progress_new(const char *folder, size_t cells, double cell_s, bool quiet, struct progress **out, struct err *e)
{
	struct progress *p = calloc(1, sizeof(*p));
	char *path = NULL;

	if (!p || asprintf(&path, "%s/run.log", folder) < 0) {
		free(p);
		return err_errno(e, -ENOMEM, "cannot log to '%s'", folder);
	}
	*p = (struct progress){.cells = cells, .cell_s = cell_s, .quiet = quiet, .begun_s = clock_mono_s(),
			       .terminal = isatty(2), .log = fopen(path, "ae")};
	if (!p->log) {
		int rc = err_errno(e, -errno, "cannot open '%s'", path);

		free(path);
		free(p);
		return rc;
	}
	setvbuf(p->log, NULL, _IOLBF, 0);
	free(path);
	*out = p;
	return 0;
}

static void erase_line(struct progress *p)
{
	if (p->line_open)
		fputs("\r\033[K", stderr);
	p->line_open = false;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	erase_line(p);
	fclose(p->log);
	free(p);
}

static void log_line(struct progress *p, const char *text)
{
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];

	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(p->log, "%s %s\n", stamp, text);
}

static double eta_s(const struct progress *p, double left_s)
{
	double each = p->done > p->before ? p->spent_s / (double)(p->done - p->before) : p->cell_s;
	size_t after = p->cells > p->done ? p->cells - p->done - 1 : 0;

	return left_s + (double)after * each;
}

void progress_begin_at(struct progress *p, size_t done)
{
	p->done = p->before = done;
}

void progress_now(struct progress *p, double left_s, const char *fmt, ...)
{
	char text[256];
	struct winsize ws = {.ws_col = 80};
	int eta = (int)(eta_s(p, left_s) + 0.5), width;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (p->quiet || !p->terminal)
		return;
	ioctl(2, TIOCGWINSZ, &ws);
	width = ws.ws_col > 40 ? ws.ws_col - 24 : 56;
	fprintf(stderr, "\r\033[K[%zu/%zu] %-.*s  ETA %d:%02d", p->done, p->cells, width, text, eta / 60, eta % 60);
	fflush(stderr);
	p->line_open = true;
}

void progress_note(struct progress *p, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_line(p, text);
}

void progress_say(struct progress *p, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_line(p, text);
	if (p->quiet)
		return;
	erase_line(p);
	fprintf(stderr, "%s\n", text);
}

void progress_cell_done(struct progress *p, double took_s)
{
	p->done++;
	p->spent_s += took_s;
}
