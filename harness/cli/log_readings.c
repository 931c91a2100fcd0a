/* culprit log --summary of a sampler's log: one row a reading and peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag/record/reading.h"
#include "harness/cli/log_view.h"

/* What a reading was over all its seconds: the sum over things (the mean, of a LEVEL of sockets) in
 * each. */
struct reading_row {
	enum reading what;
	bool accepted;
	struct sockaddr_storage peer;
	uint64_t seconds;
	double sum, least, most;
};

struct readings {
	struct reading_row *rows;
	size_t n, room;
};

static int compare(const struct reading_row *a, const struct record_reading *b)
{
	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a->accepted != b->accepted)
		return a->accepted ? -1 : 1;
	return memcmp(&a->peer, &b->peer, sizeof(a->peer));
}

/* Where the row is, or belongs: they are kept in order. */
static size_t place_of(const struct readings *t, const struct record_reading *r)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&t->rows[middle], r) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int readings_add(struct readings **all, const struct record_reading *r)
{
	struct readings *t = *all ? *all : (*all = calloc(1, sizeof(**all)));
	struct reading_row *row;
	double value = r->sum;
	size_t at;

	if (!t)
		return -ENOMEM;
	at = place_of(t, r);
	if (at == t->n || compare(&t->rows[at], r)) {
		if (t->n == t->room) {
			size_t room = t->room ? 2 * t->room : 64;
			struct reading_row *rows = realloc(t->rows, room * sizeof(*rows));

			if (!rows)
				return -ENOMEM;
			t->rows = rows;
			t->room = room;
		}
		memmove(&t->rows[at + 1], &t->rows[at], (t->n++ - at) * sizeof(*t->rows));
		t->rows[at] = (struct reading_row){
			.what = r->what, .accepted = r->accepted, .peer = r->peer};
	}
	row = &t->rows[at];
	if (r->what >= READING_TCP_FIRST && reading_kind(r->what) == READING_LEVEL && r->count)
		value /= r->count;
	if (!row->seconds || value < row->least)
		row->least = value;
	if (!row->seconds || value > row->most)
		row->most = value;
	row->sum += value;
	row->seconds++;
	return 0;
}

void readings_print(const struct readings *t)
{
	printf("%7s %14s %14s %14s  %-9s %s\n", "seconds", "mean", "least", "most", "unit",
		"each second");
	for (size_t i = 0; i < t->n; i++) {
		const struct reading_row *r = &t->rows[i];
		char peer[VIEW_ADDRESS];

		printf("%7llu %14.6g %14.6g %14.6g  %-9s %s", (unsigned long long)r->seconds,
			r->sum / (double)r->seconds, r->least, r->most, reading_unit(r->what),
			reading_name(r->what));
		if (r->peer.ss_family)
			printf(" %s %s", r->accepted ? "from" : "to", format_peer(&r->peer, peer));
		putchar('\n');
	}
}

void readings_free(struct readings *t)
{
	if (!t)
		return;
	free(t->rows);
	free(t);
}
