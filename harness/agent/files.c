/* culprit-agent files: which files there are below a folder, and their sizes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/app/walk.h"
#include "harness/agent/programs.h"

static void files_print(void *out, const char *path, int64_t size)
{
	fprintf(out, "%lld %s%c", (long long)size, path, '\0');
}

static int list(const char *root, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	struct err e = {""};
	int code = 0;

	if (!out)
		return program_failed("files", "make", path, errno);
	if (app_walk(root, files_print, out, &e)) {
		fprintf(stderr, "culprit-agent files: %s\n", e.text);
		code = 1;
	} else {
		fputc('\0', out);
		if (fflush(out) || ferror(out))
			code = program_failed("files", "write", path, errno);
	}
	fclose(out);
	if (code)
		unlink(path);
	return code;
}

int files_main(int argc, char **argv)
{
	static const char usage[] =
		"usage: culprit-agent files [--out FILE] DIR\n\n"
		"Prints the path of the folder DIR without symbolic links. To FILE, which may not "
		"exist, it writes\n"
		"\"SIZE PATH\" of all that is below DIR, and of itself with an empty path; each "
		"ends with a NUL, and\n"
		"the last one is empty.\n";
	const char *path = NULL;
	const struct program_option options[] = {{"out", option_text, &path}, {0}};
	int code, first = program_options(argc, argv, options, 1, usage, &code);
	char root[PATH_MAX];
	struct stat st;

	if (first < 0)
		return code;
	if (!realpath(argv[first], root) || stat(root, &st))
		return program_failed("files", "use", argv[first], errno);
	if (!S_ISDIR(st.st_mode))
		return program_failed("files", "use", argv[first], ENOTDIR);
	puts(root);
	return path ? list(root, path) : 0;
}
