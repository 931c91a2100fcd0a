/*
 * Limits that bound a hang, for tests. They hold on an idle machine; where the machine is slower,
 * or busy, the runner says by which factor in CULPRIT_TEST_PATIENCE. What a test measures or
 * promises is never scaled.
 */
#ifndef CULPRIT_CI_TESTS_PATIENCE_H
#define CULPRIT_CI_TESTS_PATIENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double patience_factor = 1;

/* Before main: tests clear their environment. */
static __attribute__((constructor)) void patience_read(void)
{
	const char *text = getenv("CULPRIT_TEST_PATIENCE");
	char *end;

	if (!text)
		return;
	patience_factor = strtod(text, &end);
	if (end == text || *end || !(patience_factor >= 1 && patience_factor <= 1000)) {
		fprintf(stderr,
			"CULPRIT_TEST_PATIENCE: '%s' is no number from 1 to 1000; unset it for 1\n",
			text);
		exit(2);
	}
}

/* The factor, 1 or above. */
static inline double patience(void)
{
	return patience_factor;
}

/* A limit of 's' seconds, in seconds. */
static inline double patient_s(double s)
{
	return s * patience_factor;
}

/* Ends the program after that limit, by SIGALRM. */
static inline void patient_alarm(double s)
{
	alarm((unsigned)patient_s(s) + 1);
}

#endif
