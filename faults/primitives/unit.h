/*
 * Services of systemd: which unit a server belongs to, stopped and started by systemctl, so that
 * systemd knows what is going on and neither starts the server in the middle of a fault nor forgets
 * to watch it afterwards.
 */
#ifndef CULPRIT_FAULTS_PRIMITIVES_UNIT_H
#define CULPRIT_FAULTS_PRIMITIVES_UNIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "harness/base/err.h"

#define UNIT_NAME_MAX 256

/* The service of the system's manager whose main process is 'pid': 1 and its name, or 0 if there is
 * none: systemd does not run here, the process lies in no service, or another process of the
 * service started it. -errno if systemd does not answer. */
int unit_of(pid_t pid, char name[UNIT_NAME_MAX], struct err *e);

/* Its main process; 0: it has none. -errno if systemd does not answer. */
int unit_main(const char *name, pid_t *pid, struct err *e);

/* systemd unloads a transient unit (systemd-run) that was stopped, and cannot start it again.
 * unit_keep() makes a unit without processes that refers to it, which keeps it loaded until
 * unit_let_go(). It does nothing for a unit that has a file. */
int unit_keep(const char *name, struct err *e);
void unit_let_go(const char *name);

/* Ends the unit's processes as its file says, and cancels a restart that is due. Units that depend
 * on it stay as they are. Call unit_keep() before. */
int unit_stop(const char *name, struct err *e);

/* Starts it, whatever its failures before, and lets go of it. 'lock' is held until systemctl has
 * ended. */
int unit_start(const char *name, int lock, struct err *e);

#endif
