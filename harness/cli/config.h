/*
 * Defaults of options from the user's configuration file: $CULPRIT_CONFIG, or else
 * $XDG_CONFIG_HOME/culprit/config.lua (~/.config/culprit/config.lua), if it is there. An empty
 * $CULPRIT_CONFIG: none.
 *
 *     return {
 *       run = { inventory = "/home/me/hosts.lua", lease = "20s" },
 *       ["lab up"] = { servers = 6 },
 *     }
 *
 * A key is a command, its table has the command's options by their long names. What the command
 * line says comes after it. Options that may be repeated cannot stand there.
 */
#ifndef CULPRIT_HARNESS_CLI_CONFIG_H
#define CULPRIT_HARNESS_CLI_CONFIG_H

#include "harness/cli/options.h"

/* Texts that the options point into; freed after the command by the caller. */
struct config {
	char **texts;
	size_t n;
};

typedef int config_set_fn(const struct option_row *o, char *field, const char *text, struct err *e);

/* Sets the options of a command by 'set'. ERR_SCENARIO with "FILE:LINE: ..." for what the file must
 * not say. */
int config_apply(const struct command *c, void *options, config_set_fn *set, struct config *held,
	struct err *e);
void config_clear(struct config *held);

#endif
