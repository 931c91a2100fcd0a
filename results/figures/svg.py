"""Draws figures as SVG: panels with axes, lines, bars and words. Numbers are rounded to a tenth of a pixel, so that the same data
give the same bytes on any machine."""
import math
from xml.sax.saxutils import escape

INK, FAINT, GRID = "#1a1a1a", "#555555", "#d9d9d9"
VICTIM, PEERS, SHADE = "#c0300e", ("#1f5a94", "#2e7d52", "#7a5195"), "#f7e6bd"
DASHES = ("7 4", "2 3", "9 3 2 3")  # of peers, so that they differ without colour


def n(x):
	words = ("%.1f" % x).rstrip("0").rstrip(".")
	return "0" if words == "-0" else words


class Figure:
	def __init__(self, width, height, title, description):
		self.width, self.height = width, height
		self.parts = [
			'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d" '
			'font-family="\'Liberation Sans\', Arial, Helvetica, sans-serif" font-size="14" fill="%s">' % (width, height, width, height, INK),
			'<title id="t">%s</title>' % escape(title), '<desc id="d">%s</desc>' % escape(description),
			'<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
			'<rect width="6" height="6" fill="#f6c9bd"/><line x1="0" y1="0" x2="0" y2="6" stroke="%s" stroke-width="3"/></pattern></defs>' % VICTIM,
			'<rect width="%d" height="%d" fill="#ffffff"/>' % (width, height),
		]

	def add(self, part):
		self.parts.append(part)

	def rect(self, x0, y0, x1, y1, fill, stroke=None):
		self.add('<rect x="%s" y="%s" width="%s" height="%s" fill="%s"%s/>' % (n(min(x0, x1)), n(min(y0, y1)), n(abs(x1 - x0)),
			n(abs(y1 - y0)), fill, ' stroke="%s"' % stroke if stroke else ""))

	def line(self, points, stroke=INK, width=1.0, dash=None):
		self.add('<polyline points="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"%s/>' % (
			" ".join("%s,%s" % (n(x), n(y)) for x, y in points), stroke, n(width), ' stroke-dasharray="%s"' % dash if dash else ""))

	def area(self, points, fill):
		self.add('<polygon points="%s" fill="%s"/>' % (" ".join("%s,%s" % (n(x), n(y)) for x, y in points), fill))

	def text(self, x, y, words, anchor="start", size=14, fill=INK, bold=False, halo=None):
		self.add('<text x="%s" y="%s" text-anchor="%s" font-size="%d" fill="%s"%s%s>%s</text>' % (n(x), n(y), anchor, size, fill,
			' font-weight="bold"' if bold else "", ' stroke="%s" stroke-width="4" paint-order="stroke"' % halo if halo else "", escape(words)))

	def turned(self, x, y, words):
		self.add('<text transform="translate(%s %s) rotate(-90)" text-anchor="middle">%s</text>' % (n(x), n(y), escape(words)))

	def mark(self, x, y, shape, colour, size=4.0):
		if shape == "dot":
			self.add('<circle cx="%s" cy="%s" r="%s" fill="%s"/>' % (n(x), n(y), n(size), colour))
		elif shape == "ring":
			self.add('<circle cx="%s" cy="%s" r="%s" fill="#ffffff" stroke="%s" stroke-width="1.5"/>' % (n(x), n(y), n(size), colour))
		elif shape == "square":
			self.rect(x - size, y - size, x + size, y + size, "#ffffff", colour)
		elif shape == "diamond":
			self.area([(x, y - size - 1), (x + size + 1, y), (x, y + size + 1), (x - size - 1, y)], colour)
		elif shape == "triangle":
			self.add('<polygon points="%s,%s %s,%s %s,%s" fill="#ffffff" stroke="%s" stroke-width="1.5"/>' % (
				n(x - size), n(y + size), n(x + size), n(y + size), n(x), n(y - size), colour))
		elif shape == "cross":
			for s in (-1, 1):
				self.line([(x - size, y - s * size), (x + size, y + s * size)], colour, 2.5)

	def save(self, path):
		with open(path, "w", encoding="utf-8", newline="\n") as f:
			f.write("\n".join(self.parts + ["</svg>", ""]))


class Panel:
	"""A rectangle with a scale in x (seconds) and one in y (log: logarithmic)."""

	def __init__(self, figure, left, top, right, bottom, seconds, low=0.0, high=1.0, log=False):
		self.f, self.left, self.top, self.right, self.bottom = figure, left, top, right, bottom
		self.seconds, self.low, self.high, self.log = seconds, low, high, log

	def x(self, second):
		return self.left + (self.right - self.left) * min(max(second, 0), self.seconds) / self.seconds

	def y(self, value):
		low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
		value = math.log(max(value, self.low)) if self.log else value
		return self.bottom - (self.bottom - self.top) * (min(max(value, low), high) - low) / (high - low)

	def fault(self, onset, offset, words=None):
		self.f.rect(self.x(onset), self.top, self.x(offset), self.bottom, SHADE)
		if words:
			self.f.text((self.x(onset) + self.x(offset)) / 2, self.top - 6, words, "middle", 13, "#6b4e00")

	def axes(self, label, ticks, shape=str, time=False, step=2):
		for v in ticks:
			self.f.line([(self.left, self.y(v)), (self.right, self.y(v))], GRID)
			self.f.text(self.left - 7, self.y(v) + 5, shape(v), "end", 13)
		self.f.turned(self.left - 58, (self.top + self.bottom) / 2, label)
		self.frame(time, step)

	def frame(self, time, step=2):
		self.f.line([(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)], FAINT)
		for s in range(0, self.seconds + 1, step):
			self.f.line([(self.x(s), self.bottom), (self.x(s), self.bottom + 5)], FAINT)
			if time:
				self.f.text(self.x(s), self.bottom + 20, str(s), "middle", 13)
		if time:
			self.f.text((self.left + self.right) / 2, self.bottom + 40, "seconds since the start of the run", "middle")

	def curve(self, values, at=1.0, stroke=INK, width=2.0, dash=None, shape=None):
		"""values[i] is that of second i, drawn at i + at; None leaves a gap."""
		run = []
		for i, v in enumerate(list(values) + [None]):
			if v is None:
				if len(run) > 1:
					self.f.line(run, stroke, width, dash)
				run = []
			else:
				run.append((self.x(i + at), self.y(v)))
		for i, v in enumerate(values):
			if shape and v is not None:
				self.f.mark(self.x(i + at), self.y(v), shape, stroke, 4.0 if shape == "dot" else 3.2)

	def at(self, second, words):
		"""A vertical line, with words to the right of its top."""
		self.f.line([(self.x(second), self.top), (self.x(second), self.bottom)], INK, 1.5, "3 2")
		self.f.text(self.x(second) + 6, self.top + 15, words, size=13)


def legend(figure, x, y, entries):
	"""entries: (words, drawer of a sample 26 wide at x, y)."""
	for words, draw in entries:
		draw(x, y - 5)
		figure.text(x + 33, y, words, size=13)
		x += 33 + 7.0 * len(words) + 16
