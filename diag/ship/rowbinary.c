/* Reads rows in ClickHouse's RowBinary format. */
#include "diag/ship/rowbinary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"

static bool rowbinary_get(FILE *f, void *out, size_t n)
{
	return fread_unlocked(out, 1, n, f) == n;
}

static bool get_size(FILE *f, size_t *out)
{
	*out = 0;
	for (unsigned shift = 0; shift < 35; shift += 7) {
		int c = getc_unlocked(f);

		if (c == EOF)
			return false;
		*out |= (size_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return *out <= ROWBINARY_TEXT;
	}
	return false;
}

/* '*at': where it stands among the texts of the row. */
static bool get_text(struct rowbinary *r, FILE *f, size_t *at)
{
	size_t n;

	if (!get_size(f, &n))
		return false;
	if (r->size + n + 1 > r->room) {
		r->room = 2 * (r->size + n + 1);
		r->texts = alloc_resize(r->texts, r->room, 1);
	}
	*at = r->size;
	if (!rowbinary_get(f, r->texts + r->size, n))
		return false;
	r->texts[r->size + n] = '\0';
	r->size += n + 1;
	return true;
}

static bool get_value(struct rowbinary *r, FILE *f, size_t i, size_t *at)
{
	struct column_value *v = &r->value[i];
	uint8_t null = 0;

	*v = (struct column_value){.type = VALUE_NULL};
	if (r->column[i].nullable && !rowbinary_get(f, &null, 1))
		return false;
	if (null)
		return null == 1;
	switch (r->column[i].type) {
	case COLUMN_INT:
		v->type = VALUE_INT;
		return rowbinary_get(f, &v->number, sizeof(v->number));
	case COLUMN_REAL: v->type = VALUE_REAL; return rowbinary_get(f, &v->real, sizeof(v->real));
	default: v->type = VALUE_TEXT; return get_text(r, f, at);
	}
}

int rowbinary_next(struct rowbinary *r, FILE *f, struct err *e)
{
	size_t at[ROWBINARY_COLUMNS] = {0};
	int c = getc_unlocked(f);

	if (c == EOF && !ferror(f))
		return 0;
	ungetc(c, f);
	r->size = 0;
	for (size_t i = 0; i < r->n; i++)
		if (c == EOF || !get_value(r, f, i, &at[i]))
			return err_blame(e, ERR_CLUSTER,
				err_set(e, -EPROTO,
					"the store's answer is cut short or no RowBinary"));
	for (size_t i = 0; i < r->n; i++)
		if (r->value[i].type == VALUE_TEXT)
			r->value[i].text = r->texts + at[i];
	return 1;
}

void rowbinary_clear(struct rowbinary *r)
{
	free(r->texts);
}
