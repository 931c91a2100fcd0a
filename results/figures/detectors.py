#!/usr/bin/env python3
"""Draws the figures of diag/detectors/HOW.md from the committed corpora, byte for byte the same each time.

    results/figures/detectors.py [FOLDER]      default: results/figures (make figures does that)

Needs Python 3 and nothing else. Measurements come from `culprit query --samples`, verdicts and their evidence from `culprit diagnose`, both of
$OUT/culprit; the truth (victim, onset) from the corpus' own database. What is drawn is computed here, from the definitions, and
not by the detectors: each figure is refused if it is not what the detector says of that cell.
"""
import csv
import gzip
import io
import json
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from svg import DASHES, FAINT, INK, PEERS, VICTIM, Figure, Panel, legend  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHAPES = ("ring", "square", "triangle")


def culprit(*args):
	program = os.path.join(ROOT, os.environ.get("OUT", "out"), "culprit")
	return subprocess.run([program, *args], check=True, stdout=subprocess.PIPE, cwd=ROOT, text=True).stdout


class Cell:
	"""What is known of one cell of a corpus; seconds are cut as they are for detectors, to as many as the run says, or its shortest."""

	def __init__(self, corpus, number):
		self.corpus, self.number = "results/corpora/" + corpus, number
		with tempfile.NamedTemporaryFile() as f:
			with gzip.open(os.path.join(ROOT, self.corpus, "run.db.gz")) as packed:
				f.write(packed.read())
			f.flush()
			db = sqlite3.connect("file:%s?mode=ro" % f.name, uri=True)
			victims, start, onset, offset, seconds, attempt = db.execute(
				"SELECT victims, start_ns, onset_ns, offset_ns, seconds, id FROM cell JOIN attempt ON attempt.cell = cell.number"
				" WHERE cell.number = ? AND outcome = 'confirmed'", (number,)).fetchone()
			judged, = db.execute("SELECT coalesce((SELECT value FROM fact WHERE key = 'judged_seconds'), (SELECT min(seconds)"
				" FROM cell JOIN attempt ON attempt.cell = cell.number WHERE outcome = 'confirmed' AND NOT training))").fetchone()
			self.seconds = min(seconds, int(judged))
			self.events = [dict(json.loads(detail), kind=kind, server=server, client=client, time_s=time_s)
				for kind, server, client, time_s, detail in db.execute(
					"SELECT kind, server, client, time_s, detail FROM event WHERE attempt = ? ORDER BY number", (attempt,))
				if time_s < self.seconds]
			db.close()
		self.samples = list(csv.DictReader(io.StringIO(culprit("query", "--samples", self.corpus, "--cell", str(number)))))
		self.servers = sorted({row["server"] for row in self.samples})
		self.victim, = json.loads(victims)
		self.onset, self.offset = (onset - start) / 1e9, min((offset - start) / 1e9, self.seconds)
		self.peers = [s for s in self.servers if s != self.victim]

	def series(self, metric, field="sum"):
		"""server -> a number a second, None where nothing was measured."""
		out = {s: [None] * self.seconds for s in self.servers}
		for row in self.samples:
			second = int(row["second"])
			if row["metric"] == metric and 0 <= second < self.seconds:
				out[row["server"]][second] = float(row[field])
		return out

	def verdict(self, detector, metric="any"):
		said = json.loads(culprit("diagnose", self.corpus, "--cell", str(self.number), "--detector", detector, "--evidence", "--json"))
		verdict, = [v["verdict"] for v in said if v["detector"] == detector.split(",")[0] and v["verdict"]["metric"] == metric]
		same([self.victim], verdict["indicted"], "%s cell %d" % (self.corpus, self.number))
		return verdict

	def style(self, server):
		"""(colour, width, dash, shape)"""
		if server == self.victim:
			return VICTIM, 3.0, None, "dot"
		i = self.peers.index(server)
		return PEERS[i], 1.6, DASHES[i], SHAPES[i]

	def legend(self, figure, x, y, more=()):
		def sample(server):
			colour, width, dash, shape = self.style(server)
			return lambda at, up: (figure.line([(at, up), (at + 26, up)], colour, width, dash), figure.mark(at + 13, up, shape, colour, 3.5))
		legend(figure, x, y, [(s + (" (victim)" if s == self.victim else ""), sample(s)) for s in self.servers] + list(more))


