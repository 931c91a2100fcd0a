/* Names of the operations of FUSE file systems. */
#ifndef CULPRIT_DIAG_RECORD_FUSE_H
#define CULPRIT_DIAG_RECORD_FUSE_H

#include <stdint.h>

/* "READ" for FUSE_READ of linux/fuse.h; NULL: unknown. */
const char *fuse_opcode_name(uint32_t opcode);

#endif
