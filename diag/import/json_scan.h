/* JSON as a stream of tokens, in constant memory and linear time. For answers and files of any
 * size; several values may follow one another. */
#ifndef CULPRIT_DIAG_IMPORT_JSON_SCAN_H
#define CULPRIT_DIAG_IMPORT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/base/err.h"

enum { JSON_SCAN_DEPTH = 64, JSON_SCAN_TEXT = 4096 };

enum json_token {
	JSON_SCAN_END, /* end of the input; only between two values */
	JSON_SCAN_OBJECT,
	JSON_SCAN_OBJECT_END,
	JSON_SCAN_ARRAY,
	JSON_SCAN_ARRAY_END,
	JSON_SCAN_KEY,    /* 'text' */
	JSON_SCAN_STRING, /* 'text' */
	JSON_SCAN_NUMBER, /* 'text' and 'number' */
	JSON_SCAN_WORD,   /* true, false, null: 'text' */
};

/* The user sets 'f' and 'line' = 1; all other members are zero at first. */
struct json_scan {
	FILE *f;
	unsigned long line;
	char text[JSON_SCAN_TEXT]; /* UTF-8; 'cut' is set if it was truncated */
	size_t length;
	bool cut;
	double number;
	unsigned depth; /* of open objects and arrays */
	bool object[JSON_SCAN_DEPTH];
	/* private: 'some': a value precedes in it; 'key': a key without its value yet */
	bool some, key;
};

/* Returns the next token, or -EINVAL with "LINE: sentence" (without the source), or -EIO. */
int json_scan(struct json_scan *s, struct err *e);

/* Reads to the end of the value that begins with 'token'. 0, or an error as json_scan. */
int json_scan_skip(struct json_scan *s, int token, struct err *e);

/* Like json_scan, but demands 'token': -EINVAL with "LINE: 'what' is not ...". */
int json_scan_want(struct json_scan *s, enum json_token token, const char *what, struct err *e);

#endif
