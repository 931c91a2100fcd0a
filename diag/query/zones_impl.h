/* Parts of the zone index that its two files share. */
#ifndef CULPRIT_DIAG_QUERY_ZONES_IMPL_H
#define CULPRIT_DIAG_QUERY_ZONES_IMPL_H

#include "diag/query/zones.h"

#define ZONES_MAGIC "CULPZONE"
enum { ZONES_VERSION = 1 };

struct zones_file zones_file_of(const struct stat *st);
uint32_t zones_crc(const struct zones *z);

#endif
