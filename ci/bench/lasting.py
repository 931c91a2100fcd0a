#!/usr/bin/env python3
"""What lessons of diag/fleet would be worth in peer-robust: candidates, scored on recorded runs.

    ci/bench/lasting.py dev|held [CANDIDATE...]    default: all candidates; prints a table in Markdown
    ci/bench/lasting.py dev --stress unequal=0.1   and each server's disk slower by a lasting factor,
                                                   log-normal with this standard deviation
    ci/bench/lasting.py dev --stress plant=1.2     only controls, in each of which one server's disk is
                                                   made slower for 13 s (with every=4: in every fourth)

The split of runs into development and held-out ones is in results/peer-robust-history.md. A candidate is
today's peer-robust with the pieces of EDITS and parameters. An edit that no longer fits is an error."""
import argparse
import gzip
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Run, and which repeats of its cells: None all, else the remainder of the repeat divided by 2.
SETS = {
	"dev": [("corpora/matrix", None), ("runs/table1-20261121", 1)],
	"held": [("runs/table1-20261121", 0), ("runs/table1-again-20261122", None),
		("runs/table1-controls-20261122", None), ("runs/table1-controls2-20261122", None),
		("runs/dose-20261121", None), ("corpora/ci", None)],
}

# Inserted before look(). Scores of a long span are scaled so that both spans share one limit.
LUA = r"""
-- Student's t quantile for a normal quantile z (Wallace 1959).
local function t_quantile(z, df)
	local w = z * (8 * df + 3) / (8 * df + 1)
	return math.sqrt(df * (math.exp(w * w / df) - 1))
end

local function normal_quantile(log_m)
	return math.sqrt(2 * log_m - math.log(4 * math.pi * log_m))
end

-- Scores of all views over another span, least over the views.
local function scores_over(run, views, span, width)
	local by_view, scores = {}, {}
	for k, view in ipairs(views) do by_view[k] = log_ratios(run, view, span, width) end
	for i in ipairs(run.servers) do
		local all = {}
		for k in ipairs(views) do all[k] = by_view[k][i] end
		scores[i] = vec.least(all)
	end
	return scores
end

-- Scale of the servers' lasting offsets, about their median or 0, and how many servers have one.
local function scale_of(scores, about)
	local offsets, away = {}, {}
	for _, of in ipairs(scores) do
		local offset = of:median()
		if offset == offset then offsets[#offsets + 1] = offset end
	end
	local centre = about and #offsets > 0 and vec.of(offsets):median() or 0
	for k, offset in ipairs(offsets) do away[k] = math.abs(offset - centre) end
	return #away > 0 and 1.4826 * vec.of(away):median() or 0, #away
end

-- Candidate a. With 'tightest', the scale is the smallest of those by each view and exposure.
local function dispersion(run, views, scores, log_m, params)
	local own, n = scale_of(scores, params.about)
	for _, view in ipairs(params.tightest and views or {}) do
		for _, exposure in ipairs(view.per) do
			local one = {}
			for key, value in pairs(view) do one[key] = value end
			one.per = { exposure }
			local scale, of = scale_of(scores_over(run, { one }, params.span), true)
			if of > 2 then own = math.min(own, scale) end
		end
	end
	local prior = 4
	local scale = math.sqrt((prior * math.log(params.prior) ^ 2 + n * own ^ 2) / (prior + n))
	local z = normal_quantile(log_m - math.log(math.max(1, run.seconds / params.span)))
	return scale * t_quantile(z, prior + n - 1)
end

local function lasting(run, views, scores, limit, least, noise, log_m, params)
	if not least then return limit end
	local z = normal_quantile(log_m)
	if params.dispersion == 1 then
		limit = math.max(limit, dispersion(run, views, scores, log_m, params))
	elseif params.dispersion == 2 then
		local low = math.log(least) * math.log(params.low) / math.log(1.25)
		limit = math.max(low, dispersion(run, views, scores, log_m, params))
	elseif params.dispersion == 3 then
		local low = math.log(least) * math.log(params.low) / math.log(1.25)
		limit = math.max(low, z * noise, dispersion(run, views, scores, log_m, params))
	end
	local short = {}
	for i in ipairs(scores) do short[i] = scores[i] end
	local long = params.long
	while long > 0 do
		local of = scores_over(run, views, long, params.width)
		local easier = limit * (params.span / long) ^ params.power
		easier = math.max(easier, z * noise_of(of))
		if easier <= limit then
			for i in ipairs(scores) do
				scores[i] = -vec.least { -scores[i], -(of[i] * (limit / easier)) }
			end
		end
		long = params.scales and long > params.span + 4 and long - 4 or 0
	end
	if params.past > 0 then
		local single = scores_over(run, views, 1)
		for i in ipairs(scores) do
			local past = single[i]:rolling_median(60, 3):lag(params.span)
			local since = short[i] - past:clamp(0)
			if params.past == 1 then scores[i] = scores[i] - past:clamp(0):fill(0) end
			if params.past == 2 then scores[i] = vec.least { scores[i], since } + 0 * since end
			if params.past == 3 then
				local both = vec.least { short[i], since } + 0 * since
				scores[i] = -vec.least { -scores[i], -both * math.log(1.25) / math.log(params.low) }
			end
		end
	end
	return limit
end

local function any_number(run)
	local sum = run.seconds
	for _, server in ipairs(run.servers) do
		sum = sum + reader(run, server)("nic_sent_bytes"):sum() // 1
	end
	return (sum // 1 | 0) % 1000003
end

-- The server with the planted fault, or its factor by the second.
local function planted(run, params)
	if not params then return any_number(run) % #run.servers + 1 end
	local factor = vec.new(run.seconds, 1)
	for t = 6, math.min(18, run.seconds) do
		if t % params.every == 0 then factor[t] = params.plant end
	end
	return factor
end

-- A lasting factor of a server's disk, the same for a run and a server.
local function unequal(run, i, sigma)
	local x = any_number(run) * 131 + i * 7919
	local function uniform()
		x = (x * 1103515245 + 12345) % 2147483648
		return (x + 1) / 2147483650
	end
	for _ = 1, 5 do uniform() end
	return math.exp(sigma * math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform()))
end

"""

