/* Points merged until they are few: each dot represents all nearby points. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_DOTS_H
#define CULPRIT_HARNESS_WEB_SERVE_DOTS_H

#include <jansson.h>
#include <stddef.h>

struct dots;

/* 'most': at least 100. 'dx': initial width of a dot; its height is determined from the data. */
struct dots *dots_new(size_t most, double dx);
void dots_free(struct dots *d); /* NULL is fine */
void dots_add(struct dots *d, double x, double y, const char *series);
/* [[x, y, series, n], ...]; '*dx', '*dy': width and height of a dot. New reference. */
json_t *dots_rows(const struct dots *d, double *dx, double *dy);

#endif
