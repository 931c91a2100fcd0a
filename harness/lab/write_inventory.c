/* The lab's inventory file. */
#include <string.h>

#include "harness/base/auto.h"
#include "harness/base/file.h"
#include "harness/lab/lab_impl.h"
#include "harness/lab/recipe.h"

static void put_node(struct lab_text *t, const struct lab_options *o, const struct recipe *r,
	const struct lab_node *n, const int loops[2])
{
	auto_free char *key = NULL;

	child_must(file_read(
		lab_path(o->dir, "node/%s/host_key.pub", n->name).s, &key, NULL, &child_err));
	lab_put(t,
		"    { name = \"%s\", role = \"%s\", address = \"%s\",\n"
		"      host_key = \"%.*s\", identity = \"id_ed25519\"",
		n->name, role_name(n->role), n->address, (int)strcspn(key, "\n"), key);
	if (n->role == ROLE_SERVER) {
		if (recipe_raw_storage(r))
			lab_put(t, ",\n      storage = \"%s\"", loop_path(loops[0]).s);
		else
			lab_put(t, ",\n      storage = \"" LAB_STORAGE "\"");
		if (recipe_port(r))
			lab_put(t, ", service_port = %u", recipe_port(r));
		lab_put(t, ", spare = \"%s\"", loop_path(loops[1]).s);
	}
	if (n->role == ROLE_CLIENT)
		lab_put(t, ", mount = \"%s\"", LAB_MOUNT);
	lab_put(t, " },\n");
}

void state_inventory(const struct lab_options *o, const struct recipe *r, const int (*loops)[2])
{
	struct lab_text t = {0};

	lab_put(&t,
		"-- Written by 'culprit lab up'.\nreturn {\n"
		"  file_system = { type = \"%s\", layout = \"%s\"%s%s%s },\n"
		"  ssh_config = \"none\",\n  allow_restart = true,\n  nodes = {\n",
		o->fs, o->layout, *o->settings ? ", settings = \"" : "", o->settings,
		*o->settings ? "\"" : "");
	lab_each(n, o, o->servers + o->clients + o->outsiders)
		put_node(&t, o, r, &n, n.role == ROLE_SERVER ? loops[n.i] : NULL);
	lab_put(&t, "  },\n}\n");
	lab_save(lab_path(o->dir, "inventory.lua"), 0644, t.s);
}