PARAMS = """
		dispersion = { default = 0, help = "1 beside rule 3's limit, 2 instead, 3 both" },
		prior = { default = 1.15, help = "usual lasting ratio" },
		tightest = { default = false, help = "by its tightest view" },
		about = { default = true, help = "their median, not 0" },
		low = { default = 1.25, help = "least ratio of a disk with dispersion, or with past" },
		long = { default = 0, integer = true, help = "seconds of a second span" },
		width = { default = 1, integer = true, help = "its typical so many seconds" },
		power = { default = 0.5, help = "limit of the long span: (span / long) ^ power of the short one's" },
		scales = { default = false, help = "also every fourth second between span and long" },
		past = { default = 0, help = "1 must agree, 2 must be there, 3 may agree" },
		lastingly = { default = false, help = "abstention by lasting excess" },
		lastingest = { default = 0, help = "indict only who exceeds the limit for at least this share of the longest" },
		unequal = { default = 0, help = "standard deviation" },
		plant = { default = 0, help = "a server's disk takes so many times as long from second 6 to 18" },
		every = { default = 1, integer = true, help = "in one second of so many" },
"""

EDITS = [
	("-- Examines one cause.", LUA + "-- Examines one cause."),
	("local function log_ratios(run, view, span)", "local stress, unequal, planted = nil, nil, nil\nlocal function log_ratios(run, view, span, width)"),
	("local function unequal(", "function unequal("),
	("local function planted(", "function planted("),
	("local found, indicted, times = guilty.found, {}, {}\n", "local found, indicted, times = guilty.found, {}, {}\n" + """
	if params.lastingest > 0 then
		local longest, kept = 0, {}
		for _, f in ipairs(found) do longest = math.max(longest, f.seconds) end
		for _, f in ipairs(found) do
			if f.seconds >= longest * params.lastingest then kept[#kept + 1] = f end
		end
		found = kept
	end
"""),
	("""	if not next(seen) then
""", """	if params.plant > 0 then seen.planted = run.servers[planted(run)] end
	if not next(seen) then
"""),
	("for _, what in pairs(seen) do blurred = blurred or what.blurred end",
		"for name, what in pairs(seen) do blurred = blurred or name ~= 'planted' and what.blurred end"),
	("compare(k, 1, span)", "compare(k, width or 1, span - (width or 1) + 1)"),
	("		for k, exposure in ipairs(view.per) do exposures[i][k]",
		"		if view.says:find(\"disk\") or view.says:find(\"time of a\") then\n"
		"			if stress.unequal > 0 then amounts[i] = amounts[i] * unequal(run, i, stress.unequal) end\n"
		"			if stress.plant > 0 and i == planted(run) then amounts[i] = amounts[i] * planted(run, stress) end\n"
		"		end\n"
		"		for k, exposure in ipairs(view.per) do exposures[i][k]"),
	("	local shape = least and math.exp", "	limit = lasting(run, views, scores, limit, least, noise, log_m, params)\n	local shape = least and math.exp"),
	("	local guilty, seen, n, list =", "	stress = params\n	local guilty, seen, n, list ="),
	("	for k, f in ipairs(found) do indicted", """	if params.lastingly and #found > 1 and #found * 3 > n then
		local kept = {}
		for _, f in ipairs(found) do
			if f.seconds >= params.span then kept[#kept + 1] = f end
		end
		if #kept > 0 then found = kept end
	end
	for k, f in ipairs(found) do indicted"""),
	("	params = {\n", "	params = {" + PARAMS),
]

