#include "harness/agent/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "harness/base/auto.h"

int wire_send(int sock, json_t *message)
{
	auto_free char *text = json_dumps(message, JSON_COMPACT);
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
	m = json_loadb(buf, (size_t)n, 0, NULL);
	/* Both ends are ours: anything else is a broken peer, as good as dead. */
	if (!json_is_string(json_object_get(m, "what")))
		return -EPIPE;
	*message = AUTO_TAKE(m);
	return 1;
}
