/* Base64 (RFC 4648, with padding), used for binary data in JSON lines. */
#ifndef CULPRIT_HARNESS_BASE_BASE64_H
#define CULPRIT_HARNESS_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Length of the encoding of 'size' bytes, without the NUL. */
static inline size_t base64_length(size_t size)
{
	return (size + 2) / 3 * 4;
}

/* Encodes into 'text', which has room for base64_length(size) + 1 characters, and adds a NUL. */
void base64_encode(const uint8_t *data, size_t size, char *text);

/* Decodes 'n' characters into 'data', which has room for n / 4 * 3 bytes and may be 'text'
 * itself. Returns the number of bytes, or -EINVAL if the text is not valid Base64. */
int64_t base64_decode(const char *text, size_t n, uint8_t *data);

#endif
