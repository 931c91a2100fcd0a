/* The functions in the rows of import_formats: one pair for each format, in its own file. struct
 * import_format in import.h describes arguments and results. */
#ifndef CULPRIT_DIAG_IMPORT_FORMATS_H
#define CULPRIT_DIAG_IMPORT_FORMATS_H

#include "diag/import/import.h"

#define IMPORT_FORMAT(name)                                                                        \
	bool name##_looks(const char *head, size_t size);                                          \
	int name##_read(FILE *f, const char *source, const struct import_options *o,               \
		const struct import_sink *sink, struct import_said *said, struct err *e)

IMPORT_FORMAT(ceph);
IMPORT_FORMAT(csv);
IMPORT_FORMAT(iostat);
IMPORT_FORMAT(prometheus_json);
IMPORT_FORMAT(prometheus_text);
IMPORT_FORMAT(sadf);
IMPORT_FORMAT(sar);

/* Is a comment the head of a table, as of collectl -P ("#UTC,[DSK:sda]RdWait")? Then the next line,
 * 'line', has the same number of fields and begins with a number or a time. */
bool csv_head_in_comment(const char *comment, size_t n, const char *line, size_t n_line);

#endif