CANDIDATES = {
	"as it is": "",
	"a. dispersion of the scores, about 0": "dispersion=1,prior=1.02,about=false",
	"a. dispersion of the scores": "dispersion=1,prior=1.02",
	"a. by the tightest view": "dispersion=1,prior=1.02,tightest=true",
	"a. by the tightest view, prior 1.05": "dispersion=1,prior=1.05,tightest=true",
	"a. by the tightest view, prior 1.15": "dispersion=1,prior=1.15,tightest=true",
	"a. by the tightest view, instead, at least 1.15": "dispersion=2,low=1.15,prior=1.02,tightest=true",
	"a. by the tightest view, with noise, at least 1.15": "dispersion=3,low=1.15,prior=1.02,tightest=true",
	"b. also 12 s": "long=12",
	"b. also 12 s, power 1": "long=12,power=1",
	"b. also 16 s": "long=16",
	"b. also 20 s": "long=20",
	"b. also 12, 16 and 20 s": "long=20,scales=true",
	"b. also 12 s, typical 4 s": "long=12,width=4",
	"b. also 12 s, typical 4 s, power 0": "long=12,width=4,power=0",
	"c. must agree, where there is a past": "past=1",
	"c. must be there and agree": "past=2",
	"c. may agree, at least 1.2": "past=3,low=1.2",
	"c. may agree, at least 1.15": "past=3,low=1.15",
	"d. abstention by lasting excess": "lastingly=true",
	"d. only who lasts a third of the longest": "lastingest=0.33",
}


def interval(k, n):
	"""Exact 95 % interval (Clopper and Pearson) of k out of n."""
	def tail(p, low, high):
		return sum(math.comb(n, i) * p ** i * (1 - p) ** (n - i) for i in range(low, high + 1))

	def solve(f):
		a, b = 0.0, 1.0
		for _ in range(50):
			m = (a + b) / 2
			a, b = (m, b) if f(m) else (a, m)
		return a
	return (0.0 if k == 0 else solve(lambda p: tail(p, k, n) < 0.025),
		1.0 if k == n else solve(lambda p: tail(p, 0, k) >= 0.025))


def of(k, n):
	low, high = interval(k, n) if n else (0, 1)
	return "%d of %d [%.3f,%.3f]" % (k, n, low, high)


