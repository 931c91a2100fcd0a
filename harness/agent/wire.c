/* Sends JSON objects over a socket pair, one a packet. */
#include "harness/agent/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/base/auto.h"

char *wire_text(const json_t *message)
{
	auto_free char *text = json_dumps(message, JSON_COMPACT);
	auto_json json_t *again = text ? json_loads(text, 0, NULL) : NULL;

	return again && json_equal(again, message) ? AUTO_TAKE(text) : NULL;
}

json_t *wire_parse(const char *text, size_t size)
{
	auto_json json_t *value = json_loadb(text, size, 0, NULL);
	auto_free char *again = value ? json_dumps(value, JSON_COMPACT) : NULL;

	return again && strlen(again) == size && !memcmp(again, text, size) ? AUTO_TAKE(value)
									    : NULL;
}

int wire_send(int sock, json_t *message)
{
	auto_free char *text = wire_text(message);
	int rc = text ? 0 : -ENOMEM;

	if (text && strlen(text) > WIRE_MAX)
		rc = -EMSGSIZE;
	while (!rc && send(sock, text, strlen(text), MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			rc = -errno;
	json_decref(message);
	return rc;
}

int wire_receive(int sock, json_t **message)
{
	auto_json json_t *m = NULL;
	char buf[WIRE_MAX];
	ssize_t n;

	do
		n = recv(sock, buf, sizeof(buf), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == ENOMEM))
		return 0;
	if (n <= 0)
		return -EPIPE;
	m = wire_parse(buf, (size_t)n);
	if (!json_is_string(json_object_get(m, "what")))
		return -EPROTO;
	*message = AUTO_TAKE(m);
	return 1;
}
