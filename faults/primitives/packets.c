#include "faults/primitives/packets.h"

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

const char *packets_backend_name(enum packets_backend backend)
{
	return backend == PACKETS_NFTABLES ? "nftables" : "iptables";
}

int packets_check(const char *forced, enum packets_backend *backend, struct err *e)
{
	const struct packets_spec probe = {.percent = 1};
	struct err second;
	int rc = 0;

	if (forced && strcmp(forced, "nftables") && strcmp(forced, "iptables"))
		return err_set(e, -EINVAL,
			"there is no backend '%s'; there are nftables and iptables", forced);
	if (geteuid() != 0)
		return err_set(e, -EPERM, "dropping packets needs root");
	if (!forced || !strcmp(forced, "nftables")) {
		rc = nft_drop(&probe, "culprit_probe", false, e);
		if (!rc) {
			*backend = PACKETS_NFTABLES;
			return 0;
		}
		if (rc == -EPERM || forced)
			return rc;
	}
	if (!iptables_check(&second)) {
		*backend = PACKETS_IPTABLES;
		return 0;
	}
	return rc ? err_set(e, -EOPNOTSUPP, "%.400s, and %.400s", e ? e->text : "no nftables",
			    second.text)
		  : err_set(e, -EOPNOTSUPP, "%s", second.text);
}

json_t *packets_inverse(enum packets_backend backend, const char *session, const char *handle)
{
	char name[64];

	/* iptables allows 28 characters. */
	snprintf(name, sizeof(name), "culprit_%.8s_%.10s", session, handle);
	return json_pack("{s:s, s:s}", "backend", packets_backend_name(backend), "table", name);
}

static int inverse_read(
	const json_t *inverse, enum packets_backend *backend, const char **table, struct err *e)
{
	const char *name;

	if (json_unpack((json_t *)inverse, "{s:s, s:s}", "backend", &name, "table", table) < 0 ||
		strncmp(*table, "culprit_", 8) || strlen(*table) > 28)
		return err_set(e, -EBADMSG, "the inverse of packets is damaged");
	*backend = strcmp(name, "iptables") ? PACKETS_NFTABLES : PACKETS_IPTABLES;
	return 0;
}

int packets_drop(const struct packets_spec *s, const json_t *inverse, struct err *e)
{
	enum packets_backend backend;
	const char *table;
	int rc;

	rc = inverse_read(inverse, &backend, &table, e);
	if (rc)
		return rc;
	return backend == PACKETS_NFTABLES ? nft_drop(s, table, true, e)
					   : iptables_drop(s, table, e);
}

int packets_read(const json_t *inverse, struct packets_counters *c, struct err *e)
{
	enum packets_backend backend;
	const char *table;
	int rc;

	rc = inverse_read(inverse, &backend, &table, e);
	if (rc)
		return rc;
	return backend == PACKETS_NFTABLES ? nft_read(table, c, e) : iptables_read(table, c, e);
}

int packets_tables(json_t **out, struct err *e)
{
	int rc = nft_list(out, e);

	/* Kernels say the lack of nf_tables in several ways. */
	if (rc == -EOPNOTSUPP || rc == -EPROTONOSUPPORT || rc == -EINVAL || rc == -EPERM) {
		*out = json_array();
		rc = *out ? 0 : err_errno(e, -ENOMEM, "cannot list nftables");
	}
	return rc;
}

static int has(enum packets_backend backend, const char *table, bool *found, struct err *e)
{
	json_t *list, *value;
	char wanted[64];
	size_t i;
	int rc;

	if (backend == PACKETS_IPTABLES)
		return iptables_has(table, found, e);
	rc = nft_list(&list, e);
	if (rc)
		return rc;
	*found = false;
	snprintf(wanted, sizeof(wanted), "inet %s", table);
	json_array_foreach(list, i, value) *found = *found ||
		!strcmp(json_string_value(value), wanted);
	json_decref(list);
	return 0;
}

static int packets_undo(const json_t *inverse, bool *was_there, struct err *e)
{
	enum packets_backend backend;
	const char *table;
	int rc;

	rc = inverse_read(inverse, &backend, &table, e);
	if (!rc)
		rc = has(backend, table, was_there, e);
	if (rc || !*was_there)
		return rc;
	return backend == PACKETS_NFTABLES ? nft_remove(table, e) : iptables_remove(table, e);
}

static int packets_verify(const json_t *inverse, struct err *e)
{
	enum packets_backend backend;
	const char *table;
	bool found;
	int rc;

	rc = inverse_read(inverse, &backend, &table, e);
	if (!rc)
		rc = has(backend, table, &found, e);
	if (!rc && found)
		rc = err_set(e, -EBUSY, "the %s rules of '%s' are still there",
			packets_backend_name(backend), table);
	return rc;
}

const struct primitive packets_primitive = {
	.name = "packets",
	.ends_with_boot = true,
	.undo = packets_undo,
	.verify_undone = packets_verify,
};
