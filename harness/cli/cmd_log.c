/* culprit log: a trace log as text, as JSON lines, or summed up. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/log_view.h"

static void usage(FILE *f)
{
	fputs("usage: culprit log [OPTIONS] FILE\n"
	      "\n"
	      "Prints a trace log ('-': from standard input), one line a record: time (UTC), process/thread, its\n"
	      "name, the call with its paths and with what its descriptors meant at that moment, its result ('?': it\n"
	      "did not return), its service time in seconds, the offset in the file at which it began where the call\n"
	      "does not say that itself. A log of sums (culprit trace --mode sums) has a line a second, process, class\n"
	      "of call and of descriptor. Exit code 2 if the log is damaged or cut short, after what could be read.\n"
	      "\n"
	      "  -c, --summary   sums instead, the longest first: seconds, mean, median and 99th percentile (estimated\n"
	      "                  from powers of two), maximum, calls, errors, bytes\n"
	      "  --by KEYS       what the rows of --summary are: call, error, path, process, file (its tag), or\n"
	      "                  several with commas; default: call (with --errors: call,error)\n"
	      "  --json          one JSON object a line instead\n"
	      "  --tags          with a file's descriptor its tag: device|inode|when it was first met, which tells\n"
	      "                  a file from another that has its inode number later (--json has it always)\n"
	      "  --call NAMES    only these calls, e.g. read,pread64\n"
	      "  --pid PID       only this process or thread\n"
	      "  --name NAME     only processes and threads of this name\n"
	      "  --path PREFIX   only calls on files at or below this path, or that name one; may be repeated\n"
	      "  --errors        only calls that failed\n"
	      "\n"
	      "examples:\n"
	      "  culprit log --path /var/log/app.log --tags LOG   a file's whole story, who ever touched it\n"
	      "  culprit log -c --by process,call LOG             who spends time where\n"
	      "  culprit log -c --errors --by call,error,path LOG which files were looked for in vain\n",
		f);
}

/* Names of --call to numbers, once the log's architecture is known. */
static int choose_calls(struct view *v, const char *arch, struct err *e)
{
	char names[1024], *save, *name;

	snprintf(names, sizeof(names), "%s", v->calls);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int nr = call_number(arch, name);

		if (nr < 0)
			return err_set(
				e, -EINVAL, "there is no system call '%s' on %s", name, arch);
		v->want_call[nr] = true;
		v->some_calls = true;
	}
	return 0;
}

static int choose_keys(struct view *v, const char *text)
{
	static const struct {
		const char *name;
		enum view_by by;
	} keys[] = {{"call", BY_CALL}, {"path", BY_PATH}, {"process", BY_PROCESS},
		{"error", BY_ERROR}, {"file", BY_FILE}};
	char names[64], *save, *name;

	snprintf(names, sizeof(names), "%s", text);
	for (name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		unsigned by = 0;

		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strcmp(keys[i].name, name))
				by = keys[i].by;
		if (!by)
			return -EINVAL;
		v->by |= by;
	}
	return v->by ? 0 : -EINVAL;
}

static int show(struct view *v, struct log_reader *r, struct err *e)
{
	const struct record *rec;
	int rc;

	while ((rc = log_next(r, &rec, e)) > 0) {
		/* A closed descriptor's path is known before the table hears of the close; a name
		 * only after. */
		bool before = rec->type == RECORD_FD, want = before && view_wants(v, rec);

		if (view_feed(v, rec) < 0)
			return err_set(e, -ENOMEM, "out of memory");
		if (before ? !want : !view_wants(v, rec))
			continue;
		if (v->summary) {
			if (totals_add(v, rec) < 0)
				return err_set(e, -ENOMEM, "out of memory");
		} else if (v->json) {
			json_record(v, rec);
		} else {
			text_record(v, rec);
		}
		if (ferror(stdout))
			return err_errno(e, -EIO, "cannot write");
	}
	return rc;
}

/* An exit code, or -1: go on. */
static int parse(int argc, char **argv, struct view *v)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"summary", no_argument, NULL, 'c'},
		{"call", required_argument, NULL, 'C'},
		{"pid", required_argument, NULL, 'p'},
		{"errors", no_argument, NULL, 'e'},
		{"tags", no_argument, NULL, 't'},
		{"name", required_argument, NULL, 'n'},
		{"path", required_argument, NULL, 'P'},
		{"by", required_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "ch", longs, NULL)) != -1) {
		switch (c) {
		case 'j': v->json = true; break;
		case 'c': v->summary = true; break;
		case 'C': v->calls = optarg; break;
		case 'e': v->errors = true; break;
		case 't': v->tags = true; break;
		case 'n': v->name = optarg; break;
		case 'P':
			if (v->n_paths == VIEW_MAX_PATHS)
				return cmd_fail("log", CULPRIT_EXIT_USAGE,
					"too many paths, from '%s' on", optarg);
			v->paths[v->n_paths++] = optarg;
			break;
		case 'b':
			if (choose_keys(v, optarg) < 0)
				return cmd_fail("log", CULPRIT_EXIT_USAGE,
					"--by takes call, error, path, process, file, or "
					"several of them with commas, not '%s'",
					optarg);
			break;
		case 'p':
			v->pid = (uint32_t)strtoul(optarg, &end, 10);
			if (*end || !v->pid)
				return cmd_fail("log", CULPRIT_EXIT_USAGE,
					"'%s' is no process number", optarg);
			break;
		case 'h': usage(stdout); return CULPRIT_EXIT_OK;
		default: usage(stderr); return CULPRIT_EXIT_USAGE;
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		return CULPRIT_EXIT_USAGE;
	}
	if (v->by && !v->summary)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "--by is for --summary");
	return -1;
}

int cmd_log(int argc, char **argv)
{
	static struct view v;
	struct log_reader *r;
	struct err e;
	int rc;

	rc = parse(argc, argv, &v);
	if (rc >= 0)
		return rc;
	rc = log_reader_new(argv[optind], &r, &e);
	if (rc < 0)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "%s", e.text);
	v.arch = call_arch(log_reader_head(r)->arch);
	v.fds = fdtable_new();
	if (!v.fds)
		rc = err_set(&e, -ENOMEM, "out of memory");
	if (rc == 0 && v.calls)
		rc = choose_calls(&v, log_reader_head(r)->arch, &e);
	if (rc == 0) {
		if (!v.summary && v.json)
			json_head(log_reader_head(r));
		else if (!v.summary)
			text_head(log_reader_head(r));
		rc = show(&v, r, &e);
		if (v.summary)
			totals_print(&v);
	}
	if (fflush(stdout) == EOF && rc == 0)
		rc = err_errno(&e, -errno, "cannot write");
	view_clear(&v);
	log_reader_free(r);
	if (rc < 0)
		return cmd_fail("log",
			rc == -EBADMSG || rc == -EINVAL ? CULPRIT_EXIT_USAGE : CULPRIT_EXIT_INVALID,
			"%s", e.text);
	return CULPRIT_EXIT_OK;
}