def same(one, other, what):
	if not (one == other or isinstance(one, (int, float)) and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)):
		sys.exit("%s: drawn would be %r, the detector says %r" % (what, one, other))


def present(values):
	return [v for v in values if v is not None]


def rolling(values, width, least, reduce):
	out = []
	for i in range(len(values)):
		window = present(values[max(0, i + 1 - width):i + 1])
		out.append(reduce(window) if len(window) >= least else None)
	return out


def median_of(lists, least):
	return [statistics.median(present(at)) if len(present(at)) >= least else None for at in zip(*lists)]


def others(by_server, server):
	return median_of([v for s, v in by_server.items() if s != server], 2)


def combine(function, *lists):
	return [None if None in at else function(*at) for at in zip(*lists)]


def filled(values):
	return [v or 0.0 for v in values]


def largest(values):
	return max((v, -i) for i, v in enumerate(values) if v is not None)[0]


def first_above(values, limit):
	return next(i + 1 for i, v in enumerate(values) if v is not None and v > limit)


# peer-robust's scores, drawn anew and held for two seconds, are what it says they were; the second in which the victim's passed
# the limit, and the limit.
def agreed(cell, verdict, cause, score):
	seen, found = verdict["evidence"]["causes"][cause], verdict["evidence"]["found"][0]
	for s in cell.servers:
		score[s] = [None if now is None or before is None else min(now, before) for before, now in zip([None] + score[s], score[s])]
		same(largest(score[s]), seen["highest"][s], "score of " + s)
	time = first_above(score[cell.victim], seen["limit"])
	same(time, found["first_s"], "time")
	return time, seen["limit"]


def peer_threshold(folder):
	cell = Cell("matrix", 26)
	verdict = cell.verdict("peer-threshold", "dwrite")
	told = verdict["evidence"]["servers"]
	sums, counts = cell.series("dwrite"), cell.series("dwrite", "count")
	raw = {s: combine(lambda a, b: 1000 * a / b, sums[s], counts[s]) for s in cell.servers}
	smooth = {s: rolling(raw[s], 10, 5, statistics.median) for s in cell.servers}
	rep = median_of(smooth.values(), 3)
	above = combine(lambda a, b: a - b, smooth[cell.victim], rep)
	limit = 1000 * told[cell.victim]["threshold_s"]
	same(largest(above), 1000 * told[cell.victim]["deviation_s"], "deviation")
	time = first_above(above, limit)
	same(time, verdict["time_s"][cell.victim], "time")

	f = Figure(860, 640, "peer-threshold finds a disk hog", "Two panels over the %d seconds of a run in which a rogue reader slowed the disk"
		" of server %s from second %.1f to %.1f. Above: each server's mean time of a write, second by second; the victim's rises"
		" from about 40 to some 300 ms, its peers' stay below 80. Below: their medians over 10 seconds. The victim's crosses the threshold,"
		" %.0f ms above the representative, at second %d." % (cell.seconds, cell.victim, cell.onset, cell.offset, limit, time))
	cell.legend(f, 20, 24)
	a = Panel(f, 80, 70, 840, 290, cell.seconds, 0, 520)
	b = Panel(f, 80, 350, 840, 580, cell.seconds, 0, 400)
	a.fault(cell.onset, cell.offset, "disk-hog on " + cell.victim)
	b.fault(cell.onset, cell.offset)
	a.axes("mean write, ms", range(0, 501, 100))
	b.axes("median of 10 s, ms", range(0, 401, 100), time=True)
	for server in cell.peers + [cell.victim]:
		colour, width, dash, shape = cell.style(server)
		a.curve(raw[server], 0.5, colour, width, dash, shape)
		b.curve(smooth[server], 1, colour, width, dash, shape)
	b.curve(rep, 1, INK, 2.5)
	b.curve(combine(lambda r: r + limit, rep), 1, INK, 2, "10 4")
	legend(f, 80, 336, [("representative: median of the servers", lambda x, y: f.line([(x, y), (x + 26, y)], INK, 2.5)),
		("threshold: %.0f ms above it (3 times the most in training)" % limit, lambda x, y: f.line([(x, y), (x + 26, y)], INK, 2, "10 4"))])
	b.at(time, "indicted, %.1f s after onset" % (time - cell.onset))
	f.save(os.path.join(folder, "peer-threshold.svg"))


