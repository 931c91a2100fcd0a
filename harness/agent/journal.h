/*
 * The undo journal: STATE/undo/SESSION.json, one JSON object a line, only ever appended to: a head;
 * "add" with an inverse; "repairing" when an undo that may take minutes begins; "done" when it was
 * undone; "ending" when the session has ended. Whoever is responsible for it holds a lock (flock).
 * One that is not locked was left by a crash, and whoever gets the lock undoes it.
 *
 * The head names the boot, and the network and PID namespaces. Nodes that share a folder therefore
 * leave each other's journals alone.
 */
#ifndef CULPRIT_HARNESS_AGENT_JOURNAL_H
#define CULPRIT_HARNESS_AGENT_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/base/err.h"

struct journal;

/* Makes and locks the journal, and the session's folder STATE/SESSION (0700). */
int journal_new(const char *state, const char *session, struct journal **out, struct err *e);

/* Locks and reads one that is there, waiting up to 'wait_s' for the lock. -EWOULDBLOCK: it is
 * locked. -ENOENT: it is gone. -EXDEV: it is another node's. -EBADMSG: damaged. */
int journal_open(const char *path, double wait_s, struct journal **out, struct err *e);

/* Written when it returns 0 (and on disk, if the act would outlive a reboot); as if never called
 * otherwise. */
int journal_add(struct journal *j, const char *handle, const char *primitive, const json_t *inverse,
	struct err *e);

/* Undoes and verifies one entry, and strikes it off. -ENOENT: there is none. On failure it
 * stays. */
int journal_revert(struct journal *j, const char *handle, bool *was_there, struct err *e);

/* Its session is alive now: the file's time records that. */
void journal_heard(struct journal *j);

/* The session has ended. Undoes all entries, newest first, going on after a failure for up to
 * 'retry_s' seconds; then removes the session's folder and the journal. On failure the file stays,
 * unlocked, and the first failure that remains is returned. Frees 'j'. 'cleaned' (an array, may be
 * NULL) gets a name for each act that was still there. */
int journal_finish(struct journal *j, double retry_s, json_t *cleaned, struct err *e);

/* Leaves the file, unlocked. NULL is fine. */
void journal_free(struct journal *j);

/* ---- journals of other sessions: journal_others.c ---- */

/* Undoes every unlocked journal of this node under STATE. 'cleaned' gets names of what was undone,
 * 'unclean' sentences on what could not be. */
void journal_clean_left(const char *state, json_t *cleaned, json_t *unclean);

/* How many of this node's journals, except that of 'session', are locked while their session is
 * over, or was not heard of since 'since_ns' (real time). Those of journal_quarantined do not
 * count. */
int journal_silent(const char *state, const char *session, int64_t since_ns);

/* Appends sentences on slow undos of other sessions (a file-system check) that have begun and not
 * succeeded yet. '*working' tells whether somebody is undoing one of them. */
int journal_quarantined(
	const char *state, const char *session, json_t *list, bool *working, struct err *e);

/* Appends names (SESSION.json) of this node's journals, except that of 'session'. */
int journal_list(const char *state, const char *session, json_t *list, struct err *e);

#endif
