/* culprit ship --follow: logs that are being written, shipped as they grow. */
#ifndef CULPRIT_HARNESS_CLI_SHIP_FOLLOW_H
#define CULPRIT_HARNESS_CLI_SHIP_FOLLOW_H

#include "diag/ship/ship.h"

struct ship_follow;

/* What the follower needs of the command. */
struct ship_followed {
	void *ctx;
	const struct ship_spec *spec;
	/* A sink for one log, in '*sink', to be given back by 'close'. */
	int (*open)(void *ctx, struct ship_sink *sink, struct err *e);
	void (*close)(void *ctx, struct ship_sink *sink);
	/* A log has been sent to its end. */
	void (*tell)(void *ctx, const char *name, const struct ship_counts *c);
};

struct ship_follow *ship_follow_new(const struct ship_followed *f);
void ship_follow_free(struct ship_follow *s);

/* Adds the logs whose names are not known yet; they are borrowed. */
void ship_follow_add(struct ship_follow *s, const struct query_log *logs, size_t n);

/* Sends what has come since the last time. '*left': so many logs are being written. */
int ship_follow_step(struct ship_follow *s, size_t *left, struct err *e);

#endif