def likelihood(k, n, p):
	return (k * math.log(p) if k else 0) + ((n - k) * math.log(1 - p) if n - k else 0)


def surprise(cell, seconds, first):
	"""The G test's score a server: section 4 of peer-robust.lua's head, written down again. 'seconds': a server's (lost, full) a second
	that had something to lose, 'first': the first of them that can be told."""
	def share(spans, full):
		of = [k for span in spans for k, is_full in present(span) if is_full == full]
		return (sum(of) / len(of) if of else 0, len(of))
	out = {s: [None] * cell.seconds for s in cell.servers}
	for s in cell.servers:
		for t in range(first + 7, cell.seconds):
			span = slice(max(t - 15, 0), t + 1)
			mine, peers = present(seconds[s][span]), [seconds[x] for x in cell.servers if x != s]
			if not mine:
				continue
			out[s][t], r = 0, sum(k for k, _ in mine) / len(mine)
			for full in (False, True):
				always, others = share(peers, full)
				p = max(always, share([x[span] for x in peers], full)[0])
				k, n = sum(k for k, is_full in mine if is_full == full), sum(is_full == full for _, is_full in mine)
				if r > p:
					out[s][t] += likelihood(k, n, r) + likelihood(p * others, others, p) \
						- likelihood(k + p * others, n + others, (k + p * others) / max(n + others, 1))
	return out


def lagged(values, by):
	return ([0] * by + list(values))[:len(values)]


# Whether each second's link was full, told so many seconds later.
def fullness(cell, load, later):
	most = max(max(load[s]) for s in cell.servers)
	return {s: lagged([sum(load[s][max(t - 1, 0):t + 1]) >= most for t in range(cell.seconds)], later) for s in cell.servers}


def sent_again(cell, lost, load):
	full = fullness(cell, load, 1)
	return {s: [((k > 0) + 0, f) if k > 0 or sent > 0 else None for k, sent, f in zip(lagged(lost[s], 1), lagged(load[s], 1), full[s])]
		for s in cell.servers}


def never_came(cell, sender, receiver, load):
	full, out = fullness(cell, load, 2), {}
	sent, got = cell.series(sender), cell.series(receiver)
	sampled = cell.series(sender, "count"), cell.series(receiver, "count")
	for s in cell.servers:
		now = [a - b for a, b in zip(filled(sent[s]), filled(got[s]))]
		ends = [min(a, b) for a, b in zip(filled(sampled[0][s]), filled(sampled[1][s]))]
		whole = [t >= 4 and all(e == max(ends) for e in ends[t - 4:t + 1]) for t in range(cell.seconds)]
		falls = statistics.quantiles([max(-now[t], 0) if whole[t] else 0 for t in range(4, cell.seconds)], n=10, method="inclusive")[8]
		one, two, three, four = (lagged(now, by) for by in (1, 2, 3, 4))
		then_sent, out[s] = lagged(filled(sent[s]), 2), [None] * cell.seconds
		for t in range(cell.seconds):
			grown = min(two[t], two[t] + one[t], two[t] + one[t] + now[t]) + min(0, three[t], three[t] + four[t])
			if whole[t] and then_sent[t] > 0:
				out[s][t] = (min(max(grown - max(0.02 * then_sent[t], falls, 1) + 1, 0), 1), full[s][t])
	return out


