/* Lines of 'culprit watch': one at the begin of a finding, one at its end. */
#ifndef CULPRIT_HARNESS_LIVE_LINES_H
#define CULPRIT_HARNESS_LIVE_LINES_H

#include <stdio.h>

#include "harness/live/life.h"

/* "2026-11-22T14:00:00Z", or seconds if the time is not a date; returns 'buf'. */
char *line_time(double time_s, char *buf, size_t size);
/* "2.5 h": one unit. */
char *line_duration(double s, char *buf, size_t size);

/* 'partial': samples may be missing in the judged data. */
void line_text(FILE *f, enum life_event event, const struct life *life, double now_s, bool partial);
/* One JSON object per line. */
void line_json(FILE *f, enum life_event event, const struct life *life, double now_s, bool partial);

#endif
