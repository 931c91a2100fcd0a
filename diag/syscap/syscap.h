/*
 * syscap, the ptrace tracer (001, section 4):
 *
 *   culprit-agent trace [--tracer ptrace] --out FILE [--ready-fd N] (-p PID ... | -- COMMAND ...)
 *
 * With -p it attaches to every thread of the processes, follows what they start, and on
 * SIGTERM, SIGINT or SIGHUP, on a failed write, or when all have ended, detaches and closes the
 * log; the processes go on as if nothing had been. With a command it starts that, passes those
 * signals on to it, ends when the last process has ended, and returns the command's exit code
 * (128+signal if it was killed; 127 if there is no such program).
 *
 * Once everything is attached (the command started), one byte is written to descriptor N.
 * Exit code without a command: 0 log whole; 2 usage, no such process, no permission;
 * 3 the log could not be written to its end (also with a command).
 */
#ifndef CULPRIT_DIAG_SYSCAP_H
#define CULPRIT_DIAG_SYSCAP_H

int trace_main(int argc, char **argv);

#endif