def peer_robust_loss(folder):
	cell = Cell("matrix", 21)
	verdict = cell.verdict("peer-robust")
	same("network/receive-loss", verdict["resource"], "cause")
	again, needless = cell.series("client_tcp_retransmitted_segments"), cell.series("client_tcp_duplicate_segments")
	again = {s: [a - b - c for a, b, c in zip(filled(again[s]), filled(needless[s]), filled(needless[s])[1:] + [0])] for s in cell.servers}
	gaps = {s: filled(v) for s, v in cell.series("tcp_out_of_order_segments").items()}
	load = {s: filled(v) for s, v in cell.series("client_tcp_sent_bytes").items()}
	by_sender = surprise(cell, sent_again(cell, again, load), 0)
	missing = surprise(cell, never_came(cell, "client_tcp_sent_segments", "tcp_received_segments", load), 4)
	score = {s: [max(present(both), default=None) for both in zip(by_sender[s], missing[s])] for s in cell.servers}
	time, limit = agreed(cell, verdict, "network/receive-loss", score)

	f = Figure(860, 790, "peer-robust finds a server that loses what it should receive", "A strip for each of four servers over %d seconds."
		" Bars upwards: segments that the clients sent again to it; bars downwards: segments that reached it beyond a gap. The victim, %s, has"
		" both in nearly every second of the fault, its peers in single seconds, but then up to a thousand segments at once. Below, the scores: only the"
		" victim's exceeds the limit, at second %d." % (cell.seconds, cell.victim, time))
	legend(f, 20, 24, [("segments that clients sent again to it, not in vain", lambda x, y: f.rect(x + 4, y - 6, x + 22, y + 6, FAINT)),
		("segments it got beyond a gap (both a second, logarithmic)", lambda x, y: f.rect(x + 4, y - 6, x + 22, y + 6, "#ffffff", FAINT))])
	tall, top = 88, 70
	for i, s in enumerate(cell.servers):
		middle, colour = top + tall * i + 39, VICTIM if s == cell.victim else PEERS[0]
		p = Panel(f, 80, middle - 39, 840, middle + 39, cell.seconds)
		p.fault(cell.onset, cell.offset, "receive-pktloss, 5 %%, on %s" % cell.victim if i == 0 else None)
		for v in (10, 100, 1000):
			for way in (-1, 1):
				up = middle + way * 12 * math.log10(1 + v)
				f.line([(80, up), (840, up)], "#e3e3e3", 0.7)
				if v != 100:
					f.text(74, up + 4, "%d" % v, "end", 11, FAINT)
		f.line([(80, middle), (840, middle)], FAINT)
		f.turned(22, middle, "%s%s" % (s, " (victim)" if s == cell.victim else ""))
		for second in range(cell.seconds):
			for way, v, fill in ((-1, again[s][second], colour), (1, gaps[s][second], "#ffffff")):
				if v > 0:
					f.rect(p.x(second) + 4, middle, p.x(second + 1) - 4, middle + way * 12 * math.log10(1 + v), fill, colour)
	p = Panel(f, 80, 480, 840, 730, cell.seconds, 0, 30)
	p.fault(cell.onset, cell.offset)
	p.axes("score (log likelihood)", range(0, 31, 5), time=True)
	for s in cell.peers + [cell.victim]:
		colour, width, dash, shape = cell.style(s)
		p.curve(score[s], 1, colour, width, dash, shape)
	f.line([(80, p.y(limit)), (840, p.y(limit))], INK, 2, "10 4")
	f.text(88, p.y(limit) - 7, "limit %.1f" % limit, size=13)
	p.at(time, "indicted, %.1f s after onset" % (time - cell.onset))
	cell.legend(f, 80, 462)
	f.save(os.path.join(folder, "peer-robust-loss.svg"))


