/* Base64 (RFC 4648, with padding): bytes in a line of JSON. */
#ifndef CULPRIT_HARNESS_BASE_BASE64_H
#define CULPRIT_HARNESS_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Characters that 'size' bytes become, without the NUL. */
static inline size_t base64_length(size_t size)
{
	return (size + 2) / 3 * 4;
}

/* Fills 'text', which has room for base64_length(size) + 1, with a NUL at its end. */
void base64_encode(const uint8_t *data, size_t size, char *text);

/* The bytes that 'n' characters stand for into 'data', which has room for n / 4 * 3 and may be
 * 'text' itself. Returns how many, or -EINVAL: not what base64_encode makes. */
int64_t base64_decode(const char *text, size_t n, uint8_t *data);

#endif
