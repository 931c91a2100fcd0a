/* culprit log: a trace log as text, as JSON lines, or summed up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cmd.h"
#include "harness/cli/log_view.h"

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

static int show(void *ctx, struct stream_item *item, struct err *e)
{
	struct view *v = ctx;

	if (!view_wants(v, item))
		return 0;
	if (v->summary)
		totals_add(v, item);
	else if (v->json)
		json_record(item);
	else
		text_record(v, item);
	return ferror(stdout) ? err_errno(e, -EIO, "cannot write") : 0;
}

struct options {
	struct view view;
	struct option_list paths;
	long pid;
};

static int run(const struct call *c)
{
	static const struct stream_consumer consumer = {.feed = show, .names = true};
	const struct stream_spec nothing_known = {0};
	struct options *o = c->options;
	struct view *v = &o->view;
	const struct log_head *head;
	struct stream *stream;
	struct err e;
	int rc;

	if (v->by && !v->summary)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "--by needs --summary");
	if (o->paths.n > VIEW_MAX_PATHS)
		return cmd_fail("log", CULPRIT_EXIT_USAGE, "at most %d times --path, not '%s'",
			VIEW_MAX_PATHS, o->paths.v[VIEW_MAX_PATHS]);
	while (v->n_paths < o->paths.n) {
		v->paths[v->n_paths] = o->paths.v[v->n_paths];
		v->n_paths++;
	}
	v->pid = (uint32_t)o->pid;
	rc = stream_new(c->args[0], &nothing_known, &stream, &e);
	if (rc < 0)
		return cmd_error("log", &e, ERR_USAGE);
	stream_add(stream, &consumer, v);
	v->stream = stream;
	head = stream_head(stream);
	if (v->calls)
		rc = choose_calls(v, head->arch, &e);
	if (rc == 0) {
		if (!v->summary)
			(v->json ? json_head : text_head)(head);
		rc = stream_run(stream, &e);
		if (v->summary)
			totals_print(v);
	}
	if (fflush(stdout) == EOF && rc == 0)
		rc = err_errno(&e, -errno, "cannot write");
	totals_free(v->totals);
	stream_free(stream);
	if (rc < 0)
		return cmd_error(
			"log", &e, rc == -EBADMSG || rc == -EINVAL ? ERR_DAMAGED : ERR_HARNESS);
	return CULPRIT_EXIT_OK;
}

static int set_by(void *field, const char *text, struct err *e)
{
	if (!choose_keys(field, text))
		return 0;
	return err_set(e, -EINVAL,
		"takes call, error, path, process, file, or several of them with commas, not '%s'",
		text);
}

#define AT(field) offsetof(struct options, field)
static const struct option_row rows[] = {
	{"summary", 'c', OPTION_FLAG, AT(view.summary), NULL,
		"print sums, the longest first: seconds, mean, median and 99th percentile "
		"(estimated from powers of two), maximum, calls, errors, bytes"},
	{"by", 0, OPTION_CALL, AT(view), "KEY,...",
		"rows of --summary: call, error, path, process, file (its tag), or several of them "
		"(default: call; with --errors: call,error)",
		.set = set_by},
	{"json", 0, OPTION_FLAG, AT(view.json), NULL, "print one JSON object per line"},
	{"tags", 0, OPTION_FLAG, AT(view.tags), NULL,
		"with each file descriptor its file's tag: device|inode|first seen. It tells a "
		"file from a later one with the same inode number (--json always has it)"},
	{"call", 0, OPTION_TEXT, AT(view.calls), "NAME,...", "only these calls: read,pread64"},
	{"pid", 0, OPTION_WHOLE, AT(pid), "PID", "only this process or thread", 1, 4294967295},
	{"name", 0, OPTION_TEXT, AT(view.name), "NAME", "only processes and threads of this name"},
	{"path", 0, OPTION_LIST, AT(paths), "PREFIX",
		"only calls on files at or below this path, or that name one; may be repeated"},
	{"errors", 0, OPTION_FLAG, AT(view.errors), NULL, "only calls that failed"},
	{0},
};

const struct command log_command = {.name = "log",
	.summary = "print a trace log",
	.arguments = "FILE",
	.about = "Prints a trace log ('-': standard input), one line per record: time (UTC), "
		 "process/thread, its name, the call with its paths and with what its descriptors "
		 "meant at that moment, its result ('?': it did not return), its service time in "
		 "seconds, and the offset in the file at which it began where the call does not "
		 "say that itself.\n\n"
		 "A log of sums (culprit trace --mode sums) has one line per second, process, "
		 "class of call and class of descriptor.",
	.examples = "culprit log --path /var/log/app.log --tags LOG   the story of one file\n"
		    "culprit log -c --by process,call LOG             where time goes\n"
		    "culprit log -c --errors --by call,error,path LOG which files were not found",
	.exits = "0 printed; 2 usage error, or the log is damaged or cut short (what could be read "
		 "is printed); 3 the output cannot be written.",
	ARGUMENTS(1, 1),
	OPTIONS(rows, struct options),
	.run = run};