def peer_robust_hog(folder):
	cell = Cell("matrix", 6)
	verdict = cell.verdict("peer-robust")
	same("network/hog", verdict["resource"], "cause")
	nic, packets = cell.series("nic_sent_bytes"), cell.series("nic_sent_packets")
	own, theirs = cell.series("tcp_sent_bytes"), cell.series("client_tcp_received_bytes")
	payload = {s: combine(lambda a, b: a - 66 * b, filled(nic[s]), filled(packets[s])) for s in cell.servers}
	service = {s: combine(max, filled(own[s]), filled(theirs[s])) for s in cell.servers}
	foreign = {s: combine(lambda a, b: max(a - b, 0.0), payload[s], service[s]) for s in cell.servers}
	size = statistics.median(max(statistics.mean(present(nic[s])), statistics.mean(present(cell.series("nic_received_bytes")[s])))
		for s in cell.servers)
	whole = {s: rolling(foreign[s], 8, 8, statistics.fmean) for s in cell.servers}
	typical = {s: rolling(foreign[s], 8, 4, statistics.median) for s in cell.servers}

	def ratio(s, rates):
		return combine(lambda a, b: (a + 0.05 * size) / (b + 0.05 * size), rates[s], others(rates, s))
	score = {s: combine(min, ratio(s, whole), ratio(s, typical)) for s in cell.servers}
	time, limit = agreed(cell, verdict, "network/hog, sent", score)

	f = Figure(860, 800, "peer-robust finds a network hog", "Above, for the victim %s and one peer: bytes a second that their interfaces sent, and"
		" that the file system's sockets account for. During the fault the victim's interface sends 12 MB/s, of which its sockets account"
		" for half; the peer's are equal all the time. Below, the scores of all servers: the victim's is above the limit of 3 from second %d."
		% (cell.victim, time))
	legend(f, 20, 24, [("sent by the interface, less headers", lambda x, y: f.line([(x, y), (x + 26, y)], INK, 2.5)),
		("accounted for by sockets", lambda x, y: f.rect(x + 2, y - 6, x + 24, y + 6, "#a9c3dd")),
		("by nobody of the file system", lambda x, y: f.rect(x + 2, y - 6, x + 24, y + 6, "url(#hatch)"))])
	for i, s in enumerate((cell.victim, cell.peers[0])):
		p = Panel(f, 80, 70 + 205 * i, 840, 235 + 205 * i, cell.seconds, 0, 14)
		p.fault(cell.onset, cell.offset, "read-network-hog on " + cell.victim if i == 0 else None)
		p.axes("%s, MB/s" % (s + " (victim)" if s == cell.victim else s + " (a peer)"), (0, 4, 8, 12))
		steps = [[], []]
		for second in range(cell.seconds):
			low, high = service[s][second] / 1e6, payload[s][second] / 1e6
			f.rect(p.x(second), p.y(0), p.x(second + 1), p.y(min(low, high)), "#a9c3dd")
			if high - low > 0.05:
				f.rect(p.x(second), p.y(low), p.x(second + 1), p.y(high), "url(#hatch)")
			steps[0] += [(p.x(second), p.y(high)), (p.x(second + 1), p.y(high))]
		f.line(steps[0], INK, 2)
	p = Panel(f, 80, 500, 840, 740, cell.seconds, 0.8, 40, log=True)
	p.fault(cell.onset, cell.offset)
	p.axes("times its peers", (1, 3, 10, 30), time=True)
	for s in cell.peers + [cell.victim]:
		colour, width, dash, shape = cell.style(s)
		p.curve(score[s], 1, colour, width, dash, shape)
	f.line([(80, p.y(3)), (840, p.y(3))], INK, 2, "10 4")
	f.text(88, p.y(3) - 7, "limit 3", size=13)
	p.at(time, "indicted, %.1f s after onset" % (time - cell.onset))
	cell.legend(f, 80, 482)
	f.save(os.path.join(folder, "peer-robust-hog.svg"))


