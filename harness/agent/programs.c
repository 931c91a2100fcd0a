/* What the programs within culprit-agent share. */
#include "harness/agent/programs.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/units.h"

#define OPTIONS_MAX 8

/*
 * On a target host the agent is started as LOADER --library-path DIR DIR/culprit-agent, so that it
 * uses no library of the host. /proc/self/exe is then the loader, and to start the agent again is
 * to start it in the same way.
 */
static char exe[PATH_MAX], program[PATH_MAX], folder[PATH_MAX];
static const char *words[5];

int self_init(const char *argv0, struct err *e)
{
	char copy[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return err_errno(e, -errno, "cannot read '/proc/self/exe'");
	exe[n] = '\0';
	words[0] = exe;
	strcpy(copy, exe);
	if (strncmp(basename(copy), "ld-", 3))
		return 0;
	if (!realpath(argv0, program))
		return err_errno(e, -errno, "cannot find this program as '%s'", argv0);
	strcpy(folder, program);
	words[1] = "--library-path";
	words[2] = dirname(folder);
	words[3] = program;
	return 0;
}

const char *const *self_argv(void)
{
	return words;
}

int program_options(int argc, char **argv, const struct program_option *options, int operands,
	const char *usage, int *code)
{
	struct option longs[OPTIONS_MAX + 2] = {{"help", no_argument, NULL, 'h'}};
	int c;

	for (int i = 0; i < OPTIONS_MAX && options[i].name; i++)
		longs[i + 1] = (struct option){options[i].name, required_argument, NULL, i};
	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			*code = 0;
			return -1;
		}
		if (c == '?' || !options[c].set(optarg, options[c].into))
			goto bad;
	}
	if (operands < 0 ? optind < argc : argc - optind == operands)
		return optind;
bad:
	fputs(usage, stderr);
	*code = 2;
	return -1;
}

bool option_text(const char *value, void *into)
{
	*(const char **)into = value;
	return true;
}

bool option_count(const char *value, void *into)
{
	unsigned long *n = into;
	char *end;

	errno = 0;
	*n = strtoul(value, &end, 10);
	return *value >= '0' && *value <= '9' && !errno && !*end && *n;
}

bool option_time(const char *value, void *into)
{
	double *s = into;

	return !unit_parse(UNIT_SECONDS, value, s, NULL) && *s > 0 && *s < SECONDS_PER_WEEK;
}

int program_failed(const char *command, const char *what, const char *subject, int errnum)
{
	fprintf(stderr, "culprit-agent %s: cannot %s '%s': %s\n", command, what, subject,
		strerror(errnum));
	return 1;
}
