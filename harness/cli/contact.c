#include "harness/cli/contact.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "harness/base/home.h"

struct job {
	pthread_t thread;
	bool started;
	const char *agent_dir;
	struct contact *contact;
};

static void *connect_one(void *arg)
{
	struct job *j = arg;
	const struct node_options opts = {.agent_dir = j->agent_dir};
	struct contact *c = j->contact;

	c->rc = node_connect_all(&c->host->ssh, 1, &opts, &c->set, &c->err);
	if (!c->rc)
		c->node = nodeset_at(c->set, 0);
	return NULL;
}

static void *free_one(void *arg)
{
	struct job *j = arg;

	nodeset_free(j->contact->set);
	return NULL;
}

/* Runs 'fn' for all at once; those that get no thread, one after the other. */
static void each(struct job *jobs, size_t n, void *(*fn)(void *))
{
	size_t i;

	for (i = 0; i < n; i++)
		jobs[i].started = !pthread_create(&jobs[i].thread, NULL, fn, &jobs[i]);
	for (i = 0; i < n; i++) {
		if (jobs[i].started)
			pthread_join(jobs[i].thread, NULL);
		else
			fn(&jobs[i]);
	}
}

static struct job *make_jobs(struct contact *contacts, size_t n, const char *agent_dir)
{
	struct job *jobs = calloc(n + 1, sizeof(*jobs));
	size_t i;

	for (i = 0; jobs && i < n; i++) {
		jobs[i].contact = &contacts[i];
		jobs[i].agent_dir = agent_dir;
	}
	return jobs;
}

int contacts_new(const struct inventory *inv, struct contact **out, struct err *e)
{
	struct contact *contacts = calloc(inv->n_hosts + 1, sizeof(*contacts));
	struct job *jobs = NULL;
	char *agent_dir = NULL;
	size_t i;
	int rc;

	rc = home_agent_dir(&agent_dir, e);
	if (rc < 0)
		goto out;
	jobs = contacts ? make_jobs(contacts, inv->n_hosts, agent_dir) : NULL;
	if (!jobs) {
		rc = err_errno(e, -ENOMEM, "cannot connect");
		goto out;
	}
	for (i = 0; i < inv->n_hosts; i++)
		contacts[i].host = &inv->hosts[i];
	each(jobs, inv->n_hosts, connect_one);
	*out = contacts;
	contacts = NULL;
out:
	free(contacts);
	free(jobs);
	free(agent_dir);
	return rc;
}

void contacts_free(struct contact *contacts, size_t n)
{
	struct job *jobs;
	size_t i;

	if (!contacts)
		return;
	/* A node takes its time to say bye, so all say it at once. */
	jobs = make_jobs(contacts, n, NULL);
	if (jobs)
		each(jobs, n, free_one);
	else
		for (i = 0; i < n; i++)
			nodeset_free(contacts[i].set);
	free(jobs);
	free(contacts);
}
