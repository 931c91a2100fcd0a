/*
 * The user's SSH configuration, as OpenSSH itself reads it: 'ssh -G' prints the settings of a
 * destination, so that Host and Match blocks, Include, patterns and tokens mean here what they mean
 * to ssh. ssh is run once for each destination and connects to nobody.
 */
#ifndef CULPRIT_HARNESS_NODES_SSH_CONFIG_H
#define CULPRIT_HARNESS_NODES_SSH_CONFIG_H

#include <stdbool.h>

#include "harness/base/err.h"

/* Allocations that are freed together. */
struct bag;
struct bag *bag_new(void);
void bag_free(struct bag *b);
/* Takes 'thing', from malloc, and returns it; NULL stays NULL. */
void *bag_keep(struct bag *b, void *thing);

struct ssh_config;

/* 'file' NULL: ~/.ssh/config and /etc/ssh/ssh_config, those that are there; else that one alone.
 * -ENOENT: no such file, or no program ssh; where 'file' is NULL a missing ssh is no error: every
 * look-up then finds nothing set. */
int ssh_config_open(const char *file, struct ssh_config **out, struct err *e);
void ssh_config_free(struct ssh_config *c);

/* NULL: not set. Lists end with NULL. */
struct ssh_settings {
	const char *host_name; /* never NULL; by default the destination itself */
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

/* For 'destination' as it would be given to ssh; 'user' and 'port' (NULL, 0: none) are what
 * overrides the configuration, since patterns and tokens may depend on them. -EINVAL: ssh refuses
 * its configuration, or a value here means nothing to culprit; the sentence says what. What '*out'
 * points to is in 'bag'. */
int ssh_config_lookup(struct ssh_config *c, const char *destination, const char *user,
	unsigned port, struct bag *bag, struct ssh_settings *out, struct err *e);

#endif
