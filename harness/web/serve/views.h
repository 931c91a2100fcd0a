/*
 * Views: a query and how it is drawn, in a small text file NAME.view:
 *
 *     # which disks are busy
 *     title: Disks
 *     chart: line
 *     unit: %
 *     query:
 *     select cast(t as int) as t, node, sum from readings where reading = 'disk-busy'
 *
 * Lines "key: value" and comments (#) precede "query:"; the rest of the file is one SELECT
 * ('culprit query --schema' lists tables). The chart determines the meaning of the columns:
 *
 *     line, area, bars, heat   first t in seconds; then, if it is text, the names of the series;
 *                              then one number (or several, one series each)
 *     dots                     t, a number, and the names of the series
 *     table                    any
 *
 * Parameters: :slot_s (length of a slot of 'totals'), :attempt, :cell, :from_s and :to_s.
 */
#ifndef CULPRIT_HARNESS_WEB_SERVE_VIEWS_H
#define CULPRIT_HARNESS_WEB_SERVE_VIEWS_H

#include <stdbool.h>

#include "diag/query/query.h"
#include "harness/base/err.h"

enum view_chart { VIEW_LINE, VIEW_AREA, VIEW_BARS, VIEW_HEAT, VIEW_DOTS, VIEW_TABLE, VIEW_CHARTS };
extern const char *const view_charts[VIEW_CHARTS];

struct view {
	char *name; /* name of the file, without ".view" */
	char *path;
	char *title, *unit, *about; /* unit, about: NULL: none */
	enum view_chart chart;
	bool logarithmic; /* "scale: log" */
	bool of_runs;     /* "needs: run": it uses tables that only runs have */
	bool own;         /* the user's, not culprit's */
	long order;       /* the lowest comes first; 100 */
	char *sql;
	int sql_line; /* line of the query in the file */
	char *wrong;  /* "FILE:LINE: reason"; NULL: valid */
};

struct views {
	struct view *v;
	size_t n;
};

/* Reads one file. Never fails: errors are in 'wrong'. */
void view_read(const char *path, struct view *out);
void view_clear(struct view *v);

/* culprit's own views and those of 'folder' (NULL: ~/.config/culprit/views, which need not
 * exist), in display order; a view of the folder replaces culprit's view with the same name.
 * -ENOENT: the folder does not exist. */
int views_read(const char *folder, struct views *out, struct err *e);
void views_clear(struct views *views);
const struct view *views_find(const struct views *views, const char *name);

/* Compiles the query without running it; an error is then in 'wrong', with its line. */
void view_check(struct view *v, struct query *q);

/* The parameters available to views, without values: for view_check. */
extern const struct query_param view_params[];

#endif
