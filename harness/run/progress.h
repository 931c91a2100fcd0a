/*
 * Progress: what a person sees while a run continues.
 *
 * On a terminal (stderr) there are lines that stay and, below them, a few that are repainted: cells
 * done, ETA, the cell and its phase, what each node does. The cursor rests below them, so that the
 * terminal is in order however the program ends. Elsewhere there is a line per cell.
 * RUN/run.log gets every line with its time, and each step of each attempt. RUN/status.json is for
 * 'culprit status'; it is replaced as a whole, so that readers never hold up the run.
 */
#ifndef CULPRIT_HARNESS_RUN_PROGRESS_H
#define CULPRIT_HARNESS_RUN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/err.h"

struct progress;

/* 'cells' in all, each expected to take 'cell_s'. 'quiet': only complaints on stderr. */
int progress_new(const char *folder, size_t cells, double cell_s, bool quiet, struct progress **out,
	struct err *e);
/* Erases what is painted; status.json then says that the run is not going on. */
void progress_free(struct progress *p);

/* Tells how many cells were done before. */
void progress_begin_at(struct progress *p, size_t done);
/* Tells the number of all cells, after some were skipped. */
void progress_cells(struct progress *p, size_t cells);

/* An attempt at a cell begins; 'title' is "ddw x disk-hog on s2". */
void progress_attempt(struct progress *p, size_t cell, long attempt, const char *title);

/* When the attempt's fault was asked for, was seen to act and ended, CLOCK_REALTIME; 0: not yet.
 * For status.json. */
void progress_fault(struct progress *p, int64_t inject_ns, int64_t onset_ns, int64_t offset_ns);

/* The current phase ("fault on s2"). 'left_s' is what is left of this cell; 0: not known, then how
 * long the phase has lasted is shown. */
void progress_now(struct progress *p, double left_s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a node does from now on ("traced by ebpf"); seen with the next progress_now or
 * progress_refresh. */
void progress_node(struct progress *p, const char *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Shows what has changed within the same phase. */
void progress_refresh(struct progress *p);

/* Writes a line to run.log alone. */
void progress_note(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints a line that stays. */
void progress_say(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Keeps why the run ended, in the log and the status; the command prints it. */
void progress_ended(struct progress *p, const char *why);

/* Counts an attempt that was not confirmed. */
void progress_invalid(struct progress *p);

/* Counts a cell that is done ('confirmed') or given up; the ETA follows its duration. */
void progress_cell_done(struct progress *p, bool confirmed, double took_s);

#endif
