/* Ends 'culprit watch' within a second of SIGINT or SIGTERM: wakes waits, and abandons long
 * computations. */
#ifndef CULPRIT_HARNESS_LIVE_STOP_H
#define CULPRIT_HARNESS_LIVE_STOP_H

#include <signal.h>
#include <stdbool.h>

void stop_catch(void);
extern volatile sig_atomic_t stop_asked;
/* Waits for a signal, for input at 'fd' (unless negative), or for 's' seconds. */
void stop_wait(double s, int fd);
/* While enabled, a signal ends the program from its handler with exit code 0, after removing the
 * socket of stop_removes. For long work that leaves nothing half done. */
void stop_at_once(bool on);
/* The path to remove then; borrowed, or NULL. */
void stop_removes(const char *path);

#endif
