/* Tests vec, the type that detectors compute with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those four first */
#include <cmocka.h>
#include <lauxlib.h>

#include "diag/judge/vec.h"
#include "harness/lua/luax.h"

static void run_chunk(const char *chunk)
{
	lua_State *L = luax_new();

	vec_open(L);
	if (luaL_dostring(L, chunk))
		fail_msg("%s", lua_tostring(L, -1));
	lua_close(L);
}

static void vec_functions_give_known_values(void **state)
{
	(void)state;
	run_chunk(
		"local nan = 0/0\n"
		"local v = vec.of { 3, nan, 1, 2 }\n"
		"assert(#v == 4 and v[1] == 3 and v[2] ~= v[2])\n"
		"assert(v:count() == 3 and v:sum() == 6 and v:mean() == 2 and v:median() == 2)\n"
		"local m, i = v:max() assert(m == 3 and i == 1)\n"
		"m, i = v:min() assert(m == 1 and i == 3)\n"
		"m, i = vec.new(3):max() assert(m ~= m and i == nil)\n"
		"assert(v:quantile(0) == 1 and v:quantile(1) == 3 and v:quantile(0.25) == 1.5)\n"
		"assert(v:above(1) == 2 and (-v):abs()[3] == 1 and (2 * v - 1)[4] == 3 and (v / "
		"v)[1] == 1)\n"
		"assert((v + v)[1] == 6 and (1 / v)[4] == 0.5 and (v + v)[2] ~= (v + v)[2])\n"
		"assert(math.abs(vec.of { math.exp(2) }:log()[1] - 2) < 1e-12 and vec.of { 0 "
		"}:log():count() == 0)\n"
		"local s = v:slice(3) assert(#s == 2 and s[1] == 1 and #v:slice(1, 0) == 0)\n"
		"local r = vec.of { 1, 9, 2, nan, 4 }:rolling_median(3, 2)\n"
		"assert(r[1] ~= r[1] and r[2] == 5 and r[3] == 2 and r[4] == 5.5 and r[5] == 3)\n"
		"r = vec.of { 1, 2, 6 }:rolling_mean(2) assert(r:count() == 2 and r[2] == 1.5 and "
		"r[3] == 4)\n"
		"local w = vec.median({ v, vec.of { 5, nan, 1, nan }, vec.new(4, 7) }, 2)\n"
		"assert(w[1] == 5 and w[2] ~= w[2] and w[3] == 1 and w[4] == 4.5)\n"
		"assert(vec.present { v, vec.new(4) }[1] == 1)\n"
		"assert(v:fill(7)[2] == 7 and v:fill(7)[3] == 1 and v:clamp(2)[3] == 2 and "
		"v:clamp(0, 2)[1] == 2)\n"
		"assert(v:clamp(2)[2] ~= v:clamp(2)[2])\n"
		"r = vec.of { 1, nan, 3, 4 }:rolling_sum(2, 1) assert(r[1] == 1 and r[2] == 1 and "
		"r[3] == 3 and r[4] == 7)\n"
		"r = vec.of { 1, nan, 3, 4 }:rolling_sum(2) assert(r:count() == 1 and r[4] == 7)\n"
		"w = v:lag(1) assert(w[1] ~= w[1] and w[2] == v[1] and w[4] == 1 and v:lag(2, "
		"9)[2] == 9 and v:lag(7, 0):sum() == 0)\n"
		"assert(v:lag(0)[4] == 2 and not pcall(v.lag, v, -1))\n"
		"w = vec.least { v, vec.of { 5, 4, 0, nan } } assert(w[1] == 3 and w[2] == 4 and "
		"w[3] == 0 and w[4] == 2)\n"
		"w = vec.likelihood(vec.of { 0, 1, 2, nan, 1 }, 2, vec.of { 0, 0.5, 1, 0.5, 0 })\n"
		"assert(w[1] == 0 and math.abs(w[2] - math.log(0.25)) < 1e-12 and w[3] == 0 and "
		"w:count() == 3)\n"
		"assert(not pcall(vec.likelihood, 1, 2, 0.5) and not pcall(vec.likelihood, v, "
		"vec.new(2), 0.5))\n"
		"assert(vec.least { vec.new(2), vec.new(2) }:count() == 0)\n"
		"v[2] = 8 assert(v:max() == 8)\n"
		"assert(not pcall(function() return v[5] end) and not pcall(function() return "
		"v[0] end))\n"
		"assert(not pcall(function() v[5] = 1 end) and not pcall(function() return "
		"v:nothing() end))\n"
		"assert(not pcall(vec.new, -1) and not pcall(vec.new, 1 << 40) and not "
		"pcall(vec.median, {}))\n"
		"assert(not pcall(v.rolling_mean, v, 0) and not pcall(v.slice, v, 0) and not "
		"pcall(v.quantile, v, 2))\n"
		"assert(not pcall(v.mean, {}) and not pcall(vec.median, { v, 3 }))\n");
}

