/*
 * Progress: what a person sees while a run goes on.
 *
 * On a terminal (stderr) lines that stay, and below them a few that are painted anew: cells done,
 * ETA, the cell and its phase, what each node does. The cursor rests below them, so that whatever
 * ends the program leaves the terminal as it should be. Elsewhere a line a cell. RUN/run.log gets
 * every line with its time, and each step of each attempt, whatever stderr is. RUN/status.json is
 * for 'culprit status': it is replaced whole, and nobody who reads it holds the run up.
 */
#ifndef CULPRIT_HARNESS_PROGRESS_H
#define CULPRIT_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct progress;

/* 'cells' in all, each expected to take 'cell_s'. 'quiet': only complaints on stderr. */
int progress_new(const char *folder, size_t cells, double cell_s, bool quiet, struct progress **out,
	struct err *e);
/* Erases what is painted, and says in status.json that the run is not going on. */
void progress_free(struct progress *p);

/* That many cells were done before. */
void progress_begin_at(struct progress *p, size_t done);
/* There are so many in all, after some were skipped. */
void progress_cells(struct progress *p, size_t cells);

/* An attempt at a cell begins; 'title' is "ddw x disk-hog on s2". */
void progress_attempt(struct progress *p, size_t cell, long attempt, const char *title);

/* What is going on now ("fault on s2"); 'left_s' of this cell, 0 where that is not known. */
void progress_now(struct progress *p, double left_s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a node does from now on ("traced by ebpf"); seen with the next progress_now or
 * progress_refresh. */
void progress_node(struct progress *p, const char *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Shows what has changed, in the same phase. */
void progress_refresh(struct progress *p);

/* A line for run.log alone: each step of each attempt stands there, in order. */
void progress_note(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line that stays. */
void progress_say(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An attempt did not count. */
void progress_invalid(struct progress *p);

/* One more cell is done ('confirmed') or given up; its real duration goes into the ETA. */
void progress_cell_done(struct progress *p, bool confirmed, double took_s);

#endif
