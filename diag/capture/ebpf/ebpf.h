/* Internals of the in-kernel tracer. */
#ifndef CULPRIT_DIAG_CAPTURE_EBPF_EBPF_H
#define CULPRIT_DIAG_CAPTURE_EBPF_EBPF_H

#include "diag/capture/ebpf/shared.h"
#include "diag/record/record.h"
#include "diag/capture/capture.h"

extern const char ebpf_arch[];

/* 'may_miss': a missing path matches only calls that name it; else it is -ENOENT. '*out' is
 * undefined after errors. */
int filter_fill(const struct choice *c, bool may_miss, struct filter *out, struct err *e);

/* Why the programs were not loaded. All zero at first. */
struct refusal {
	char first[256]; /* libbpf's first warning: others follow from it */
	char program[64];
	char verifier[512]; /* the verifier's last lines */
};

/* Adds a warning that libbpf prints while loading. */
void refusal_add(struct refusal *r, const char *warning);

/* Explains the refusal: -ENOMEM or -EOPNOTSUPP. 'rc' is the result of loading. */
int refusal_say(const struct refusal *r, int rc, struct err *e);

void rules_fill(const struct trace_request *r, struct call_rule rules[RULES]);
void rules_async(uint16_t calls[ASYNC_CALLS]);

/*
 * Events to records. Events may be truncated or invalid: inconsistent ones are dropped.
 */
struct ebpf_events;

/* Receives a record, which is valid until the function returns. */
typedef void (*record_fn)(void *ctx, struct record *rec);

/* 'rules' must outlive it. NULL: out of memory. */
struct ebpf_events *ebpf_events_new(const struct call_rule *rules, record_fn fn, void *ctx);
void ebpf_events_free(struct ebpf_events *x);

/* Descriptors so far that were another file than earlier events said. */
uint64_t events_corrected(const struct ebpf_events *x);

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, from now on. */
void events_clock(struct ebpf_events *x, int64_t offset_ns);

/* 0, or -ENOMEM. */
int events_feed(struct ebpf_events *x, const struct ev *ev, uint32_t size);

/* Emits a RECORD_LOST of 'count'. */
void events_lost(struct ebpf_events *x, uint32_t cpu, uint64_t count, uint64_t at_ns);

/* Emits records that were held back. */
void events_end(struct ebpf_events *x);

/* Emits an asynchronous operation without a result: its process ended, or the tracer detaches. */
void events_async(struct ebpf_events *x, const struct async_op *op, int64_t end_ns);

/* Describes a descriptor from its event: kind, path (into 'path'), addresses; not the tag. False:
 * invalid. */
bool describe_fd(const struct ev_fd *ev, uint32_t size, struct record_fd *f, char path[4096 + 256]);

/* When this log first saw the file: 'now_ns' if it is the first time. */
struct first_seen;
struct first_seen *first_seen_new(void); /* NULL: out of memory */
void first_seen_free(struct first_seen *s);
int64_t first_seen_ns(
	struct first_seen *s, uint32_t dev, uint64_t ino, uint32_t generation, int64_t now_ns);

/*
 * Sums to records.
 */
struct sums;

struct sums_spec {
	int sums_fd, messages_fd, pollers_fd; /* of the maps; the caller keeps owning them */
	int cpus;
	uint64_t bulk_above; /* as in trace_request */
	uint32_t bulk_header;
	record_fn fn;
	void *ctx;
};

/* Copies '*spec'. NULL: out of memory. */
struct sums *sums_new(const struct sums_spec *spec);
void sums_free(struct sums *s);

/* Emits and deletes the sums of seconds that have ended at 'now_ns' (CLOCK_REALTIME; INT64_MAX:
 * all). 0, or -ENOMEM. */
int sums_read(struct sums *s, int64_t now_ns);

/* Ends the messages of a process that has ended (0: of all): counts whole ones. */
void sums_end_messages(struct sums *s, uint32_t pid, int64_t clock_ns);

#endif
