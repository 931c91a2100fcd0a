/* SIGINT and SIGTERM end 'culprit watch' within a second: what waits is woken, what computes for
 * long is left where it is. */
#ifndef CULPRIT_HARNESS_LIVE_STOP_H
#define CULPRIT_HARNESS_LIVE_STOP_H

#include <signal.h>
#include <stdbool.h>

void stop_catch(void);
extern volatile sig_atomic_t stop_asked;
/* Waits for a signal, for input at 'fd' (unless below 0), or for 's' seconds. */
void stop_wait(double s, int fd);
/* While it is on, a signal ends the program from its handler, with exit code 0, after removing the
 * socket of stop_removes. For work that takes long and leaves nothing half done. */
void stop_at_once(bool on);
/* A path that is removed then; borrowed, or NULL. */
void stop_removes(const char *path);

#endif
