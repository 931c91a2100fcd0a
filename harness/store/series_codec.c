/* Packs and unpacks the samples of one metric of one server. */
#include "harness/store/series_codec.h"

#include <errno.h>

#include "harness/base/pack.h"

enum { SAMPLES_MAX = 1 << 22 };

static const struct pack_field fields[] = {
	PACK_FIELD(struct sample, second),
	PACK_FIELD(struct sample, count),
	PACK_FIELD(struct sample, sum_s),
	PACK_FIELD(struct sample, max_s),
	PACK_FIELD(struct sample, bytes),
};
static const struct pack_kind kind = PACK_KIND(struct sample, fields);

void series_encode(const struct sample *samples, size_t n, unsigned char **out, size_t *size)
{
	pack_rows(&kind, samples, n, out, size);
}

int series_decode(const void *data, size_t size, struct sample **out, size_t *n, struct err *e)
{
	void *rows;

	if (!pack_read(&kind, SAMPLES_MAX, data, size, &rows, n))
		return err_set(e, -EBADMSG, "samples are corrupt");
	*out = rows;
	return 0;
}
