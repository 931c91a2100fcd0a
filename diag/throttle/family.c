/* Names an application's threads so that runs can be compared. */
#include "diag/throttle/family.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/alloc.h"
#include "harness/base/auto.h"

/* Grows an array by one element; its capacity is a power of two. */
#define GROW(array, n)                                                                             \
	do {                                                                                       \
		if (!((n) & ((n)-1)))                                                              \
			(array) = alloc_resize(                                                    \
				(array), (n) ? 2 * (size_t)(n) : 1, sizeof(*(array)));             \
	} while (0)

static struct family_process *process_of(const struct family *f, pid_t pid)
{
	for (uint32_t i = f->n_processes; i-- > 0;)
		if (f->processes[i].pid == pid && !f->processes[i].gone)
			return &f->processes[i];
	return NULL;
}

static struct family_member *family_known(const struct family *f, pid_t tid)
{
	for (uint32_t i = f->n_members; i-- > 0;)
		if (f->members[i].tid == tid && !f->members[i].gone)
			return &f->members[i];
	return NULL;
}

/* Adds a thread and takes ownership of 'name'. */
static void family_add(struct family *f, pid_t pid, pid_t tid, char *name)
{
	GROW(f->members, f->n_members);
	f->members[f->n_members++] = (struct family_member){
		.pid = pid, .tid = tid, .name = name, .verdict = WATCH_BUSY, .why = "begins"};
	if (pid != tid)
		return;
	GROW(f->processes, f->n_processes);
	f->processes[f->n_processes++] = (struct family_process){
		.pid = pid, .member = f->n_members - 1};
}

/* The number of the n-th of 'count' children found, in the order in which they were made. They are
 * the newest ones that the process has begun; older ones ended before they were seen. */
static uint32_t family_number_of(uint32_t begun, uint32_t count, uint32_t n)
{
	return begun + 1 + n > count ? begun + 1 + n - count : 1;
}

static void look_for_threads(struct family *f, struct family_process *p)
{
	pid_t found[256], tid;
	uint32_t n = 0, at = (uint32_t)(p - f->processes);
	char path[64];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	auto_dir DIR *dir = opendir(path);

	while (dir && n < 256 && (entry = readdir(dir)))
		if ((tid = atoi(entry->d_name)) > 0 && !family_known(f, tid))
			found[n++] = tid;
	for (uint32_t i = 0; i < n; i++) {
		p = &f->processes[at];
		family_add(f, p->pid, found[i],
			alloc_format("%s/%u", f->members[p->member].name,
				family_number_of(p->clones, n, i)));
	}
	p = &f->processes[at];
	p->new_clones -= n < p->new_clones ? n : p->new_clones;
}

/* Lists the children of all threads of the process, up to 'room'. */
static uint32_t read_children(const struct family *f, pid_t pid, pid_t *found, uint32_t room)
{
	uint32_t n = 0;
	char path[64], text[8192], *at, *end;

	for (uint32_t i = 0; i < f->n_members; i++) {
		if (f->members[i].pid != pid || f->members[i].gone)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, f->members[i].tid);
		auto_file FILE *file = fopen(path, "re");

		if (!file || !fgets(text, sizeof(text), file))
			continue;
		for (at = text; n < room; at = end) {
			pid_t child = (pid_t)strtol(at, &end, 10);

			if (end == at)
				break;
			if (!family_known(f, child))
				found[n++] = child;
		}
	}
	return n;
}

static void look_for_children(struct family *f, struct family_process *p)
{
	pid_t found[256];
	uint32_t at = (uint32_t)(p - f->processes), n = read_children(f, p->pid, found, 256);

	/* More children than the process has begun: it inherited the first ones from processes that
	 * ended. */
	for (uint32_t i = 0; i < n; i++) {
		p = &f->processes[at];
		family_add(f, found[i], found[i],
			i + p->new_forks < n ? alloc_format("?%u", ++f->n_odd)
					     : alloc_format("%s.%u", f->members[p->member].name,
						       family_number_of(p->forks, n, i)));
	}
	p = &f->processes[at];
	p->new_forks -= n < p->new_forks ? n : p->new_forks;
}

void family_look(struct family *f)
{
	for (uint32_t i = 0; i < f->n_processes; i++) {
		if (f->processes[i].gone)
			continue;
		if (f->processes[i].new_clones)
			look_for_threads(f, &f->processes[i]);
		if (f->processes[i].new_forks)
			look_for_children(f, &f->processes[i]);
	}
}

static bool read_ids(pid_t tid, pid_t *pid, pid_t *parent)
{
	char path[64], line[256];
	bool has_pid = false, has_parent = false;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	auto_file FILE *file = fopen(path, "re");

	while (file && !(has_pid && has_parent) && fgets(line, sizeof(line), file)) {
		has_pid |= sscanf(line, "Tgid:\t%d", pid) == 1;
		has_parent |= sscanf(line, "PPid:\t%d", parent) == 1;
	}
	return has_pid && has_parent;
}

struct family_member *family_find(struct family *f, pid_t tid)
{
	struct family_member *m = family_known(f, tid);
	pid_t pid = 0, parent = 0;
	struct family_process *p;

	if (m)
		return m;
	if (!read_ids(tid, &pid, &parent))
		return NULL;
	if (!f->n_members) {
		family_add(f, pid, pid, alloc_copy("0"));
	} else if ((p = process_of(f, pid))) {
		look_for_threads(f, p);
	} else if ((p = process_of(f, parent))) {
		look_for_children(f, p);
	}
	m = family_known(f, tid);
	if (m)
		return m;
	if (!process_of(f, pid))
		family_add(f, pid, pid, alloc_format("?%u", ++f->n_odd));
	if (!family_known(f, tid))
		family_add(f, pid, tid, alloc_format("?%u", ++f->n_odd));
	return family_known(f, tid);
}

void family_forks(struct family *f, const struct family_member *m, bool thread)
{
	struct family_process *p = process_of(f, m->pid);
	uint32_t at;

	if (!p)
		return;
	at = (uint32_t)(p - f->processes);
	if (thread && p->new_clones)
		look_for_threads(f, p);
	if (!thread && p->new_forks)
		look_for_children(f, p);
	p = &f->processes[at]; /* the array may have moved */
	p->clones += thread;
	p->new_clones += thread;
	p->forks += !thread;
	p->new_forks += !thread;
}

void family_ends(struct family *f, const struct family_member *m)
{
	struct family_process *p = process_of(f, m->pid);

	if (p && p->new_forks)
		look_for_children(f, p);
}

void family_clear(struct family *f)
{
	for (uint32_t i = 0; i < f->n_members; i++)
		free(f->members[i].name);
	free(f->members);
	free(f->processes);
	*f = (struct family){0};
}
