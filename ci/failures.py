#!/usr/bin/env python3
"""Prints each failed check of a test program in at most three lines: which and where, the values, the log.

    ci/failures.py PROGRAM LOG [STATUS]

LOG is what PROGRAM printed, standard output and errors in one: TAP of cmocka or of ci/tests/tap.sh. STATUS is its exit
status; it tells a time-out (124, 137) or a signal. A program that ended before its last check has failed as well: the
report of a sanitizer names the line, otherwise the last check that it ran is named.

    flow/wire_test: a_receive_is_bound_to_two_sends, at ci/tests/flow/wire_test.c:88
        0x3 != 0x4
        log: out/failures/wire_test.log:17
"""
import re
import signal
import sys

WIDTH = 200  # of a line of values

RESULT = re.compile(r"(not )?ok\b *(\d*)(?: - )?(.*)")
PLAN = re.compile(r"1\.\.(\d+)")
CMOCKA_GROUP_END = re.compile(r"# (not )?ok - ")
CMOCKA_PLACE = re.compile(r"(\S+:\d+): (?:error|note): *(?:Failure!)?(.*)")
CMOCKA_ERROR = re.compile(r"(?:\[  ERROR   \] --- |ERROR: )(.*)")
SHELL_PLACE = re.compile(r"at (\S+:\d+.*)")
SANITIZER = re.compile(r"SUMMARY: (\w+Sanitizer: .*)|(\S+:\d+):\d+: (runtime error: .*)")
FRAME = re.compile(r"\s+#\d+ 0x\w+ in \S+ (?:\S*/)?((?:harness|faults|workloads|diag|results|ci)/\S+\.[ch]:\d+)")


class Failure:
    def __init__(self, name, line, place=None):
        self.name, self.line, self.place, self.values = name, line, place, []

    def take(self, text):
        """One line of diagnosis: the place, or something to show."""
        text = text.strip()
        if found := CMOCKA_PLACE.match(text):
            self.place = self.place or found.group(1)
            text = found.group(2)
        elif found := SHELL_PLACE.match(text):
            self.place = self.place or found.group(1)
            text = ""
        if text:
            self.values.append(text)


def failed_checks(lines):
    failures, before, current = [], [], None
    for number, text in enumerate(lines, 1):
        result = RESULT.match(text)
        if result:
            current = None
            if result.group(1) and "# SKIP" not in text:
                # cmocka: "not ok 3 - NAME Could not run test: VALUES" if a fixture failed.
                name, _, why = result.group(3).partition(" Could not run test: ")
                current = Failure(name.strip() or f"check {result.group(2)}", number)
                failures.append(current)
                for said in before + [why]:
                    current.take(said)
            before = []
        elif PLAN.match(text) or CMOCKA_GROUP_END.match(text):
            current = None
        elif error := CMOCKA_ERROR.match(text):  # fail_msg and a group's fixture: in front of the result
            before.append(error.group(1))
        elif before and CMOCKA_PLACE.match(text):
            before.append(text)
        elif current and (text.startswith("#") or not current.place):
            current.take(text.lstrip("#"))
    return failures


def early_end(lines, status):
    """A failure if the program did not run all its checks."""
    planned = ran = 0
    plan_first = planned_at_all = ended = False
    last = "no check"
    for text in lines:
        if plan := PLAN.match(text):
            planned_at_all = True
            plan_first = plan_first or not ran
            if plan_first:  # cmocka: for each of its groups
                if ran < planned and not ended:
                    break
                planned, ran, ended = int(plan.group(1)), 0, False
            else:
                planned = int(plan.group(1))
        elif result := RESULT.match(text):
            ran += 1
            last = f"'{result.group(3).strip()}'"
        elif CMOCKA_GROUP_END.match(text):
            ended = True
    if planned_at_all and (ran >= planned or ended) and not (plan_first and not ended and status in (124, 137)):
        return None
    if status in (124, 137):
        name = "did not end in time"
    elif status > 128 and status - 128 in {s.value for s in signal.Signals}:
        name = f"was ended by {signal.Signals(status - 128).name}"
    else:
        name = "ended early"
    of = f" of {planned}" if planned else ""
    return Failure(f"{name}, after {last} ({ran}{of} checks)", len(lines))


def sanitizer_report(lines):
    """The report of a sanitizer, at the first of our own lines in it."""
    place = None
    for number, text in enumerate(lines, 1):
        if frame := FRAME.match(text):
            place = place or frame.group(1)
        elif found := SANITIZER.match(text):
            report = Failure("report of a sanitizer", number, place or found.group(2))
            report.take(found.group(1) or found.group(3))
            return report
    return None


def in_decimal(text):
    """cmocka prints integers in base 16."""
    numbers = [int(n, 16) for n in re.findall(r"\b0x[0-9a-f]+\b", text)]
    if not re.fullmatch(r"(0x[0-9a-f]+|0) != (0x[0-9a-f]+|0)", text) or max(numbers) < 10:
        return text
    signed = [n - (1 << 64) if n >> 63 else n for n in (int(n, 16) for n in text.split(" != "))]
    return f"{text} ({signed[0]} != {signed[1]})"


def shown(values):
    # A shell test prints all that its command said: what was compared, if it says so, else the end.
    compared = [v for v in values if re.search(r"\b(got|expected)\b", v)]
    text = " | ".join(in_decimal(v) for v in (compared or values[-3:]))
    return text if len(text) <= WIDTH else text[:WIDTH] + " ..."


def main():
    if len(sys.argv) not in (3, 4) or not (sys.argv[3:] or ["0"])[0].isdigit():
        sys.exit("usage: ci/failures.py PROGRAM LOG [STATUS]")
    program, log, status = sys.argv[1], sys.argv[2], int(sys.argv[3] if sys.argv[3:] else 0)
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as e:
        sys.exit(f"failures: {e}")
    found = failed_checks(lines)
    report, end = sanitizer_report(lines), early_end(lines, status)
    if report and end:  # the one is why the other
        report.name, end = end.name, None
    found += [f for f in (report, end) if f]
    if not found:
        found = [Failure(f"ended with {status}, though no check failed", len(lines))]
    for f in found:
        print(f"{program}: {f.name}" + (f", at {f.place}" if f.place else ""))
        if f.values:
            print(f"    {shown(f.values)}")
        print(f"    log: {log}:{f.line}")


main()
