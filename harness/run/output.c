/* What programs said in an attempt that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/base/jget.h"
#include "harness/base/text.h"
#include "harness/run/trial_impl.h"

#define OUTPUT "app.out"
#define KEPT_BYTES "65536" /* what the agent's 'run' returns at most */
#define SHOWN_BYTES 200
#define LINES_SHOWN 2

/* Path of a client's output, below 'root'. The caller frees. */
static char *output_path(const struct trial *t, const char *root, const struct member *m)
{
	return alloc_format("%s%s%s/%s." OUTPUT, root, *root ? "/" : "", t->folder, m->name);
}

/* Its path on this machine. The caller frees. */
static char *kept_path(const struct trial *t, const struct member *m)
{
	return output_path(t, store_folder(t->x->store), m);
}

static int tail_args(void *ctx, const struct member *m, json_t **args, struct err *e)
{
	struct trial *t = ctx;
	auto_free char *path = kept_path(t, m);
	size_t i = 0;

	(void)e;
	while (i < t->n_jobs && (t->jobs[i].kind != JOB_WORKLOAD || t->jobs[i].member != m))
		i++;
	/* It may be there already: its 'result' could not be read. */
	if (i == t->n_jobs || node_lost(m->node, NULL) || !access(path, F_OK))
		return 1;
	*args = json_pack("{s:[s, s, s, s, o]}", "argv", "tail", "-c", KEPT_BYTES, "--",
		json_sprintf("%s/" OUTPUT, node_dir(m->node)));
	return 0;
}

/* The last lines of 'text', without what is blank at its end. */
static const char *last_lines(char *text)
{
	size_t n = strlen(text), lines = 0;

	while (n && strchr(" \t\r\n", text[n - 1]))
		text[--n] = '\0';
	for (size_t at = n; at > 0; at--) {
		if (n - at > SHOWN_BYTES || (text[at - 1] == '\n' && ++lines == LINES_SHOWN)) {
			/* Not in the middle of a character. */
			while ((text[at] & 0xc0) == 0x80)
				at++;
			return text + at;
		}
	}
	return text;
}

/* Ends 'why' with where the output is, and how it ends. */
static void add_words(struct trial *t, struct err *why)
{
	auto_free char *path = kept_path(t, t->talker), *text = NULL;
	auto_free char *below = output_path(t, "", t->talker);
	char clean[4 * SHOWN_BYTES + 8];
	enum err_class class = why->class;
	struct err was = *why;

	if (file_read(path, &text, NULL, NULL))
		return;
	text_clean(last_lines(text), clean, sizeof(clean));
	if (*clean)
		err_set(why, -1, "%.600s; %s ends with: %s", was.text, below, clean);
	else
		err_set(why, -1, "%.600s; it printed nothing", was.text);
	why->class = class;
}

void measure_keep_output(struct trial *t, struct err *why)
{
	json_auto_t *results = NULL;
	json_t *result;
	const char *name;

	cluster_ask(t->x->cluster, "run", tail_args, t, CALL_TIMEOUT_S, &results, NULL);
	json_object_foreach(results, name, result) {
		const char *output = jget_text(result, "output");
		auto_free char *path = kept_path(t, cluster_member(t->x->cluster, name));

		if (output && !jget_int(result, "exit"))
			file_write_atomic(path, 0600, output, strlen(output), NULL);
	}
	if (t->talker)
		add_words(t, why);
}

int measure_list_output(struct trial *t, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->x->cluster->n_clients && !rc; i++) {
		const struct member *m = t->x->cluster->clients[i];
		auto_free char *path = kept_path(t, m), *below = output_path(t, "", m);

		if (!access(path, F_OK))
			rc = store_put_file(t->x->store, t->row.id, below, e);
	}
	return rc;
}
