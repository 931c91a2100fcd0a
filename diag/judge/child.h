/*
 * Calls Lua detectors in a child process, so that a failing detector does not affect others.
 *
 * The child has a copy of this process's memory, no descriptor but a pipe, and ends with its
 * parent. It answers one question after another; if it ends during a question, the next child
 * continues after that question.
 */
#ifndef CULPRIT_DIAG_JUDGE_CHILD_H
#define CULPRIT_DIAG_JUDGE_CHILD_H

#include "diag/judge/detector.h"

/* Answers question 'i'. Runs in the child. */
typedef int child_fn(void *ctx, size_t i, json_t **said, struct err *e);

/* Asks 'fn' 'n' questions. A child that gives no answer within 'limit_s' seconds is killed; after
 * three such answers in a row the rest are not asked. 'who' is the detector's file. 0 and an answer
 * to each question (in 'verdicts', unchecked); an error if no child could be started. */
int child_ask(child_fn *fn, void *ctx, size_t n, const char *who, double limit_s,
	struct detector_answer *answers, struct err *e);

#endif
