/* Requests of FUSE file systems: names of what they ask for. */
#ifndef CULPRIT_DIAG_RECORD_FUSE_H
#define CULPRIT_DIAG_RECORD_FUSE_H

#include <stdint.h>

/* "READ" for FUSE_READ of linux/fuse.h; NULL: not known. */
const char *fuse_opcode_name(uint32_t opcode);

#endif
