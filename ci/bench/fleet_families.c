/*
 * fleet_families run FILE [key=value...]: the fleet detector at its defaults, and its rivals, on
 * made-up fleets of all families; one line of FILE for each family, ratio, share of the time and
 * detector. What FILE already has is not run again.
 *     seed=1          fleets follow from it
 *     fleets=4        faulty ones of each family, ratio and share
 *     clean=16        of each family without ill members
 *     members=600     at most, of a fleet (at least 40)
 *     half=all        dev, held or all families
 *     least=1.1       the smallest ratio; clean fleets are always run
 *     family=NAME     only this one
 *     only=NAME       only this detector ("without groups": fleet with a part left out)
 *     parts=each      the fleet detector, and it with each of its parts left out
 *     without=A,B     leave these parts out of the fleet detector (fleet_part_names)
 *     build=TEXT      what was measured, kept in FILE's head
 *     jobs=1          processes
 * fleet_families table FILE [NAME [dev | held]]: prints tables of FILE in Markdown; one of them:
 *     head summary recall share=0.1 family parts
 * fleet_families list: prints what the families are.
 * fleet_families look RATIO SHARE [key=value...]: prints what the fleet detector finds and misses
 * in the fleets of that cell (1 0: clean), member by member.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ci/bench/fleet_families.h"
#include "diag/fleet/fleet.h"
#include "harness/base/alloc.h"
#include "harness/base/auto.h"

const double family_ratios[FAMILY_RATIOS] = {1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10};
const double family_shares[FAMILY_SHARES] = {0.01, 0.03, 0.1, 0.3, 1};

struct options {
	const char *path, *half, *family, *only, *build, *parts, *without, *least;
	unsigned long seed;
	unsigned fleets, clean, members, jobs;
};

enum { CELLS = FAMILY_RATIOS * FAMILY_SHARES + 1 }; /* of a family; the first is clean */

static char *head(const struct options *o)
{
	return alloc_format("# seed=%lu fleets=%u clean=%u members=%u build=%s%s%s%s%s\n"
			    "family,ratio,share,detector,fleets,ill,tp,ill_one,tp_one,fp,alarmed,"
			    "fp_squares,weeks,off,off_found,off_wrong,class_ill,class_healthy,"
			    "curves,auc,ap,samples,seconds\n",
		o->seed, o->fleets, o->clean, o->members, o->build, o->without ? " without=" : "",
		o->without ? o->without : "", o->least ? " least=" : "", o->least ? o->least : "");
}

static bool set(struct options *o, const char *word)
{
	const char *value = strchr(word, '=');
	const struct {
		const char *name;
		const char **text;
		unsigned *number;
	} keys[] = {{"half", &o->half, NULL}, {"family", &o->family, NULL},
		{"only", &o->only, NULL}, {"build", &o->build, NULL}, {"parts", &o->parts, NULL},
		{"least", &o->least, NULL}, {"without", &o->without, NULL},
		{"fleets", NULL, &o->fleets}, {"clean", NULL, &o->clean},
		{"members", NULL, &o->members}, {"jobs", NULL, &o->jobs}};

	if (value && !strncmp(word, "seed=", 5)) {
		o->seed = strtoul(value + 1, NULL, 10);
		return true;
	}
	for (size_t i = 0; value && i < sizeof(keys) / sizeof(*keys); i++) {
		if (strncmp(word, keys[i].name, (size_t)(value - word)) ||
			keys[i].name[value - word])
			continue;
		if (keys[i].text)
			*keys[i].text = value + 1;
		else
			*keys[i].number = (unsigned)strtoul(value + 1, NULL, 10);
		return true;
	}
	return false;
}

/* Marks what FILE has; its head must be of the same run. */
static int read_done(const struct options *o, bool done[MAKER_FAMILIES][CELLS])
{
	auto_file FILE *f = fopen(o->path, "r");
	auto_free char *line = NULL, *want = head(o);
	struct family_row row;
	size_t size = 0;

	if (!f)
		return 0;
	if (getline(&line, &size, f) <= 0 || strncmp(line, want, strlen(line))) {
		fprintf(stderr, "%s is of another run (%.*s): remove it, or name another file\n",
			o->path, (int)strcspn(line ? line : "", "\n"), line ? line : "");
		return 2;
	}
	while (getline(&line, &size, f) > 0)
		if (family_row_read(line, &row))
			done[row.family][row.cell] = true;
	return 0;
}

