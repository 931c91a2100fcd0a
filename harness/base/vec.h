/* Grows arrays on a node, where running out of memory must not end the program. alloc_room
 * (alloc.h) is the variant that ends the program. */
#ifndef CULPRIT_HARNESS_BASE_VEC_H
#define CULPRIT_HARNESS_BASE_VEC_H

#include <stdint.h>
#include <stdlib.h>

/* Grows 'array', which has 'n' elements, to have room for one more; it may move. Returns NULL if
 * memory runs out and leaves the array unchanged. The array must start as NULL and grow only
 * through this function; removing elements is fine. */
static inline void *vec_room(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}

#endif
