/* Keeps the tables of processes, threads, files and handles of a log. */
#include <fcntl.h>
#include <string.h>

#include "diag/causal/decode.h"
#include "diag/record/describe.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"

struct decode_process *decode_process_of(struct decode *d, uint32_t pid)
{
	uint64_t i = map_get(&d->pids, decode_key(d, pid));

	return i ? d->processes[i - 1] : NULL;
}

uint32_t decode_process_index(const struct decode *d, uint32_t pid)
{
	return (uint32_t)map_get(&d->pids, decode_key(d, pid)) - 1;
}

bool decode_dropped(const struct decode *d, uint32_t pid)
{
	uint64_t i = d->in->dropped ? map_get(&d->pids, decode_key(d, pid)) : 0;

	return i && i <= d->in->n_dropped && d->in->dropped[i - 1];
}

static uint32_t process_new(struct decode *d, const struct record_process *r)
{
	struct decode_process *p = alloc_zero(1, sizeof(*p));
	struct decode_process *parent = r->parent ? decode_process_of(d, r->parent) : NULL;

	p->pid = r->pid;
	p->parent = d->n_processes;
	p->log = (uint32_t)(d->log - d->logs);
	p->launcher = !parent && d->log->of->launcher;
	if (parent) {
		p->parent = decode_process_index(d, r->parent);
		p->session = parent->launcher ? d->n_processes + 1 : parent->session;
		p->child = ++parent->children;
		p->depth = parent->depth + 1;
		p->memory = parent->memory;
		/* The child inherits the parent's descriptors; decode_descriptor moves them from
		 * 'former'. */
		p->n_former = parent->n_handles;
		p->former = alloc_resize(NULL, p->n_former + 1, sizeof(*p->former));
		if (p->n_former)
			memcpy(p->former, parent->handles, p->n_former * sizeof(*p->former));
	}
	p->cwd = alloc_copy(parent ? parent->cwd : d->log->of->cwd);
	snprintf(p->name, sizeof(p->name), "%s", r->name);
	d->processes = alloc_room(d->processes, d->n_processes, sizeof(*d->processes));
	d->processes[d->n_processes++] = p;
	map_put(&d->pids, decode_key(d, r->pid), d->n_processes);
	return d->n_processes - 1;
}

static uint32_t thread_new(struct decode *d, uint32_t process, uint32_t tid)
{
	d->threads = alloc_room(d->threads, d->n_threads, sizeof(*d->threads));
	d->threads[d->n_threads++] = (struct decode_thread){.process = process, .tid = tid};
	map_put(&d->tids, decode_key(d, tid), d->n_threads);
	return d->n_threads - 1;
}

uint32_t decode_thread_of(struct decode *d, uint32_t pid, uint32_t tid)
{
	uint64_t i = map_get(&d->tids, decode_key(d, tid));
	uint64_t process = map_get(&d->pids, decode_key(d, pid));
	struct record_process r = {.pid = pid, .tid = tid, .name = ""};

	if (!process)
		process = process_new(d, &r) + 1;
	if (i && d->threads[i - 1].process == process - 1)
		return (uint32_t)i - 1;
	return thread_new(d, (uint32_t)process - 1, tid);
}

static void drop_handles(struct decode_process *p)
{
	free(p->former);
	p->former = p->handles;
	p->n_former = p->n_handles;
	p->handles = NULL;
	p->n_handles = 0;
}

int decode_life(struct decode *d, const struct record_process *r, struct err *e)
{
	struct decode_process *p;

	if (r->what == PROCESS_START) {
		if (r->pid == r->tid)
			process_new(d, r);
		else if (!decode_process_of(d, r->pid))
			return 0;
		return decode_born(d, thread_new(d, decode_process_index(d, r->pid), r->tid), e);
	}
	p = decode_process_of(d, r->pid);
	if (!p)
		return 0;
	p->ended |= r->what == PROCESS_EXIT && r->pid == r->tid;
	if (r->what == PROCESS_EXIT)
		return decode_gone(d, decode_thread_of(d, r->pid, r->tid), e);
	if (r->pid == r->tid && *r->name)
		snprintf(p->name, sizeof(p->name), "%s", r->name);
	if (r->what == PROCESS_EXEC)
		drop_handles(p);
	return 0;
}

uint32_t decode_file(struct decode *d, const char *path)
{
	const char *root = d->log->of->root;
	size_t n = strlen(root);
	uint64_t key, i;

	if (n == 1)
		n = 0;
	if (strncmp(path, root, n) || (path[n] && path[n] != '/'))
		return APP_NO_FILE;
	path += n + (path[n] == '/');
	if (!app_path_ok(path))
		return APP_NO_FILE;
	for (key = hash_seeded(path, strlen(path), 1); (i = map_get(&d->names, key)); key++)
		if (!strcmp(d->files[i - 1], path))
			return (uint32_t)i - 1;
	d->files = alloc_room(d->files, d->n_files, sizeof(*d->files));
	d->directories = alloc_room(d->directories, d->n_files, sizeof(*d->directories));
	d->directories[d->n_files] = false;
	d->files[d->n_files++] = alloc_copy(path);
	map_put(&d->names, key, d->n_files);
	return d->n_files - 1;
}

/* Puts the call's absolute path into d->path. False: the call has no path. */
static bool call_path(struct decode *d, struct stream_item *item, bool second)
{
	const struct record_call *c = &item->record->call;
	struct decode_process *p = decode_process_of(d, c->pid);
	char text[APP_PATH];
	const char *path = call_file(item, second, text, sizeof(text));

	if (!path || !*path)
		return false;
	if (*path == '/')
		snprintf(d->path, sizeof(d->path), "%s", path);
	else if (p)
		snprintf(d->path, sizeof(d->path), "%s/%s", p->cwd, path);
	else
		return false;
	text_tidy_path(d->path);
	return true;
}

