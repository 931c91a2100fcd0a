/* Names, units and definitions of the metrics. */
#include <errno.h>
#include <string.h>

#include "diag/derive/metrics.h"

static const struct {
	const char *name, *unit, *definition;
} metrics_info[METRIC_COUNT] = {
	[METRIC_DREAD] = {"dread", "s",
		"service time of a read call on a file object of the server"},
	[METRIC_DWRITE] = {"dwrite", "s",
		"service time of a write call on a file object of the server"},
	[METRIC_NSREAD] = {"nsread", "s",
		"time that the server takes to read one whole request from the network"},
	[METRIC_NCREAD] = {"ncread", "s",
		"time that a client takes to read one whole response of the server "
		"from the network"},
	[METRIC_NSBULK] = {"nsbulk", "s",
		"time that the server takes to read bulk data, which some file systems send apart "
		"from its request, from the network"},
	[METRIC_NCBULK] = {"ncbulk", "s",
		"time that a client takes to read bulk data of the server from the network"},
#define METRIC_ROW(e, name, unit, kind, definition) [METRIC_##e] = {name, unit, definition},
	READINGS_NODE(METRIC_ROW) READINGS_MORE(METRIC_ROW)
#undef METRIC_ROW
#define METRIC_ROW(e, name, unit, kind, definition)                                                \
	[METRIC_##e] = {name, unit, "at the server's ends: " definition},
		READINGS_TCP(METRIC_ROW)
#undef METRIC_ROW
#define METRIC_ROW(e, name, unit, kind, definition)                                                \
	[METRIC_CLIENT_##e] = {"client_" name, unit, "at the clients' ends: " definition},
			READINGS_TCP(METRIC_ROW)
#undef METRIC_ROW
};

const char *metric_name(enum metric m)
{
	return metrics_info[m].name;
}

const char *metric_unit(enum metric m)
{
	return metrics_info[m].unit;
}

const char *metric_definition(enum metric m)
{
	return metrics_info[m].definition;
}

int metric_from_name(const char *name, enum metric *m)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (!strcmp(name, metrics_info[i].name)) {
			*m = (enum metric)i;
			return 0;
		}
	return -ENOENT;
}
