/* JSON lines as a sink of logs: {"table":"events","time_ns":...}, one row a line, without columns
 * that have no value. */
#ifndef CULPRIT_HARNESS_CLI_SHIP_LINES_H
#define CULPRIT_HARNESS_CLI_SHIP_LINES_H

#include "diag/ship/ship.h"

struct ship_lines;

/* 'path' "-": standard output. A file is there only once it is whole: ship_lines_end. */
int ship_lines_new(const char *path, struct ship_lines **out, struct err *e);
struct ship_sink ship_lines_sink(struct ship_lines *l);
/* Puts the file in its place if 'rc' is 0; returns what outfile_close does. */
int ship_lines_end(struct ship_lines *l, int rc, struct err *e);
void ship_lines_free(struct ship_lines *l); /* NULL is fine */

#endif
