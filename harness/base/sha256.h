/* SHA-256 of data in memory, as bytes and as text. */
#ifndef CULPRIT_HARNESS_BASE_SHA256_H
#define CULPRIT_HARNESS_BASE_SHA256_H

#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/alloc.h"
#include "harness/base/text.h"

enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES + 1 };

static inline void sha256(const void *data, size_t size, uint8_t out[SHA256_BYTES])
{
	/* Fails only if memory runs out. */
	if (!EVP_Digest(data, size, out, NULL, EVP_sha256(), NULL))
		alloc_end();
}

static inline void sha256_hex(const void *data, size_t size, char out[SHA256_HEX])
{
	uint8_t sum[SHA256_BYTES];

	sha256(data, size, sum);
	text_hex(sum, sizeof(sum), out);
}

#endif