uint32_t decode_call_file(struct decode *d, struct stream_item *item, bool second)
{
	return call_path(d, item, second) ? decode_file(d, d->path) : APP_NO_FILE;
}

void decode_chdir(struct decode *d, struct stream_item *item)
{
	struct decode_process *p = decode_process_of(d, item->record->call.pid);

	if (!p || !call_path(d, item, false))
		return;
	free(p->cwd);
	p->cwd = alloc_copy(*d->path ? d->path : "/");
}

uint32_t decode_handle(struct decode_process *p, int32_t fd)
{
	return p && fd >= 0 && (uint32_t)fd < p->n_handles ? p->handles[fd] : 0;
}

bool decode_last(const struct decode_process *p, int32_t fd)
{
	for (uint32_t i = 0; i < p->n_handles; i++)
		if ((int32_t)i != fd && p->handles[i] == p->handles[fd])
			return false;
	return true;
}

void decode_set_handle(struct decode_process *p, int32_t fd, uint32_t handle)
{
	uint32_t room;

	if (fd < 0 || fd >= 1 << 20)
		return;
	if ((uint32_t)fd >= p->n_handles) {
		if (!handle)
			return;
		room = (uint32_t)fd * 2 + 16;
		p->handles = alloc_resize(p->handles, room, sizeof(*p->handles));
		memset(p->handles + p->n_handles, 0, (room - p->n_handles) * sizeof(*p->handles));
		p->n_handles = room;
	}
	p->handles[fd] = handle;
}

uint32_t decode_new_handle(
	struct decode *d, uint32_t file, uint32_t flags, uint32_t process, bool before)
{
	d->handles = alloc_room(d->handles, d->n_handles, sizeof(*d->handles));
	d->handles[d->n_handles++] = (struct app_handle){file, flags, process, before};
	return d->n_handles;
}

/* Is this the descriptor of a pending open? Then it gets the open's file. */
static int opened(
	struct decode *d, const struct record_fd *f, uint32_t file, bool *found, struct err *e)
{
	uint32_t process = decode_process_index(d, f->pid);
	struct causal_event ev = {.kind = EVENT_OP};
	struct decode_thread *t;
	uint32_t i;

	for (i = 0; i < d->n_opening; i++)
		if (d->opening[i].fd == f->fd &&
			d->threads[d->opening[i].thread].process == process)
			break;
	*found = i < d->n_opening;
	if (!*found)
		return 0;
	ev.op = d->opening[i].op;
	ev.thread = d->opening[i].thread;
	d->opening[i] = d->opening[--d->n_opening];
	t = &d->threads[ev.thread];
	if (file == APP_NO_FILE) {
		t->compute_ns += ev.op.compute_ns;
		t->away_ns += ev.op.away_ns;
		decode_set_handle(d->processes[process], f->fd, 0);
		return 0;
	}
	ev.op.file = file;
	ev.op.result = 0;
	ev.op.handle = decode_new_handle(d, file, ev.op.flags, process, false);
	decode_set_handle(d->processes[process], f->fd, ev.op.handle);
	return decode_emit(d, &ev, e);
}

int decode_descriptor(struct decode *d, const struct record_fd *f, struct err *e)
{
	struct decode_process *p = decode_process_of(d, f->pid);
	uint32_t file = APP_NO_FILE, process, known;
	bool found;
	int rc;

	if (!p)
		return 0;
	known = decode_handle(p, f->fd); /* set by an earlier dup */
	if (f->fd >= 0 && (uint32_t)f->fd < p->n_former) {
		known = known ? known : p->former[f->fd];
		p->former[f->fd] = 0;
	}
	if (!f->open) {
		decode_set_handle(p, f->fd, 0);
		return 0;
	}
	if (f->kind == FD_SOCKET)
		decode_note_peer(d, f);
	if (f->kind == FD_FILE || f->kind == FD_DIR) {
		snprintf(d->path, sizeof(d->path), "%s", f->path);
		file = decode_file(d, d->path);
		if (file != APP_NO_FILE)
			d->directories[file] |= f->kind == FD_DIR;
	}
	rc = opened(d, f, file, &found, e);
	if (rc || found)
		return rc;
	process = decode_process_index(d, f->pid);
	if (!known && file != APP_NO_FILE)
		known = decode_new_handle(d, file, O_RDWR, process, true);
	decode_set_handle(p, f->fd, known);
	return 0;
}

void decode_clear(struct decode *d)
{
	for (uint32_t i = 0; i < d->n_processes; i++) {
		free(d->processes[i]->handles);
		free(d->processes[i]->former);
		free(d->processes[i]->cwd);
		free(d->processes[i]);
	}
	for (uint32_t i = 0; i < d->n_files; i++)
		free(d->files[i]);
	for (uint32_t i = 0; i < d->n_mappings; i++)
		free(d->mappings[i].path);
	free(d->logs);
	free(d->processes);
	free(d->threads);
	free(d->files);
	free(d->directories);
	free(d->handles);
	free(d->channels);
	free(d->opening);
	free(d->mappings);
	map_clear(&d->pids);
	map_clear(&d->tids);
	map_clear(&d->names);
	map_clear(&d->keys);
	map_clear(&d->peers);
	*d = (struct decode){0};
}
