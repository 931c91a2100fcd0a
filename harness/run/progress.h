/*
 * Progress: what a person sees while a run goes on, on stderr. On a terminal one line that is
 * rewritten (cells done, what is happening, ETA); elsewhere a line a cell. run.log in the
 * run's folder gets every line with its time, whatever stderr is.
 */
#ifndef CULPRIT_HARNESS_PROGRESS_H
#define CULPRIT_HARNESS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/base/err.h"

struct progress;

/* 'cells' in all, each expected to take 'cell_s'. 'quiet': only complaints on stderr. */
int progress_new(const char *folder, size_t cells, double cell_s, bool quiet, struct progress **out, struct err *e);
void progress_free(struct progress *p);

/* That many cells were done before. */
void progress_begin_at(struct progress *p, size_t done);

/* What is going on now ("cell 3/8 ddw x disk-hog: fault on s2"); 'left_s' of this cell. */
void progress_now(struct progress *p, double left_s, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A line for run.log alone: each step of each attempt stands there, in order. */
void progress_note(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line that stays. */
void progress_say(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One more cell is done; its real duration goes into the ETA. */
void progress_cell_done(struct progress *p, double took_s);

#endif
