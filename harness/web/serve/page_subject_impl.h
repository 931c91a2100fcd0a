/* Internals of a page_subject. */
#ifndef CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_IMPL_H
#define CULPRIT_HARNESS_WEB_SERVE_PAGE_SUBJECT_IMPL_H

#include "harness/web/serve/page_subject.h"

/* The attempts with logs, for struct snapshot. New reference. */
json_t *page_subject_attempts(const struct snapshot *snap);
/* The run's rows of attempts, and one attempt's marks on its own axis: a new reference. */
const json_t *page_subject_attempt_rows(const struct snapshot *snap);
json_t *page_subject_marks(const struct snapshot *snap, const json_t *row);
/* "cell 5: disk-hog on s2 under ddw"; the caller frees. */
char *page_subject_cell_title(const struct snapshot *snap, int64_t cell, int64_t attempt);
/* The first of the victims, or NULL; the caller frees. */
char *page_subject_cell_victim(const struct snapshot *snap, int64_t cell);
/* Appends the mark of a fault that was verified as active; times of 0: unknown, or not yet. */
struct page_subject_fault {
	int64_t inject_ns, onset_ns, offset_ns;
};
void page_subject_mark_fault(json_t *marks, const char *title, const char *victim, int64_t start_ns,
	const struct page_subject_fault *f);
/* As JSON, without control characters: a new reference. */
json_t *page_subject_clean(const char *s);

/* page_subject_beside.c: adds the marks of 'run' to snap->attempts, and its progress. */
int page_subject_add_beside(struct snapshot *snap, const char *run, struct err *e);

#endif
