/*
 * What the fleet detector found, for people and programs: as text, JSON, and one HTML page.
 *
 *     struct fleet_view view = {.source = "disks.csv", .whole = result, .options = &options};
 *     fleet_view_window(&view, from_s, to_s, other, NULL);    for each window, if there are any
 *     fleet_view_finish(&view);
 *     fleet_text(&view, 100, stdout);
 *     fleet_view_clear(&view);
 *
 * Names come from outside: text escapes their control characters, the page shows them as text.
 */
#ifndef CULPRIT_HARNESS_TABLE_FLEET_H
#define CULPRIT_HARNESS_TABLE_FLEET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "diag/fleet/fleet.h"
#include "diag/import/import.h"
#include "diag/judge/ranking.h"
#include "harness/base/err.h"

/* A finding, as it is told. With windows: all findings of one member (group, class), unless windows
 * are distinguished. */
struct fleet_entry {
	struct fleet_finding f; /* the most severe one; its times are those of all */
	size_t first, last;     /* windows */
	unsigned windows;       /* in how many it was found */
};

struct fleet_window {
	double from_s, to_s;
	size_t findings;
	char *why_not; /* NULL: it was judged */
};

struct fleet_rank {
	uint32_t member, metric;
	double severity, effect;
};

struct fleet_view {
	/* Filled by the caller, who keeps them. */
	const char *source;             /* the file, or address, that was read */
	const struct import_said *said; /* how it was understood */
	const struct fleet_result
		*whole; /* all of the time; its members are those of all windows */
	const struct fleet_options *options;
	const struct ranking_score *score; /* against known truth, or NULL */
	const struct ranked *ranked;       /* what was scored: a row a member */
	double window_s;                   /* 0: no windows */
	size_t rank;                       /* list so many of the worst members */
	bool all_windows;                  /* findings of each window apart */

	/* Filled by the functions below. */
	bool unix_times;
	struct fleet_window *windows;
	size_t n_windows, n_judged;  /* windows, and those that could be judged */
	struct fleet_entry *entries; /* the most severe first; by windows if they are apart */
	size_t n_entries;
	struct fleet_rank *ranking; /* the worst first; members that were judged */
	size_t n_ranking;
	struct fleet_entry *rows; /* private: a row a finding and window */
	size_t n_rows;
	struct fleet_rank *worst;      /* private: by member */
	struct fleet_windows *paid_by; /* private: what windows pay; NULL: there are none */
	double *paid; /* by metric: severities of members in windows were divided by it; or NULL */
};

/* Adds a window, in order of time; 'r' is NULL where it could not be judged, and 'why_not' says
 * why. Nothing of 'r' is needed afterwards. */
void fleet_view_window(struct fleet_view *v, double from_s, double to_s,
	const struct fleet_result *r, const char *why_not);
void fleet_view_finish(struct fleet_view *v);
void fleet_view_clear(struct fleet_view *v);

/* Prints what was understood, the findings, the ranking and a summary. 'width' (0: any) is the
 * number of columns for a line of the tables; longer names are cut in their middle. */
void fleet_text(const struct fleet_view *v, int width, FILE *out);

/* The same as JSON, described in diag/detectors/README.md; a new reference. */
json_t *fleet_json(const struct fleet_view *v);

/* Writes the page, with the ratio over time of the worst members. -EIO, -ENOENT if the page's own
 * files are missing. */
int fleet_page(const struct fleet_view *v, struct fleet *f, FILE *out, struct err *e);

/* Words, also of findings told elsewhere. Each returns 'text'. */
enum { FLEET_WORD = 64 };
/* Are these seconds since 1970, and no others? */
bool fleet_unix_times(double from_s);
/* "2026-11-02 14:00:07" in UTC, or "150 s". */
char *fleet_say_time(double time_s, bool unix_times, char text[FLEET_WORD]);
/* "2026-11-02T14:00:07Z", for programs. */
char *fleet_say_iso(double time_s, char text[FLEET_WORD]);
/* "1.62", "12.3", "1024". */
char *fleet_say_number(double x, char text[FLEET_WORD]);
/* "96 %", "3.1 %", "0.05 %". */
char *fleet_say_share(double share, char text[FLEET_WORD]);
/* What the effect is of: "all", or stretches of "5 min". */
char *fleet_say_stretch(const struct fleet_finding *f, char text[FLEET_WORD]);
/* "1 in 10,000". */
char *fleet_say_alarms(double alarms, char text[FLEET_WORD]);
/* Does it accuse a member? Of a whole group or class it is not the members' fault. */
bool fleet_accuses(const struct fleet_finding *f);
/* Why data may be missing of what was judged, or NULL; all findings depend on it. */
const char *fleet_partial(const struct fleet_view *v);
/* The path of whom a finding names: a member, a group, or any member of a class. */
const char *fleet_whom(const struct fleet_result *r, const struct fleet_finding *f);

#endif
