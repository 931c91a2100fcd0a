/*
 * Orders to a running capture: lines over a Unix socket, FOLDER/control, which only its owner may
 * open. Each line gets one line as its answer, in order.
 */
#ifndef CULPRIT_HARNESS_LIVE_ORDERS_H
#define CULPRIT_HARNESS_LIVE_ORDERS_H

#include "harness/base/err.h"

enum { ORDER_LINE = 4096, ORDER_ANSWER = 2048 };

struct orders;

/* Does as 'line' says and fills 'answer'. */
typedef void (*order_fn)(void *ctx, const char *line, char answer[ORDER_ANSWER]);

/* Makes the socket. -EADDRINUSE: there is one. */
int orders_open(const char *folder, struct orders **out, struct err *e);
/* Removes it. NULL is fine. */
void orders_close(struct orders *o);

/* Waits 'timeout_s' at most for lines, or until 'wake_fd' (0: none) is readable; obeys those that
 * have come. */
void orders_take(struct orders *o, double timeout_s, int wake_fd, order_fn fn, void *ctx);

/* The other side: sends 'line', and waits for the answer. 'answer' NULL: does not wait, and the
 * order is carried out all the same. -ENOENT: no capture runs with this folder; -EINVAL: a line
 * that is too long, or several; -ETIMEDOUT. */
int order_send(const char *folder, const char *line, double timeout_s, char answer[ORDER_ANSWER],
	struct err *e);

#endif