def crash_hang_panel(f, cell, verdict, top, words):
	links, moments = {}, {}
	for ev in cell.events:
		if ev["kind"] == "link-quiet":
			links.setdefault((ev["client"], ev["server"]), []).append(ev)
	clients = sorted({ev["client"] for ev in cell.events if ev["client"]})
	for m in verdict["evidence"]["shown"]:
		if m["counts"]: # clients have other names in there: whose call was it?
			client, = {ev["client"] for ev in cell.events for k in range(1, 4) if ev["kind"] in ("app-slow", "app-error")
				and any(abs(m["at_s"] - t) < 1e-6 for t in ((ev["time_s"] + 5 * k,) if ev["kind"] == "app-slow" else (ev["time_s"], ev["last_s"])))
				and ev.get("error") == m.get("error")}
			moments.setdefault(client, []).append(m)
	tall = 23
	rows = len(clients) * (len(cell.servers) + 1)
	p = Panel(f, 150, top, 840, top + rows * tall + 14, cell.seconds)
	p.fault(cell.onset, cell.offset, words)
	p.frame(True)
	for i, client in enumerate(clients):
		base = top + i * (len(cell.servers) + 1) * tall + (10 if i else 4)
		f.turned(18, base + (len(cell.servers) + 1) * tall / 2, "client " + client)
		f.text(142, base + 16, "application", "end", 13)
		says = [] # written last, and not across the lines of moments
		for ev in cell.events:
			if ev["kind"] == "app-slow" and ev["client"] == client:
				end = min(ev["last_s"], cell.seconds)
				f.rect(p.x(ev["time_s"]) + 1, base + 3, p.x(end) - 1, base + tall - 3, "#d5d5d5", FAINT)
				if end - ev["time_s"] > 5:
					says.append((p.x(ev["time_s"]), base, "a write that does not return", INK, None))
		for k, server in enumerate(cell.servers):
			y = base + (k + 1) * tall
			guilty = server == cell.victim
			f.text(142, y + 16, "to %s%s" % (server, " (victim)" if guilty else ""), "end", 13, bold=guilty)
			f.line([(p.x(0), y + 12), (p.x(cell.seconds), y + 12)], PEERS[0] if not guilty else VICTIM, 2)
			for ev in links.get((client, server), []):
				x0, x1 = p.x(ev["time_s"]), p.x(cell.seconds if ev["open"] else min(ev["last_s"], cell.seconds))
				fill, say, ink, halo = {
					"answered": ("#ffffff", "owes nothing", INK, None),
					"waiting": ("url(#hatch)", "owes %d answers" % ev["waiting"], INK, "#ffffff"),
					"ended": ("#2b2b2b", "connection ended", "#ffffff", None),
				}[ev["state"]]
				f.rect(x0, y + 4, x1, y + tall - 3, fill, VICTIM if guilty else FAINT)
				says.append((x0, y, say, ink, halo))
		for m in moments.get(client, []):
			x = p.x(m["at_s"])
			f.line([(x, base + 2), (x, base + (len(cell.servers) + 1) * tall)], "#8a8a8a", 2, "3 2")
			f.mark(x, base + 12, "cross" if m.get("error") else "diamond", INK, 5)
			if m.get("error"):
				says.append((x, base, "the write fails: " + m["error"], INK, None))
		for x, y, say, ink, halo in says:
			past = max([x] + [p.x(m["at_s"]) for m in moments.get(client, []) if 0 < p.x(m["at_s"]) - x < 40])
			f.text(past + 10, y + 16, say, size=12, fill=ink, halo=halo, bold=halo is not None)
	first = verdict["time_s"][cell.victim]
	same(first, min(m["at_s"] for of in moments.values() for m in of), "time")
	return p.bottom


def crash_hang(folder):
	hang, kill = Cell("errors", 2), Cell("errors", 46)
	said = [c.verdict("crash-hang,timeout=5s") for c in (hang, kill)]
	f = Figure(860, 690, "crash-hang on a server that hangs, and on one that is killed", "Two timelines: for each of two clients a row for the"
		" application's calls and one for its link to each of four servers. Above, server %s is stopped: both applications' writes do not"
		" come back; 5 and 10 s after their start the links to %s are silent with 34 open requests, all others quiet with none. Below, server %s is"
		" killed: its links end, and the next write of each application fails with ENOTCONN." % (hang.victim, hang.victim, kill.victim))
	legend(f, 20, 24, [("moment looked at: call overdue", lambda x, y: f.mark(x + 13, y, "diamond", INK, 5)),
		("or failed", lambda x, y: f.mark(x + 13, y, "cross", INK, 5)),
		("call of 1 s or more", lambda x, y: f.rect(x + 2, y - 6, x + 24, y + 6, "#d5d5d5", FAINT)),
		("data move on the link", lambda x, y: f.line([(x, y), (x + 26, y)], PEERS[0], 2))])
	bottom = crash_hang_panel(f, hang, said[0], 66, "hang: %s is stopped" % hang.victim)
	crash_hang_panel(f, kill, said[1], bottom + 78, "kill: %s is killed" % kill.victim)
	f.save(os.path.join(folder, "crash-hang.svg"))


