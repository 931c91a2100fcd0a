/* Drops a share of packets by a firewall rule of our own. */
#include "faults/primitives/packets_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int packets_address_parse(const char *text, struct packets_address *a, struct err *e)
{
	a->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a->family, text, a->bytes) != 1)
		return err_set(e, -EINVAL, "'%s' is not an IPv4 or IPv6 address", text);
	inet_ntop(a->family, a->bytes, a->text, sizeof(a->text));
	return 0;
}

int packets_each_pair(const struct packets_spec *s,
	int (*fn)(void *ctx, const struct packets_address *from, const struct packets_address *to),
	void *ctx)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < (s->n_from ? s->n_from : 1); i++) {
		for (size_t j = 0; !rc && j < (s->n_to ? s->n_to : 1); j++) {
			const struct packets_address *from = s->n_from ? &s->from[i] : NULL;
			const struct packets_address *to = s->n_to ? &s->to[j] : NULL;

			if (!from || !to || from->family == to->family)
				rc = fn(ctx, from, to);
		}
	}
	return rc;
}

static const struct packets_backend *const backends[] = {&packets_nft, &packets_iptables};

const struct packets_backend *packets_backend_find(const char *name)
{
	for (size_t i = 0; i < 2; i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}

int packets_check(
	const char *forced, bool queue, const struct packets_backend **backend, struct err *e)
{
	struct err why[2];

	if (forced && !packets_backend_find(forced))
		return err_set(e, -EINVAL,
			"there is no backend '%s'; there are nftables and iptables", forced);
	if (geteuid() != 0)
		return err_set(e, -EPERM, "dropping or queueing packets needs root");
	for (size_t i = 0; i < 2; i++) {
		int rc;

		if (forced && strcmp(forced, backends[i]->name))
			continue;
		rc = backends[i]->check(queue, &why[i]);
		if (!rc) {
			*backend = backends[i];
			return 0;
		}
		if (forced || rc == -EPERM)
			return err_set(e, rc, "%s", why[i].text);
	}
	return err_set(e, -EOPNOTSUPP, "%.400s, and %.400s", why[0].text, why[1].text);
}

json_t *packets_inverse(
	const struct packets_backend *backend, const char *session, const char *handle)
{
	char name[64];

	/* iptables allows 28 characters. */
	snprintf(name, sizeof(name), "culprit_%.8s_%.10s", session, handle);
	return json_pack("{s:s, s:s}", "backend", backend->name, "table", name);
}

/* The inverse, read. */
struct packets_table {
	const struct packets_backend *backend;
	const char *name;
};

static int inverse_read(const json_t *inverse, struct packets_table *t, struct err *e)
{
	const char *backend;

	if (json_unpack((json_t *)inverse, "{s:s, s:s}", "backend", &backend, "table", &t->name) <
			0 ||
		strncmp(t->name, "culprit_", 8) || strlen(t->name) > 28 ||
		!(t->backend = packets_backend_find(backend)))
		return err_set(e, -EBADMSG, "the inverse of packets is damaged");
	return 0;
}

int packets_drop(const struct packets_spec *s, const json_t *inverse, struct err *e)
{
	struct packets_table t;

	return inverse_read(inverse, &t, e) ?: t.backend->drop(s, t.name, e);
}

int packets_read(const json_t *inverse, struct packets_counters *c, struct err *e)
{
	struct packets_table t;

	return inverse_read(inverse, &t, e) ?: t.backend->read(t.name, c, e);
}

static int packets_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	struct packets_table t;
	int rc = inverse_read(inverse, &t, e) ?: t.backend->has(t.name, was_there, e);

	return rc || !*was_there ? rc : t.backend->remove(t.name, e);
}

static int packets_verify(const json_t *inverse, struct err *e)
{
	struct packets_table t;
	bool found;
	int rc = inverse_read(inverse, &t, e) ?: t.backend->has(t.name, &found, e);

	return !rc && found ? err_set(e, -EBUSY, "the %s rules of '%s' are still there",
				      t.backend->name, t.name)
			    : rc;
}

const struct primitive packets_primitive = {
	.name = "packets",
	.ends_with_boot = true,
	.undo = packets_undo,
	.verify_undone = packets_verify,
};

int packets_tables(json_t **out, struct err *e)
{
	int rc = nft_list(out, e);

	/* Kernels without nf_tables answer in several ways. */
	if (rc == -EOPNOTSUPP || rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -EPERM) {
		*out = json_array();
		rc = *out ? 0 : err_errno(e, -ENOMEM, "cannot list nftables");
	}
	return rc;
}
