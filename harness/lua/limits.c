/* Limits the memory and processor time of Lua. */
#include "harness/lua/limits.h"

#include <errno.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/alloc.h"
#include "harness/lua/luax.h"

enum { TIME_S = 10, GRACE_S = 1, STOPPED = 2 };

/* A state's limits and usage: the allocator's argument. */
struct account {
	lua_Alloc alloc;
	void *alloc_ud;
	lua_State *L;
	size_t bytes;
	double time_s;
	bool limited;               /* a call is running */
	bool timed_out, memory_out; /* in the last call */
	bool located;               /* 'where' is the line at which the time limit was reached */
	char where[512];            /* "FILE:LINE: " where the limit was reached */
};

/* The call that this thread's timer limits. */
static _Thread_local struct account *volatile watched;
static luax_stop_fn *stop_fn;
static const char *stop_advice = "";

static struct account *account_of(lua_State *L)
{
	void *ud;

	lua_getallocf(L, &ud);
	return ud;
}

/* Finds the innermost Lua line and the C function that it called, if any. Allocates nothing: it
 * runs in the allocator and in a signal handler. */
static void locate(struct account *a, const char **function)
{
	lua_Debug ar;

	a->where[0] = '\0';
	for (int level = 0; lua_getstack(a->L, level, &ar); level++) {
		if (!lua_getinfo(a->L, "Sln", &ar))
			continue;
		if (ar.currentline > 0) {
			snprintf(a->where, sizeof(a->where),
				"%s:%d: ", ar.source + (*ar.source == '@'), ar.currentline);
			return;
		}
		if (function && ar.name)
			*function = ar.name;
	}
}

static void *counted_alloc(void *ud, void *p, size_t old, size_t new)
{
	struct account *a = ud;
	size_t had = p ? old : 0;
	void *got;

	if (a->limited && new > had && a->bytes + (new - had) > (size_t)LUAX_MEMORY_MIB << 20) {
		a->memory_out = true;
		locate(a, NULL);
		return NULL;
	}
	got = a->alloc(a->alloc_ud, p, old, new);
	if (got || !new)
		a->bytes += new - had;
	/* lua_close has already freed the state. */
	if (!a->bytes)
		free(a);
	return got;
}

double luax_seconds(void)
{
	const char *text = getenv("CULPRIT_LUA_SECONDS");
	double given = text ? strtod(text, NULL) : 0;

	return given > 0 && given <= 86400 ? given : TIME_S;
}

lua_State *limits_new_state(void)
{
	struct account *a = alloc_zero(1, sizeof(*a));
	lua_State *L = luaL_newstate();

	if (!L)
		alloc_end();
	*a = (struct account){.L = L, .time_s = luax_seconds()};
	a->alloc = lua_getallocf(L, &a->alloc_ud);
	a->bytes = (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
	lua_setallocf(L, counted_alloc, a);
	return L;
}

void luax_allow(lua_State *L, double seconds)
{
	account_of(L)->time_s += seconds;
}

void luax_on_stop(luax_stop_fn *fn)
{
	stop_fn = fn;
}

void luax_advise(const char *advice)
{
	stop_advice = advice;
}

static void raise_timeout(lua_State *L, lua_Debug *ar)
{
	struct account *a = account_of(L);

	(void)ar;
	/* The current line is exact only here. */
	if (!a->located)
		locate(a, NULL);
	a->located = true;
	luaL_error(L, "the time limit is reached");
}

/* Ends the process from a signal handler: the interrupted C function cannot be unwound. */
static void limits_stop(struct account *a)
{
	const char *function = NULL;
	char text[800];

	locate(a, &function);
	snprintf(text, sizeof(text),
		"%s%s%s%s does not return: stopped after %.1f s of processor time", a->where,
		function ? "'" : "", function ? function : "a C function", function ? "'" : "",
		a->time_s + GRACE_S);
	if (stop_fn) {
		stop_fn(text);
	} else {
		dprintf(STDERR_FILENO, "culprit: %s%s\n", text, stop_advice);
	}
	_exit(STOPPED);
}

static void on_timer(int signo)
{
	struct account *a = watched;
	int saved = errno;

	(void)signo;
	if (a && a->timed_out) {
		limits_stop(a);
	} else if (a) {
		a->timed_out = true;
		locate(a, NULL);
		lua_sethook(a->L, raise_timeout, LUA_MASKCOUNT, 1);
	}
	errno = saved;
}

static int arm(struct account *a, timer_t *timer)
{
	static const struct sigaction act = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM};
	time_t whole = (time_t)a->time_s;
	struct itimerspec when = {.it_interval = {.tv_sec = GRACE_S},
		.it_value = {whole, (long)((a->time_s - (double)whole) * 1e9) + 1}};
	sigset_t set;

	event._sigev_un._tid = gettid();
	sigaction(SIGVTALRM, &act, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGVTALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, timer))
		return -errno;
	watched = a;
	return timer_settime(*timer, 0, &when, NULL) ? -errno : 0;
}

