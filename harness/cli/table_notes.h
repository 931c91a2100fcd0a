/* What stands below the tables of a run (struct table_notes): its cells, attempts and remarks. */
#ifndef CULPRIT_HARNESS_CLI_TABLE_NOTES_H
#define CULPRIT_HARNESS_CLI_TABLE_NOTES_H

#include "harness/judging/scoring.h"
#include "harness/table/table.h"

/* 'range': the cells that were scored. The run's id is borrowed from 's'. The caller clears. */
int table_notes_make(
	struct store *s, struct cell_range range, struct table_notes *out, struct err *e);
void table_notes_clear(struct table_notes *n);

#endif
