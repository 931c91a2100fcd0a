/*
 * Makes untrusted text (from logs, programs, detectors) safe for a terminal and for line formats
 * such as TAP: a newline becomes \n; other control characters, characters that change the text
 * direction, and bytes that are not UTF-8 become \xNN. All other text is unchanged.
 */
#ifndef CULPRIT_HARNESS_BASE_TEXT_H
#define CULPRIT_HARNESS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes as many whole characters as fit to 'out', and a NUL; 'size' is at least 1. Returns the
 * length of the complete clean text, like snprintf: a result of 'size' or more means that 'out'
 * was too small. */
size_t text_clean(const char *s, char *out, size_t size);

void text_print_clean(FILE *f, const char *s);

/* A CSV field (RFC 4180), quoted if necessary or if 'always'. */
void text_print_csv(FILE *f, const char *s, bool always);

/* Bytes as 2 * n hexadecimal digits, and a NUL. */
void text_hex(const void *data, size_t n, char *out);

/* Removes empty parts, "." and ".." from an absolute path, in place and without resolving links.
 * "/" becomes "". */
void text_tidy_path(char *path);

/* Is 'text' one of the words in 'choices', "in|out"? */
bool text_is_choice(const char *choices, const char *text);

#endif
