/* Connects to all hosts of an inventory, each on its own. */
#include "harness/run/contact.h"

#include <stdlib.h>

#include "harness/base/alloc.h"
#include "harness/base/home.h"

static void *call(void *contact)
{
	struct contact *c = contact;

	c->fn(c);
	return NULL;
}

void contacts_each(struct contact *contacts, size_t n, void (*fn)(struct contact *c))
{
	for (size_t i = 0; i < n; i++) {
		contacts[i].fn = fn;
		contacts[i].threaded = !pthread_create(
			&contacts[i].thread, NULL, call, &contacts[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (contacts[i].threaded)
			pthread_join(contacts[i].thread, NULL);
		else
			fn(&contacts[i]);
	}
}

static void connect_one(struct contact *c)
{
	const struct node_options opts = {.agent_dir = c->visitor};

	c->rc = node_connect_all(&c->host->ssh, 1, &opts, &c->set, &c->err);
	if (!c->rc)
		c->node = nodeset_at(c->set, 0);
}

static void free_one(struct contact *c)
{
	nodeset_free(c->set);
}

int contacts_new(const struct inventory *inv, struct contact **out, struct err *e)
{
	struct contact *contacts;
	char *agent_dir;
	int rc = home_agent_dir(&agent_dir, e);

	if (rc)
		return rc;
	contacts = alloc_zero(inv->n_hosts, sizeof(*contacts));
	for (size_t i = 0; i < inv->n_hosts; i++)
		contacts[i] = (struct contact){.host = &inv->hosts[i], .visitor = agent_dir};
	contacts_each(contacts, inv->n_hosts, connect_one);
	free(agent_dir);
	*out = contacts;
	return 0;
}

void contacts_free(struct contact *contacts, size_t n)
{
	/* A node takes a moment to end its session, so all do it in parallel. */
	if (contacts)
		contacts_each(contacts, n, free_one);
	free(contacts);
}