static double ratio_of(unsigned cell)
{
	return cell ? family_ratios[(cell - 1) / FAMILY_SHARES] : 1;
}

static double share_of(unsigned cell)
{
	return cell ? family_shares[(cell - 1) % FAMILY_SHARES] : 0;
}

/* The lowest bits of a seed say who is ill and when (maker_draw). */
static struct maker_spec spec_of(
	const struct options *o, unsigned family, unsigned cell, unsigned fleet)
{
	return maker_draw(family,
		((o->seed * MAKER_FAMILIES + family) * CELLS + cell) * 256 + fleet, cell > 0,
		ratio_of(cell), share_of(cell), o->members);
}

/* Runs one cell and writes its lines at once, so that processes do not mix them. */
static void run_cell(const struct options *o, unsigned family, unsigned cell, unsigned which)
{
	unsigned fleets = cell ? o->fleets : o->clean;
	struct tally tallies[TRIAL_DETECTORS_MAX] = {{0}};
	const char *const *names = trial_detectors();
	auto_free char *text = NULL;
	size_t size = 0;
	FILE *f = alloc_text(&text, &size);

	for (unsigned i = 0; i < fleets; i++) {
		struct maker_spec s = spec_of(o, family, cell, i);

		trial_run(&s, which, tallies);
	}
	for (unsigned d = 0; names[d]; d++) {
		const struct tally *t = &tallies[d];

		if (which >> d & 1)
			fprintf(f,
				"%s,%g,%g,%s,%u,%u,%u,%u,%u,%u,%u,%.0f,%.0f,%u,%u,%u,%u,%u,"
				"%u,%.4f,%.4f,%.0f,%.2f\n",
				maker_families[family].name, ratio_of(cell), share_of(cell),
				names[d], fleets, t->ill, t->tp, t->ill_one, t->tp_one, t->fp,
				t->alarmed, t->fp_squares, t->weeks, t->off, t->off_found,
				t->off_wrong, t->class_ill, t->class_healthy, t->curves, t->auc,
				t->ap, t->samples, t->seconds);
	}
	fclose(f);
	f = fopen(o->path, "a");
	if (!f || fwrite(text, 1, size, f) != size || fclose(f)) {
		fprintf(stderr, "%s: %s\n", o->path, strerror(errno));
		exit(3);
	}
}

struct work {
	unsigned family, cell;
};

static void run_part(
	const struct options *o, const struct work *work, unsigned n, unsigned part, unsigned which)
{
	time_t start = time(NULL), said = start;

	for (unsigned i = part; i < n; i += o->jobs) {
		time_t now = time(NULL);

		if (!part && now - said >= 10) {
			fprintf(stderr, "%u of %u, %.0f s, %.0f s left\n", i, n,
				difftime(now, start), difftime(now, start) / i * (n - i));
			said = now;
		}
		run_cell(o, work[i].family, work[i].cell, which);
	}
}

static int run_jobs(const struct options *o, const struct work *work, unsigned n, unsigned which)
{
	int status, worst = 0;

	if (o->jobs <= 1) {
		run_part(o, work, n, 0, which);
		return 0;
	}
	for (unsigned i = 0; i < o->jobs; i++)
		if (!fork()) {
			run_part(o, work, n, i, which);
			exit(0);
		}
	while (wait(&status) > 0)
		worst = status ? 3 : worst;
	return worst;
}

static unsigned detectors(const struct options *o)
{
	const char *const *names = trial_detectors();
	unsigned which = 0;

	for (unsigned d = 0; names[d]; d++) {
		bool whole = d < trial_whole();

		if (o->only ? !strcmp(o->only, names[d]) : o->parts ? !d || !whole : whole)
			which |= 1u << d;
	}
	return which;
}

