/*
 * The findings of the fleet detector, for people and programs: as text, JSON, and an HTML page.
 *
 *     struct fleet_view view = {.source = "disks.csv", .whole = result, .options = &options};
 *     fleet_view_window(&view, from_s, to_s, other, NULL);    for each window, if any
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

/* A displayed finding. With windows: all findings of one member (group, class), unless windows
 * are shown separately. */
struct fleet_entry {
	struct fleet_finding f; /* the most severe one; its times cover all of them */
	size_t first, last;     /* windows */
	unsigned windows;       /* number of windows with the finding */
};

struct fleet_window {
	double from_s, to_s;
	size_t findings;
	char *why_not; /* NULL: judged */
};

struct fleet_rank {
	uint32_t member, metric;
	double severity, effect;
};

struct fleet_view {
	/* Filled in and kept by the caller. */
	const char *source;               /* the file or address of the data */
	const struct import_said *said;   /* how the input was interpreted */
	const struct fleet_result *whole; /* the whole time; has the members of all windows */
	const struct fleet_options *options;
	const struct ranking_score *score; /* against known truth, or NULL */
	const struct ranked *ranked;       /* the scored ranking: one row per member */
	double window_s;                   /* 0: no windows */
	size_t rank;                       /* number of worst members to list */
	bool all_windows;                  /* show the findings of each window separately */

	/* Filled by the functions below. */
	bool unix_times;
	struct fleet_window *windows;
	size_t n_windows, n_judged;  /* number of windows, and of judged ones */
	struct fleet_entry *entries; /* sorted by severity; by window if they are separate */
	size_t n_entries;
	struct fleet_rank *ranking; /* judged members, the worst first */
	size_t n_ranking;
	struct fleet_entry *rows; /* private: one row per finding and window */
	size_t n_rows;
	struct fleet_rank *worst;      /* private: by member */
	struct fleet_windows *paid_by; /* private: divisors for windows; NULL: no windows */
	double *paid; /* by metric: the divisor of members' severities in windows; or NULL */
};

/* Adds a window, in order of time; 'r' is NULL if it could not be judged, and 'why_not' is the
 * reason. 'r' may be freed afterwards. */
void fleet_view_window(struct fleet_view *v, double from_s, double to_s,
	const struct fleet_result *r, const char *why_not);
void fleet_view_finish(struct fleet_view *v);
void fleet_view_clear(struct fleet_view *v);

/* Prints how the input was interpreted, the findings, the ranking and a summary. 'width' (0: no
 * limit) is the line length of the tables; longer names are cut in the middle. */
void fleet_text(const struct fleet_view *v, int width, FILE *out);

/* The same as JSON, described in diag/detectors/README.md; a new reference. */
json_t *fleet_json(const struct fleet_view *v);

/* Writes the page, with the ratio over time of the worst members. -EIO, -ENOENT if the page's
 * source files are missing. */
int fleet_page(const struct fleet_view *v, struct fleet *f, FILE *out, struct err *e);

/* Formatting, also for findings elsewhere. Each returns 'text'. */
enum { FLEET_WORD = 64 };
/* Are these seconds since 1970? */
bool fleet_unix_times(double from_s);
/* "2026-11-02 14:00:07" in UTC, or "150 s". */
char *fleet_say_time(double time_s, bool unix_times, char text[FLEET_WORD]);
/* "2026-11-02T14:00:07Z", for programs. */
char *fleet_say_iso(double time_s, char text[FLEET_WORD]);
/* "1.62", "12.3", "1024". */
char *fleet_say_number(double x, char text[FLEET_WORD]);
/* "96 %", "3.1 %", "0.05 %". */
char *fleet_say_share(double share, char text[FLEET_WORD]);
/* The unit of the effect: "all", or periods of "5 min". */
char *fleet_say_stretch(const struct fleet_finding *f, char text[FLEET_WORD]);
/* "1 in 10,000". */
char *fleet_say_alarms(double alarms, char text[FLEET_WORD]);
/* Does it accuse a member? A finding about a whole group or class does not. */
bool fleet_accuses(const struct fleet_finding *f);
/* Why data may be missing from the judged data, or NULL; this affects all findings. */
const char *fleet_partial(const struct fleet_view *v);
/* The path of the finding's subject: a member, a group, or any member of a class. */
const char *fleet_whom(const struct fleet_result *r, const struct fleet_finding *f);

#endif