static void disarm(struct account *a, timer_t timer)
{
	watched = NULL;
	timer_delete(timer);
	if (a->timed_out)
		lua_sethook(a->L, NULL, 0, 0);
}

/* A value that is not text would be a useless message: replace it while the line is known. */
static int explain_value(lua_State *L)
{
	if (!lua_isstring(L, 1)) {
		const char *type = luaL_typename(L, 1);

		luaL_where(L, 1);
		/* A call of error() has no line; use its caller's. */
		for (int level = 2; level < 10 && !*lua_tostring(L, -1); level++) {
			lua_pop(L, 1);
			luaL_where(L, level);
		}
		lua_pushfstring(L, "error() was called with a %s: call it with a text", type);
		lua_concat(L, 2);
	}
	return 1;
}

int limits_pcall(lua_State *L, int nargs, int nresults)
{
	struct account *a = account_of(L);
	int base = lua_gettop(L) - nargs - 1, status;
	bool mine = !watched, was = a->limited;
	timer_t timer;

	if (!was)
		a->timed_out = a->memory_out = a->located = false;
	if (mine && arm(a, &timer)) {
		watched = NULL;
		lua_settop(L, base);
		lua_pushliteral(L, "cannot set the timer of a Lua call");
		return LUA_ERRRUN;
	}
	a->limited = true;
	lua_pushcfunction(L, explain_value);
	lua_insert(L, base + 1);
	status = lua_pcall(L, nargs, nresults, base + 1);
	lua_remove(L, base + 1);
	a->limited = was;
	if (mine)
		disarm(a, timer);
	/* A pcall may have caught the error and then returned. */
	if (a->timed_out && status == LUA_OK) {
		lua_settop(L, base);
		lua_pushliteral(L, "the time limit is reached");
		status = LUA_ERRRUN;
	}
	return status;
}

int limits_load(lua_State *L, const char *text, size_t size, const char *chunk)
{
	struct account *a = account_of(L);
	bool was = a->limited;
	int status;

	a->timed_out = a->memory_out = a->located = false;
	if (size && *text == *LUA_SIGNATURE) {
		lua_pushfstring(L, "%s: this is compiled Lua; use the source text",
			chunk + (*chunk == '@'));
		return LUA_ERRSYNTAX;
	}
	a->limited = true;
	status = luaL_loadbufferx(L, text, size, chunk, "t");
	a->limited = was;
	if (a->memory_out && !a->where[0])
		snprintf(a->where, sizeof(a->where), "%s: ", chunk + (*chunk == '@'));
	return status;
}

int limits_explain(lua_State *L, struct err *e)
{
	const struct account *a = account_of(L);

	if (a->timed_out)
		return err_set(e, -ETIMEDOUT, "%sthe call used up its %.1f s of processor time",
			a->where, a->time_s);
	/* An allocation was refused without a failure: Lua collected garbage, or the script
	 * caught the error. */
	if (!a->memory_out ||
		strcmp(lua_tostring(L, -1) ? lua_tostring(L, -1) : "", "not enough memory"))
		return 0;
	return err_set(
		e, -E2BIG, "%sthe call used up its %d MiB of memory", a->where, LUAX_MEMORY_MIB);
}
