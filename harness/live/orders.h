/*
 * Orders to a running capture: lines over a Unix socket, FOLDER/control, which only its owner may
 * open. Each line gets one answer line, in order.
 */
#ifndef CULPRIT_HARNESS_LIVE_ORDERS_H
#define CULPRIT_HARNESS_LIVE_ORDERS_H

#include "harness/base/err.h"

enum { ORDER_LINE = 4096, ORDER_ANSWER = 2048 };

struct orders;

/* Executes 'line' and fills 'answer'. */
typedef void (*order_fn)(void *ctx, const char *line, char answer[ORDER_ANSWER]);

/* Makes the socket. -EADDRINUSE: it already exists. */
int orders_open(const char *folder, struct orders **out, struct err *e);
/* Removes the socket. NULL is fine. */
void orders_close(struct orders *o);

/* Waits up to 'timeout_s' for lines, or until 'wake_fd' (0: none) is readable; executes the lines
 * received. */
void orders_take(struct orders *o, double timeout_s, int wake_fd, order_fn fn, void *ctx);

/* The client's side: sends 'line' and waits for the answer. 'answer' NULL: does not wait; the
 * order is still executed. -ENOENT: no capture runs in this folder; -EINVAL: the line is too long
 * or not a single line; -ETIMEDOUT. */
int order_send(const char *folder, const char *line, double timeout_s, char answer[ORDER_ANSWER],
	struct err *e);

#endif
