/* Points put together until they are few: each stands for all that are nearly there. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_DOTS_H
#define CULPRIT_HARNESS_WEB_SERVE_DOTS_H

#include <jansson.h>
#include <stddef.h>

struct dots;

/* 'most': 100 at least. 'dx': how far a dot reaches along x, at first; along y it is found. */
struct dots *dots_new(size_t most, double dx);
void dots_free(struct dots *d); /* NULL is fine */
void dots_add(struct dots *d, double x, double y, const char *series);
/* [[x, y, series, n], ...]; '*dx', '*dy': how far a dot reaches. New reference. */
json_t *dots_rows(const struct dots *d, double *dx, double *dy);

#endif
