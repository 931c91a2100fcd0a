/*
 * Guard and standby ask the kernel to be spared when memory runs out: an OOM score of -1000
 * (proc(5): such a process is never chosen), and their memory locked, so that an undo waits for no
 * page of a disk that may hang. Without the rights for it they continue unshielded.
 */
#ifndef CULPRIT_HARNESS_AGENT_SHIELD_H
#define CULPRIT_HARNESS_AGENT_SHIELD_H

void shield_raise(void);

/* Back to the score from before. Programs that an undo starts inherit the score, and some outlive
 * it: a server that a command starts again must not be spared in place of others. */
void shield_lower(void);

#endif
