/*
 * The user's SSH configuration as OpenSSH reads it: 'ssh -G' prints the settings of a
 * destination, so Host and Match blocks, Include, patterns and tokens have the same meaning as in
 * ssh. ssh runs once for each destination and makes no connection.
 */
#ifndef CULPRIT_HARNESS_NODES_SSH_CONFIG_H
#define CULPRIT_HARNESS_NODES_SSH_CONFIG_H

#include <stdbool.h>

#include "harness/base/err.h"

/* A set of allocations that are freed together. */
struct bag;
struct bag *bag_new(void);
void bag_free(struct bag *b);
/* Adds 'thing', from malloc, to the bag and returns it; NULL stays NULL. */
void *bag_keep(struct bag *b, void *thing);

struct ssh_config;

/* 'file' NULL: use ~/.ssh/config and /etc/ssh/ssh_config, if they exist; otherwise only 'file'.
 * -ENOENT: the file or the program ssh is missing. If 'file' is NULL, a missing ssh is not an
 * error: look-ups then return no settings. */
int ssh_config_open(const char *file, struct ssh_config **out, struct err *e);
void ssh_config_free(struct ssh_config *c);

/* NULL: not set. Lists are NULL-terminated. */
struct ssh_settings {
	const char *host_name; /* never NULL; defaults to the destination */
	unsigned port;         /* never 0 */
	const char *user;
	const char **identities; /* IdentityFile, tokens and ~ expanded */
	bool identities_only;
	const char *auth_socket; /* IdentityAgent */
	const char *host_key_alias;
	const char **known_hosts; /* user's and system's files, tokens and ~ expanded */
	const char *proxy_jump;   /* "[user@]host[:port],..." */
	const char *proxy_command;
	unsigned connect_timeout_s; /* 0: not set */
};

/* Looks up 'destination', written as for ssh. 'user' and 'port' (NULL, 0: none) override the
 * configuration, because patterns and tokens may depend on them. -EINVAL: ssh rejects its
 * configuration, or culprit cannot use a value; the sentence says which. 'bag' owns the strings
 * of '*out'. */
int ssh_config_lookup(struct ssh_config *c, const char *destination, const char *user,
	unsigned port, struct bag *bag, struct ssh_settings *out, struct err *e);

#endif
