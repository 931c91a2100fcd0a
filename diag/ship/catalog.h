/* What a database holds (schema.h): its logs, with the parts of each that count. */
#ifndef CULPRIT_DIAG_SHIP_CATALOG_H
#define CULPRIT_DIAG_SHIP_CATALOG_H

#include "diag/ship/schema.h"

enum { CATALOG_TABLES = 24 };

struct catalog_part {
	int64_t part, session, from, to; /* blocks [from, to) */
	int64_t first_ns, last_ns;       /* time_ns of its rows; first > last: no rows */
	int64_t rows[CATALOG_TABLES];    /* by table, as in query_tables */
};

struct catalog_log {
	struct query_log log;
	struct log_head head;
	int64_t id, session, ordinal;
	char *made_of;              /* "": records */
	struct catalog_part *parts; /* those that count, without a gap from block 0 on */
	size_t n_parts;
	int64_t newest; /* session of the last shipper that began with it; 0: none */
	bool ended;     /* read to its end, or to where it is damaged */
	int64_t blocks, records, lost;
	char *problem; /* NULL: whole */
};

struct catalog {
	struct catalog_log *logs; /* in the order in which queries see them */
	size_t n;
	char *run_id; /* NULL: logs by themselves */
	json_t *run;  /* the run's tables */
};

/* Reads the catalog; 'id' other than 0: of this log only, without the run. -EBADMSG: rows are gone
 * that had been committed. Cleared by the caller in case of errors as well. */
int catalog_load(struct clickhouse *c, int64_t id, struct catalog *out, struct err *e);
void catalog_clear(struct catalog *t);

#endif
