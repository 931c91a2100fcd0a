/* How arrays grow on a node, where memory that has run out ends nothing. alloc_room (alloc.h) is
 * the same for code that ends the program then. */
#ifndef CULPRIT_HARNESS_BASE_VEC_H
#define CULPRIT_HARNESS_BASE_VEC_H

#include <stdint.h>
#include <stdlib.h>

/* 'array' of 'n' elements with room for one more behind them; it may have moved. NULL: there is no
 * memory, and the array is as it was. It must have been NULL at first, and have grown by this
 * alone; elements may be taken away. */
static inline void *vec_room(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}

#endif