def errno_propagation(folder):
	cell = Cell("errors", 5)
	verdict = cell.verdict("errno-propagation")
	unexpected = {ev["error"] for ev in verdict["evidence"]["propagated"]}
	same({"EROFS"}, unexpected, "errnos")
	f = Figure(860, 400, "errno-propagation on a server whose storage became read-only", "A timeline: what failed on each of four servers, and in"
		" the applications of two clients. Everyday errors, which training showed, happen everywhere and all the time. EROFS happens on"
		" server %s alone, from second %.1f on, and reaches an application within a millisecond." % (cell.victim, verdict["time_s"][cell.victim]))
	legend(f, 20, 24, [("errnos of everyday (ENOENT, ENODATA, EAGAIN ...)", lambda x, y: f.rect(x, y - 3, x + 26, y + 3, "#c9c9c9")),
		("EROFS", lambda x, y: f.rect(x + 2, y - 8, x + 24, y + 8, "url(#hatch)", VICTIM)),
		("EROFS in an application", lambda x, y: f.mark(x + 13, y, "diamond", INK, 5))])
	tall, top = 44, 66
	rows = [("server-error", s) for s in cell.servers] + [("app-error", c) for c in sorted({e["client"] for e in cell.events if e["client"]})]
	p = Panel(f, 165, top, 840, top + len(rows) * tall, cell.seconds)
	p.fault(cell.onset, cell.offset, "err-remount on " + cell.victim)
	p.frame(True)
	for i, (kind, name) in enumerate(rows):
		middle = top + i * tall + tall / 2
		guilty = name == cell.victim
		f.text(157, middle + 5, ("server " if kind == "server-error" else "client ") + name + (" (victim)" if guilty else ""), "end", bold=guilty)
		f.line([(165, top + (i + 1) * tall), (840, top + (i + 1) * tall)], "#d9d9d9")
		mine = [e for e in cell.events if e["kind"] == kind and name in (e["server"], e["client"])]
		for ev in mine:
			if ev["error"] not in unexpected:
				f.rect(p.x(ev["time_s"]), middle - 4, max(p.x(ev["last_s"]), p.x(ev["time_s"]) + 2), middle + 4, "#c9c9c9")
		for ev in mine:
			x0, x1 = p.x(ev["time_s"]), max(p.x(ev["last_s"]), p.x(ev["time_s"]) + 6)
			if ev["error"] in unexpected and kind == "server-error":
				f.rect(x0, middle - 11, x1, middle + 11, "url(#hatch)", VICTIM)
			elif ev["error"] in unexpected:
				f.mark(x0, middle, "diamond", INK, 5)
	time = verdict["time_s"][cell.victim]
	f.line([(p.x(time), top), (p.x(time), p.bottom)], INK, 1.5, "3 2")
	f.text(p.x(time), top - 6, "indicted", "middle", 13)
	first = next(e for e in cell.events if e["kind"] == "server-error" and e["error"] in unexpected)
	under = top + len(cell.servers) * tall - 5
	ends = [p.x(first["time_s"] - 1.5), p.x(first["last_s"] + 1.5)]
	f.line([(ends[0], under - 4), (ends[0], under), (ends[1], under), (ends[1], under - 4)], INK, 1.5)
	f.text(p.x(time) + 6, under + 15, "window of the first burst: 1.5 s to either side", size=12)
	f.save(os.path.join(folder, "errno-propagation.svg"))


def main():
	folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "results", "figures")
	for draw in (peer_threshold, peer_robust_loss, peer_robust_hog, crash_hang, errno_propagation):
		draw(folder)


if __name__ == "__main__":
	main()