def truth(run, keep):
	"""Number -> (fault, victims) of the cells of a set."""
	path = os.path.join(ROOT, "results", run, "run.db")
	with tempfile.NamedTemporaryFile() as tmp:
		with (gzip.open(path + ".gz") if not os.path.exists(path) else open(path, "rb")) as f:
			tmp.write(f.read())
		tmp.flush()
		db = sqlite3.connect(tmp.name)
		rows = db.execute("SELECT number, fault, repeat, coalesce(victims, '[]') FROM cell WHERE training = 0").fetchall()
		db.close()
	return {number: (fault, set(json.loads(victims))) for number, fault, repeat, victims in rows
		if keep is None or repeat % 2 == keep}


class Score:
	def __init__(self):
		self.faulty = self.right = self.wrong = self.controls = self.alarms = self.abstained = 0
		self.found, self.accused = set(), set()

	def add(self, where, victims, verdict):
		said = set(verdict.get("indicted", []))
		self.abstained += verdict.get("abstain", False)
		if victims:
			self.faulty += 1
			self.wrong += bool(said - victims)
			if said == victims:
				self.right += 1
				self.found.add(where)
		else:
			self.controls += 1
			self.alarms += bool(said)
		if said - victims:
			self.accused.add(where)

	def row(self, name):
		return "| %s | %s | %s | %s | %d |" % (name, of(self.right, self.faulty), of(self.wrong, self.faulty),
			of(self.alarms, self.controls), self.abstained)


def judge(detector, cells, planted):
	program, by_run, total = os.path.join(ROOT, os.environ.get("OUT", "out"), "culprit"), {}, Score()
	for run, known in cells.items():
		text = subprocess.run([program, "diagnose", "results/" + run, "--detector", detector, "--json"], check=True,
			stdout=subprocess.PIPE, cwd=ROOT, text=True).stdout
		by_run[run] = Score()
		for row in json.loads(text):
			if row["cell"] in known and row["verdict"]["metric"] == "any":
				for score in (total, by_run[run]):
					victims = known[row["cell"]][1]
					if planted:
						if victims:
							continue
						victims = {row["verdict"].get("evidence", {}).get("causes", {}).get("planted")} - {None}
					score.add((run, row["cell"]), victims, row["verdict"])
	return total, by_run


def main():
	p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
	p.add_argument("set", choices=SETS)
	p.add_argument("names", nargs="*", metavar="CANDIDATE", help="beginning of a name, or parameters: KEY=VALUE,...")
	p.add_argument("--stress", default="", metavar="KEY=VALUE,...", help="unequal, plant, every")
	p.add_argument("--by-run", action="store_true")
	p.add_argument("--cells", action="store_true", help="which cells differ from the first row")
	p.add_argument("--keep", metavar="FILE", help="write the detector with all candidates to FILE")
	o = p.parse_args()
	with open(os.path.join(ROOT, "diag/detectors/peer-robust.lua")) as f:
		source = f.read()
	for old, new in EDITS:
		if source.count(old) != 1:
			sys.exit("lasting.py: '%s' is %d times in peer-robust.lua, not once" % (old.split("\n")[0], source.count(old)))
		source = source.replace(old, new)
	chosen = {name: how for name, how in CANDIDATES.items() if not o.names or any(name.startswith(n) for n in o.names)}
	chosen.update({n: n for n in o.names if "=" in n})
	cells = {}
	for run, keep in SETS[o.set]:
		cells[run] = truth(run, keep)
	with tempfile.TemporaryDirectory() as tmp:
		path = o.keep or os.path.join(tmp, "lasting.lua")
		with open(path, "w") as f:
			f.write(source)
		print("| candidate | right server | wrong server | false alarms | abstained |\n|---|--:|--:|--:|--:|")
		first = None
		for name, how in chosen.items():
			settings = ",".join(filter(None, [os.path.abspath(path), how, o.stress]))
			total, by_run = judge(settings, cells, "plant" in o.stress)
			print(total.row(name), flush=True)
			for run, score in by_run.items() if o.by_run else ():
				print(score.row("- " + run))
			first = first or total
			if o.cells and total is not first:
				for what, a, b in (("lost", first.found, total.found), ("found", total.found, first.found),
					("accused", total.accused, first.accused), ("no longer accused", first.accused, total.accused)):
					for run, cell in sorted(a - b):
						print("    %s: %s %d %s" % (what, run, cell, cells[run][cell][0]))


main()
