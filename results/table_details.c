/* The details of a table: what of each place of a detector its rows have no room for. */
#include "results/table_impl.h"

/* What is said of one place, as text; "-" where there is nothing. */
struct place {
	const char *fault, *workload, *metric;
	char detected[32], resource[32], cause[32], delay[64];
};

static struct place place_of(const struct names *n, const struct score *s)
{
	struct place p = {n->of[SCORE_FAULT][s->at[SCORE_FAULT]],
		n->of[SCORE_WORKLOAD][s->at[SCORE_WORKLOAD]],
		n->of[SCORE_METRIC][s->at[SCORE_METRIC]], "", "-", "-", ""};

	table_rate_text(s->detected, s->n, p.detected, sizeof(p.detected));
	if (s->named)
		table_rate_text(s->classified, s->n, p.resource, sizeof(p.resource));
	if (s->named && s->causes)
		table_rate_text(s->explained, s->n, p.cause, sizeof(p.cause));
	table_delay_text(s, p.delay, sizeof(p.delay));
	return p;
}

typedef void (*place_fn)(const struct place *p, const struct score *s, bool causes, FILE *out);

static void each_place(
	const struct score_table *t, const struct names *n, size_t d, place_fn fn, FILE *out)
{
	for (size_t f = 0; f < n->n[SCORE_FAULT]; f++)
		for (size_t w = 0; w < n->n[SCORE_WORKLOAD]; w++)
			for (size_t m = 0; m < n->n[SCORE_METRIC]; m++) {
				const struct score *s = score_at(t, d, f, w, m);
				struct place p;

				if (!s || s->control || (!table_is_any(n, m) && !s->detected))
					continue;
				p = place_of(n, s);
				fn(&p, s, score_causes(t), out);
			}
}

static void paragraph(const struct place *p, const struct score *s, bool causes, FILE *out)
{
	char line[512];

	snprintf(line, sizeof(line),
		"%s, %s, %s: detected %s, resource %s,%s%s%s delay %s, early %u, abstained %u of %u",
		p->fault, p->workload, p->metric, p->detected, p->resource, causes ? " cause " : "",
		causes ? p->cause : "", causes ? "," : "", p->delay, s->early, s->abstained, s->n);
	table_wrap(line, out);
}

void table_details_text(const struct score_table *t, const struct names *n, size_t d, FILE *out)
{
	each_place(t, n, d, paragraph, out);
}

static void row(const struct place *p, const struct score *s, bool causes, FILE *out)
{
	fprintf(out, "| %s | %s | %s | %u | %s | %s |%s%s%s %s | %u | %u |\n", p->fault,
		p->workload, p->metric, s->n, p->detected, p->resource, causes ? " " : "",
		causes ? p->cause : "", causes ? " |" : "", p->delay, s->early, s->abstained);
}

void table_details_markdown(const struct score_table *t, const struct names *n, size_t d, FILE *out)
{
	bool causes = score_causes(t);

	fprintf(out,
		"| fault | workload | metric | n | detected | resource |%s delay (s) | early | abstained |\n"
		"|---|---|---|--:|---|---|%s---|--:|--:|\n",
		causes ? " cause |" : "", causes ? "---|" : "");
	each_place(t, n, d, row, out);
	fputc('\n', out);
}
