/* Which of the clients' requests have an application behind them, and which threads sent those that
 * have none. */
#include <linux/fuse.h>
#include <string.h>

#include "diag/record/calls.h"
#include "diag/slow/slow_impl.h"

enum { THREADS = 64 };

static size_t thread_of(struct slow *s, const char *name)
{
	for (size_t i = 0; i < s->n_threads; i++)
		if (!strcmp(s->threads[i].name, name))
			return i;
	if (s->n_threads == THREADS)
		name = "";
	for (size_t i = 0; i < s->n_threads && !*name; i++)
		if (!*s->threads[i].name)
			return i;
	s->threads = alloc_room(s->threads, s->n_threads, sizeof(*s->threads));
	s->calls = alloc_room(s->calls, s->n_threads, sizeof(*s->calls));
	s->threads[s->n_threads] = (struct slow_thread){0};
	s->calls[s->n_threads] = (struct slow_calls){0};
	strncpy(s->threads[s->n_threads].name, name, sizeof(s->threads[0].name) - 1);
	return s->n_threads++;
}

static bool is_data(const struct flow_request *r)
{
	if (r->fuse && (r->fuse->opcode == FUSE_READ || r->fuse->opcode == FUSE_WRITE))
		return true;
	for (size_t i = 0; i < r->n_disks; i++)
		if (r->disks[i].class == CALL_READ || r->disks[i].class == CALL_WRITE ||
			r->disks[i].class == CALL_COPY)
			return true;
	return false;
}

void slow_callers_note(struct slow *s, const struct flow_request *r)
{
	const bool in_call = r->fuse && r->fuse->call.how;
	struct slow_calls *c;
	size_t i;

	if (!r->fuse && !(r->reasons & 1u << FLOW_NO_FUSE))
		return; /* its client has no FUSE daemon, or it is no whole request */
	i = thread_of(s, r->sent.how ? r->first_thread : "");
	s->threads[i].sent++;
	s->threads[i].bound += r->fuse != NULL;
	c = &s->calls[i];
	*(is_data(r) ? &c->data : &c->others) += 1;
	*(is_data(r) ? &c->data_in_call : &c->others_in_call) += in_call;
}

struct slow_calls slow_calls(const struct slow *s)
{
	struct slow_calls sum = {0};

	for (size_t i = 0; i < s->n_threads; i++) {
		const struct slow_calls *c = &s->calls[i];

		if (!s->threads[i].bound && *s->threads[i].name) {
			sum.own += s->threads[i].sent;
			continue;
		}
		sum.data += c->data;
		sum.data_in_call += c->data_in_call;
		sum.others += c->others;
		sum.others_in_call += c->others_in_call;
	}
	return sum;
}

const struct slow_thread *slow_threads(const struct slow *s, size_t *n)
{
	*n = s->n_threads;
	return s->threads;
}
