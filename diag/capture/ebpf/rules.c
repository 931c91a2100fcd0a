/* Makes the programs' rules for each call from the table in diag/record/calls.h. */
#include <linux/aio_abi.h>
#include <string.h>

#include "diag/capture/ebpf/ebpf.h"
#include "diag/record/calls.h"

#if defined(__x86_64__)
const char ebpf_arch[] = "x86_64";
#else
const char ebpf_arch[] = "aarch64";
#endif

static uint8_t action_of(const char *name, enum call_class class)
{
	static const struct {
		const char *name;
		enum fd_action action;
	} special[] = {
		{"pipe", ACT_PAIR},
		{"pipe2", ACT_PAIR},
		{"socketpair", ACT_SOCKETPAIR},
		{"close", ACT_CLOSE},
		{"close_range", ACT_CLOSE_RANGE},
		{"fcntl", ACT_FCNTL},
		{"bind", ACT_BIND},
		{"listen", ACT_BIND},
		{"connect", ACT_CONNECT},
		{"recvmsg", ACT_RECVMSG},
		{"recvmmsg", ACT_RECVMMSG},
		{"io_submit", ACT_SUBMIT},
		{"io_getevents", ACT_REAP},
		{"io_pgetevents", ACT_REAP},
		{"io_destroy", ACT_DESTROY},
		{"io_uring_enter", ACT_RING},
		{"mmap", ACT_MAP},
	};

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (!strcmp(name, special[i].name))
			return (uint8_t)special[i].action;
	return class == CALL_OPEN ? ACT_RESULT : ACT_NONE;
}

static uint8_t asked_of(const char *name)
{
	if (!strcmp(name, "read") || !strcmp(name, "recvfrom"))
		return ASKED_LENGTH;
	if (!strcmp(name, "readv"))
		return ASKED_VECTOR;
	if (!strcmp(name, "sendmmsg") || !strcmp(name, "recvmmsg"))
		return ASKED_MESSAGES;
	return !strcmp(name, "recvmsg") ? ASKED_HEADER : ASKED_NONE;
}

/* Where the bytes are that a call moves. Also for preadv2 and pwritev2, which work on sockets. */
static uint8_t buffer_of(const char *name)
{
	static const char *const lengths[] = {"read", "write", "recvfrom", "sendto", NULL};
	static const char *const vectors[] = {"readv", "writev", "preadv2", "pwritev2", NULL};
	static const char *const headers[] = {"recvmsg", "sendmsg", NULL};

	for (size_t i = 0; lengths[i]; i++)
		if (!strcmp(name, lengths[i]))
			return ASKED_LENGTH;
	for (size_t i = 0; vectors[i]; i++)
		if (!strcmp(name, vectors[i]))
			return ASKED_VECTOR;
	for (size_t i = 0; headers[i]; i++)
		if (!strcmp(name, headers[i]))
			return ASKED_HEADER;
	return ASKED_NONE;
}

/* The kind of a call that does not depend on its descriptor; 0: it does. */
static uint8_t rules_kind_of(const struct call_info *info)
{
	static const char *const sockets[] = {"socket", "socketpair", NULL};
	static const char *const disk[] = {"sync", "io_submit", "io_getevents", "io_pgetevents",
		"io_setup", "io_destroy", "io_uring_enter", NULL};

	for (size_t i = 0; sockets[i]; i++)
		if (!strcmp(info->name, sockets[i]))
			return KIND_NETWORK;
	for (size_t i = 0; disk[i]; i++)
		if (!strcmp(info->name, disk[i]))
			return KIND_DISK;
	if (info->path >= 0)
		return KIND_METADATA;
	return info->fd < 0 ? KIND_OTHER : 0;
}

/* Letters of the arguments: n is a path, F before it a folder, q an offset; p off... points to an
 * offset. */
static void read_args(const struct call_info *info, struct call_rule *rule)
{
	const char *at = info->args;

	for (int8_t i = 0; at && *at && i < 6; i++) {
		if (*at == 'n') {
			*(rule->path < 0 ? &rule->path : &rule->path2) = i;
		} else if (*at == 'F') {
			*(rule->dir < 0 ? &rule->dir : &rule->dir2) = i;
		} else if (*at == 'q') {
			rule->offset = OFFSET_ARGUMENT;
			rule->offset_arg = i;
		} else if (!strncmp(at, "p off", 5) && rule->offset == OFFSET_NONE) {
			rule->offset = OFFSET_POINTER;
			rule->offset_arg = i;
		}
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
}

void rules_async(uint16_t calls[ASYNC_CALLS])
{
	static const char *const names[ASYNC_CALLS] = {[IOCB_CMD_PREAD] = "pread64",
		[IOCB_CMD_PWRITE] = "pwrite64",
		[IOCB_CMD_FSYNC] = "fsync",
		[IOCB_CMD_FDSYNC] = "fdatasync",
		[IOCB_CMD_PREADV] = "preadv",
		[IOCB_CMD_PWRITEV] = "pwritev"};

	for (size_t i = 0; i < ASYNC_CALLS; i++)
		calls[i] = names[i] ? (uint16_t)call_number(ebpf_arch, names[i]) : RULES;
}

void rules_fill(const struct trace_request *r, struct call_rule rules[RULES])
{
	const struct call_arch *arch = call_arch(ebpf_arch);

	for (uint32_t nr = 0; nr < RULES; nr++) {
		const struct call_info *info = call_info(arch, nr);
		struct call_rule *rule = &rules[nr];
		bool moves;

		*rule = (struct call_rule){.selected = !r->filter.n_calls,
			.fd = -1,
			.fd2 = -1,
			.offset_arg = -1,
			.path = -1,
			.path2 = -1,
			.dir = -1,
			.dir2 = -1,
			.flags = -1};
		for (size_t i = 0; i < r->filter.n_calls; i++)
			rule->selected |= r->filter.calls[i] == nr;
		if (!info)
			continue;
		rule->class = (uint8_t)info->class;
		rule->fd = info->fd;
		rule->fd2 = info->fd2;
		rule->action = action_of(info->name, info->class);
		read_args(info, rule);
		moves = info->class == CALL_READ || info->class == CALL_WRITE ||
			info->class == CALL_COPY;
		if (!strcmp(info->name, "lseek"))
			rule->offset = OFFSET_SEEK;
		else if (!moves || info->fd < 0)
			rule->offset = OFFSET_NONE;
		else if (rule->offset == OFFSET_NONE)
			rule->offset = OFFSET_POSITION;
		rule->asked = asked_of(info->name);
		rule->buffer = buffer_of(info->name);
		rule->kind = rules_kind_of(info);
		rule->flags = info->flags;
	}
}
