/*
 * Text from elsewhere (logs, programs, detectors) made safe for a terminal and for line formats
 * such as TAP: a newline becomes \n; every other control character, those that turn the direction
 * of text, and every byte that is not UTF-8, become \xNN. All other text stays as it is.
 */
#ifndef CULPRIT_HARNESS_BASE_TEXT_H
#define CULPRIT_HARNESS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes to 'out' as much as fits, in whole characters, and a NUL; 'size' is at least 1. Returns
 * the length of the whole clean text, as snprintf does: not below 'size' means that 'out' was too
 * small. */
size_t text_clean(const char *s, char *out, size_t size);

void text_print_clean(FILE *f, const char *s);

/* A field of CSV (RFC 4180): in quotation marks where it needs them, or 'always'. */
void text_print_csv(FILE *f, const char *s, bool always);

/* Bytes as 2 * n hexadecimal digits, and a NUL. */
void text_hex(const void *data, size_t n, char *out);

/* An absolute path without empty parts, "." and "..", in place: as it reads, whatever links there
 * are. "/" becomes "". */
void text_tidy_path(char *path);

/* Is 'text' one of the words in 'choices', "in|out"? */
bool text_is_choice(const char *choices, const char *text);

#endif
