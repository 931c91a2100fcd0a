/* JSON as a stream of tokens: memory does not depend on the size of the text, nor time on more than
 * its length. For answers and files of any size; several values may follow one another. */
#ifndef CULPRIT_DIAG_IMPORT_JSON_SCAN_H
#define CULPRIT_DIAG_IMPORT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { JSON_SCAN_DEPTH = 64, JSON_SCAN_TEXT = 4096 };

enum json_token {
	JSON_SCAN_END, /* of the input; only between two values */
	JSON_SCAN_OBJECT,
	JSON_SCAN_OBJECT_END,
	JSON_SCAN_ARRAY,
	JSON_SCAN_ARRAY_END,
	JSON_SCAN_KEY,    /* 'text' */
	JSON_SCAN_STRING, /* 'text' */
	JSON_SCAN_NUMBER, /* 'text' and 'number' */
	JSON_SCAN_WORD,   /* true, false, null: 'text' */
};

/* 'f' and 'line' = 1 are set by the user, all else is zero at first. */
struct json_scan {
	FILE *f;
	unsigned long line;
	char text[JSON_SCAN_TEXT]; /* UTF-8; what does not fit is cut off, and 'cut' says so */
	size_t length;
	bool cut;
	double number;
	unsigned depth; /* of open objects and arrays */
	bool object[JSON_SCAN_DEPTH];
	bool some, key; /* private: a value came before in it; a key came and no value yet */
};

/* The next token, or -EINVAL with "LINE: sentence" (without the source), or -EIO. */
int json_scan(struct json_scan *s, struct err *e);

/* Reads to the end of the value that 'token' begins. 0 or as json_scan. */
int json_scan_skip(struct json_scan *s, int token, struct err *e);

/* As json_scan, but it must be 'token': -EINVAL with "LINE: 'what' is not ...". */
int json_scan_want(struct json_scan *s, enum json_token token, const char *what, struct err *e);

#endif
