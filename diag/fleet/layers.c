/* Layers of block devices: a volume is served by disks, so its times are theirs, and it is no peer
 * of them. Known by the names that Linux gives. Any other name next to disks was given by an
 * administrator: it names a volume (iostat -N), a group of disks (iostat -g), or a total. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "diag/fleet/fleet_impl.h"
#include "harness/base/alloc.h"

/* In the order of preference. */
enum layer {
	LAYER_NONE, /* no device, or one of an unknown kind */
	LAYER_DISK,
	LAYER_MULTIPATH,
	LAYER_PATH,
	LAYER_MD,
	LAYER_MAPPER,
	LAYER_BCACHE,
	LAYER_DRBD,
	LAYER_ZVOL,
	LAYER_PARTITION,
	LAYER_LOOP,
	LAYER_ZRAM,
	LAYER_RAM,
	LAYER_REMOVABLE,
	LAYERS
};

static const char *const layer_names[LAYERS] = {[LAYER_NONE] = "an unknown kind",
	[LAYER_DISK] = "disks",
	[LAYER_MULTIPATH] = "multipath",
	[LAYER_PATH] = "paths to NVMe disks",
	[LAYER_MD] = "md",
	[LAYER_MAPPER] = "device-mapper",
	[LAYER_BCACHE] = "bcache",
	[LAYER_DRBD] = "DRBD",
	[LAYER_ZVOL] = "ZFS volumes",
	[LAYER_PARTITION] = "partitions",
	[LAYER_LOOP] = "loop",
	[LAYER_ZRAM] = "zram",
	[LAYER_RAM] = "ram",
	[LAYER_REMOVABLE] = "removable"};

/* '#' is one digit or more, '@' one small letter or more; '/' is also '!', as in /sys. */
static const struct {
	const char *pattern;
	enum layer layer;
} kinds[] = {
	{"sd@", LAYER_DISK},
	{"sd@#", LAYER_PARTITION},
	{"hd@", LAYER_DISK},
	{"hd@#", LAYER_PARTITION},
	{"vd@", LAYER_DISK},
	{"vd@#", LAYER_PARTITION},
	{"xvd@", LAYER_DISK},
	{"xvd@#", LAYER_PARTITION},
	{"dasd@", LAYER_DISK},
	{"dasd@#", LAYER_PARTITION},
	{"nvme#n#", LAYER_DISK},
	{"nvme#n#p#", LAYER_PARTITION},
	{"nvme#c#n#", LAYER_PATH},
	{"cciss/c#d#", LAYER_DISK},
	{"cciss/c#d#p#", LAYER_PARTITION},
	{"mmcblk#", LAYER_DISK},
	{"mmcblk#p#", LAYER_PARTITION},
	{"mmcblk#boot#", LAYER_PARTITION},
	{"pmem#", LAYER_DISK},
	{"pmem#p#", LAYER_PARTITION},
	{"rbd#", LAYER_DISK},
	{"rbd#p#", LAYER_PARTITION},
	{"nbd#", LAYER_DISK},
	{"nbd#p#", LAYER_PARTITION},
	{"rssd@", LAYER_DISK},
	{"rssd@#", LAYER_PARTITION},
	{"fio@", LAYER_DISK},
	{"fio@#", LAYER_PARTITION},
	{"mpath@", LAYER_MULTIPATH},
	{"mpath@#", LAYER_PARTITION},
	{"mpath@p#", LAYER_PARTITION},
	{"mpath@-part#", LAYER_PARTITION},
	{"emcpower@", LAYER_MULTIPATH},
	{"emcpower@#", LAYER_PARTITION},
	{"md#", LAYER_MD},
	{"md_d#", LAYER_MD},
	{"md#p#", LAYER_PARTITION},
	{"dm-#", LAYER_MAPPER},
	{"bcache#", LAYER_BCACHE},
	{"bcache#p#", LAYER_PARTITION},
	{"drbd#", LAYER_DRBD},
	{"zd#", LAYER_ZVOL},
	{"zd#p#", LAYER_PARTITION},
	{"loop#", LAYER_LOOP},
	{"loop#p#", LAYER_PARTITION},
	{"zram#", LAYER_ZRAM},
	{"ram#", LAYER_RAM},
	{"sr#", LAYER_REMOVABLE},
	{"fd#", LAYER_REMOVABLE},
};

static bool matches(const char *pattern, const char *name)
{
	for (; *pattern; pattern++) {
		if (*pattern != '#' && *pattern != '@') {
			if (*name != *pattern && !(*pattern == '/' && *name == '!'))
				return false;
			name++;
			continue;
		}
		const char *from = name;

		/* As few letters as the rest of the pattern leaves: "mpath@p#". */
		while (*pattern == '#' ? isdigit((unsigned char)*name)
				       : islower((unsigned char)*name)) {
			name++;
			if (*pattern == '@' && matches(pattern + 1, name))
				return true;
		}
		if (name == from)
			return false;
	}
	return !*name;
}

/* Of a member's name, or of its last parts: "host1/sda", "/dev/sda", "/dev/cciss/c0d0". */
uint8_t layers_of(const char *name)
{
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (matches(kinds[i].pattern, part))
				return kinds[i].layer;
	}
	return LAYER_NONE;
}

char *layers_choose(struct fleet *f)
{
	size_t counts[LAYERS] = {0}, out = 0;
	enum layer kept = LAYER_DISK;
	char *said = NULL;
	bool devices;

	for (size_t i = 0; i < f->n_members; i++)
		counts[f->members[i].layer]++;
	devices = counts[LAYER_DISK] && counts[LAYER_NONE] < f->n_members - counts[LAYER_NONE];
	for (enum layer l = LAYER_DISK; !counts[LAYER_DISK] && l < LAYERS; l++)
		if (counts[l] > counts[kept])
			kept = l;
	for (size_t i = 0; i < f->n_members; i++) {
		enum layer own = f->members[i].layer;

		f->members[i].left_out = own != kept && (own != LAYER_NONE || devices);
		out += f->members[i].left_out;
	}
	for (enum layer l = LAYER_NONE; out && l < LAYERS; l++) {
		char *before = said;

		if (!counts[l] || l == kept || (l == LAYER_NONE && !devices))
			continue;
		said = alloc_format("%s%s%zu of %s", before ? before : "", before ? ", " : "",
			counts[l], layer_names[l]);
		free(before);
	}
	if (said) {
		char *list = said;

		said = alloc_format("only %s are compared; left out are %s: what stands on a "
				    "device, or below it, is no peer of it",
			layer_names[kept], list);
		free(list);
	}
	return said;
}
