/* Numbers slices and arrows for exports. */
#include "harness/web/timeline/arrow_index.h"

#include <errno.h>
#include <stdlib.h>

#include "harness/base/alloc.h"

/* Fills 'list' with the numbers of arrows, grouped by one of their ends. */
static void group(struct arrow_index *j, uint32_t *first, uint32_t *list, bool by_from)
{
	for (uint64_t i = 0; i < j->n_arrows; i++)
		first[(by_from ? j->arrows[i].from : j->arrows[i].to) + 1]++;
	for (uint64_t i = 0; i <= j->n_slices; i++)
		first[i + 1] += first[i];
	/* Going backwards, each group's end becomes its start. */
	for (uint64_t i = j->n_arrows; i-- > 0;)
		list[--first[(by_from ? j->arrows[i].from : j->arrows[i].to) + 1]] = (uint32_t)i;
}

int arrow_index_init(struct arrow_index *j, struct timeline *t, struct err *e)
{
	const struct stored *slices = spill_map(&t->slices);

	*j = (struct arrow_index){.arrows = spill_map(&t->arrows)};
	j->n_slices = slices ? spill_count(&t->slices) : 0;
	j->n_arrows = j->arrows ? spill_count(&t->arrows) : 0;
	if (j->n_arrows >= UINT32_MAX)
		return err_set(
			e, -E2BIG, "an export holds less than 2^32 arrows; narrow it in time");
	j->starts = alloc_zero(j->n_slices, sizeof(*j->starts));
	for (uint64_t i = 0; i < j->n_slices; i++)
		j->starts[slices[i].number] = slices[i].start_ns;
	j->out_first = alloc_zero(j->n_slices + 2, sizeof(*j->out_first));
	j->into_first = alloc_zero(j->n_slices + 2, sizeof(*j->into_first));
	j->out = alloc_zero(j->n_arrows, sizeof(*j->out));
	j->into = alloc_zero(j->n_arrows, sizeof(*j->into));
	group(j, j->out_first, j->out, true);
	group(j, j->into_first, j->into, false);
	return 0;
}

void arrow_index_clear(struct arrow_index *j)
{
	free(j->starts);
	free(j->out_first);
	free(j->out);
	free(j->into_first);
	free(j->into);
	*j = (struct arrow_index){0};
}

bool arrow_index_leads_on(const struct arrow_index *j, uint32_t arrow)
{
	const struct stored_arrow *a = &j->arrows[arrow];

	if (j->starts[a->from] != j->starts[a->to])
		return j->starts[a->from] < j->starts[a->to];
	return a->from < a->to;
}
