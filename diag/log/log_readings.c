/* culprit log --summary of a sampler's log: one row a reading and peer. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/reading.h"
#include "harness/base/text.h"
#include "diag/log/log_view.h"

/* A reading over all its seconds. In each second it is the sum over things (for a LEVEL of sockets,
 * the mean). */
struct reading_row {
	enum reading what;
	bool accepted;
	struct sockaddr_storage peer;
	uint64_t seconds;
	double sum, least, most;
};

/* Order of printing. */
static int log_readings_compare(const void *a, const void *b)
{
	const struct reading_row *x = a, *y = b;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->accepted != y->accepted)
		return x->accepted ? -1 : 1;
	return memcmp(&x->peer, &y->peer, sizeof(x->peer));
}

void readings_add(void **rows, const struct record_reading *r)
{
	const struct reading_row want = {.what = r->what, .accepted = r->accepted, .peer = r->peer};
	struct reading_row *row = row_find(rows, &want, sizeof(want), log_readings_compare);
	double value = r->sum;

	if (reading_is_tcp(r->what) && reading_kind(r->what) == READING_LEVEL && r->count)
		value /= r->count;
	if (!row->seconds || value < row->least)
		row->least = value;
	if (!row->seconds || value > row->most)
		row->most = value;
	row->sum += value;
	row->seconds++;
}

static void print_row(const void *node, VISIT visit, int depth)
{
	const struct reading_row *r = *(struct reading_row *const *)node;
	char peer[VIEW_ADDRESS];

	(void)depth;
	if (visit != postorder && visit != leaf)
		return;
	printf("%7llu %14.6g %14.6g %14.6g  %-9s %s", (unsigned long long)r->seconds,
		r->sum / (double)r->seconds, r->least, r->most, reading_unit(r->what),
		reading_name(r->what));
	if (r->peer.ss_family) {
		printf(" %s ", reading_relation(r->peer.ss_family, r->accepted));
		text_print_clean(stdout, format_peer(&r->peer, peer));
	}
	putchar('\n');
}

void readings_print(const void *rows)
{
	printf("%7s %14s %14s %14s  %-9s %s\n", "seconds", "mean", "least", "most", "unit",
		"each second");
	twalk(rows, print_row);
}