/* Parts by their names, "groups,tails"; FLEET_PARTS bits. */
static bool read_parts(const char *text, unsigned *parts)
{
	auto_free char *names = alloc_copy(text);
	char *rest = names, *name;

	while ((name = strsep(&rest, ","))) {
		unsigned i = 0;

		while (i < FLEET_PARTS && strcmp(name, fleet_part_names[i]))
			i++;
		if (i == FLEET_PARTS) {
			fprintf(stderr, "'%s' is no part of the fleet detector; parts are:", name);
			for (i = 0; i < FLEET_PARTS; i++)
				fprintf(stderr, " %s", fleet_part_names[i]);
			fputc('\n', stderr);
			return false;
		}
		*parts |= 1u << i;
	}
	return true;
}

static bool wanted(const struct options *o, const struct maker_family *f)
{
	if (o->family && strcmp(o->family, f->name))
		return false;
	return !strcmp(o->half, "all") || f->held_out == !strcmp(o->half, "held");
}

static int run(const struct options *o)
{
	bool done[MAKER_FAMILIES][CELLS] = {{false}};
	struct work work[MAKER_FAMILIES * CELLS];
	unsigned n = 0, which = detectors(o);

	if (!which || o->jobs < 1 || o->members < 40 || o->fleets > 255 || o->clean > 255) {
		fprintf(stderr, "no such detector, or a number that is not allowed\n");
		return 2;
	}
	if (read_done(o, done))
		return 2;
	/* Cell by cell over the families, so that an early end has all of them. */
	for (unsigned cell = 0; cell < CELLS; cell++)
		for (unsigned k = 0; k < MAKER_FAMILIES; k++)
			if (wanted(o, &maker_families[k]) && !done[k][cell] &&
				(!cell || !o->least || ratio_of(cell) >= atof(o->least)))
				work[n++] = (struct work){k, cell};
	if (access(o->path, F_OK)) {
		auto_free char *first = head(o);
		FILE *f = fopen(o->path, "w");

		if (!f || fputs(first, f) < 0 || fclose(f)) {
			fprintf(stderr, "%s: %s\n", o->path, strerror(errno));
			return 3;
		}
	}
	return run_jobs(o, work, n, which);
}

static int look(const struct options *o, double ratio, double share)
{
	for (unsigned k = 0; k < MAKER_FAMILIES; k++)
		for (unsigned cell = 0; cell < CELLS; cell++)
			for (unsigned i = 0; i < (cell ? o->fleets : o->clean); i++) {
				struct maker_spec s = spec_of(o, k, cell, i);

				if (wanted(o, &maker_families[k]) && ratio_of(cell) == ratio &&
					share_of(cell) == share)
					trial_look(stdout, &s);
			}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.half = "all",
		.build = "-",
		.seed = 1,
		.fleets = 4,
		.clean = 16,
		.members = 600,
		.jobs = 1};
	unsigned parts = 0;
	bool looks;

	if (argc >= 3 && argc <= 5 && !strcmp(argv[1], "table"))
		return family_tables(
			argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : NULL, stdout);
	if (argc == 2 && !strcmp(argv[1], "list")) {
		family_list(stdout);
		return 0;
	}
	looks = argc > 3 && !strcmp(argv[1], "look");
	if (argc < 3 || (!looks && strcmp(argv[1], "run"))) {
		fprintf(stderr,
			"usage: %s run FILE [key=value...] | table FILE [NAME [dev | held]] | "
			"list | look RATIO SHARE [key=value...]\n",
			argv[0]);
		return 2;
	}
	o.path = argv[2];
	for (int i = looks ? 4 : 3; i < argc; i++)
		if (!set(&o, argv[i])) {
			fprintf(stderr, "'%s' is no option: see the head of fleet_families.c\n",
				argv[i]);
			return 2;
		}
	if (o.without && !read_parts(o.without, &parts))
		return 2;
	trial_leave_out(parts);
	if (o.parts && strcmp(o.parts, "each")) {
		fprintf(stderr, "parts=%s: only parts=each is known\n", o.parts);
		return 2;
	}
	if (looks)
		return look(&o, atof(argv[2]), atof(argv[3]));
	return run(&o);
}