/* As if each were left out by hand, for many lists: odd and even, with gaps and equal values. */
static void vec_others_leaves_one_out(void **state)
{
	(void)state;
	run_chunk(
		"local nan, state = 0/0, 1\n"
		"local function draw(n) state = state * 6364136223846793005 + 1442695040888963407 "
		"return (state >> 33) % n end\n"
		"for round = 1, 300 do\n"
		"  local n, least, list = 1 + draw(9), 1 + draw(4), {}\n"
		"  for i = 1, n do\n"
		"    list[i] = vec.new(11)\n"
		"    for t = 1, 11 do list[i][t] = draw(4) == 0 and nan or draw(6) end\n"
		"  end\n"
		"  local got = vec.others(list, least)\n"
		"  assert(#got == n)\n"
		"  for i = 1, n do for t = 1, 11 do\n"
		"    local rest = {}\n"
		"    for k = 1, n do local x = list[k][t] if k ~= i and x == x then rest[#rest + "
		"1] = x end end\n"
		"    local want = #rest >= least and vec.of(rest):median() or nan\n"
		"    local x = got[i][t]\n"
		"    assert(x == want or (x ~= x and want ~= want), ('%g, not %g'):format(x, "
		"want))\n"
		"  end end\n"
		"end\n"
		"assert(not pcall(vec.others, { vec.new(2) }, 0) and not pcall(vec.others, {}))\n");
}

/* Compared with sorting. */
static void rolling_medians_and_quantiles_are_exact(void **state)
{
	(void)state;
	run_chunk(
		"local nan, state = 0/0, 7\n"
		"local function draw(n) state = state * 6364136223846793005 + 1442695040888963407 "
		"return (state >> 33) % n end\n"
		"for round = 1, 200 do\n"
		"  local n, width = 1 + draw(30), 1 + draw(9)\n"
		"  local least, v = 1 + draw(width), vec.new(n)\n"
		"  for t = 1, n do v[t] = draw(5) == 0 and nan or draw(8) end\n"
		"  local r = v:rolling_median(width, least)\n"
		"  for t = 1, n do\n"
		"    local s = {}\n"
		"    for k = math.max(1, t - width + 1), t do if v[k] == v[k] then s[#s + 1] = "
		"v[k] end end\n"
		"    table.sort(s)\n"
		"    local h = #s // 2\n"
		"    local want = #s < least and nan or #s % 2 == 1 and s[h + 1] or (s[h] + s[h + "
		"1]) / 2\n"
		"    assert(r[t] == want or (r[t] ~= r[t] and want ~= want))\n"
		"  end\n"
		"end\n"
		"assert(vec.of { 5, 1, 3, 2, 4 }:quantile(0.75) == 4 and vec.of { 1, 2 "
		"}:quantile(0.25) == 1.25)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vec_functions_give_known_values),
		cmocka_unit_test(vec_others_leaves_one_out),
		cmocka_unit_test(rolling_medians_and_quantiles_are_exact),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
