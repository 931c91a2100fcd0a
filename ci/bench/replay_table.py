"""The table of ci/bench/replay.sh from its times.tsv: application, storage, mode, storage of the trace, seconds."""
import collections
import math
import statistics
import sys

# Mesnier et al. 2007, section 5.2 and 5.3: errors in percent on the storages Vendor A, B and C; of //TRACE the text has
# the most of the three.
PUBLISHED = {
    "pseudo": ("Pseudo", "19, 4, 7", "no gain"),
    "sync": ("PseudoSync", "82, 23, 31", "at most 17 %"),
    "syncdat": ("PseudoSyncDat", "33, 21, 15", "at most 10 %"),
    "fitness": ("Fitness", "166, 205, 40", "at most 5 %"),
}
# Student's t, two-sided 95 %, by degrees of freedom.
T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def error(application, replay):
    """|A - R| / A of the means, and the half width of its 95 % interval, in percent; None of fewer than two runs."""
    a, r = statistics.mean(application), statistics.mean(replay)
    n = min(len(application), len(replay))
    if n < 2:
        return abs(a - r) / a * 100, None
    var_a = statistics.variance(application) / len(application)
    var_r = statistics.variance(replay) / len(replay)
    spread = math.sqrt(var_r / a**2 + r**2 * var_a / a**4)
    t = T[n - 1] if n - 1 < len(T) else 1.96
    return abs(a - r) / a * 100, t * spread * 100


def costs(times):
    """What a capture by messages costs: the application's time in it over its time alone, of the means."""
    ratios = {}
    for (app, storage, mode, _), seconds in times.items():
        alone = times.get((app, storage, "application", "-"))
        if mode == "captured" and alone:
            ratios[app, storage] = statistics.mean(seconds) / statistics.mean(alone)
    if ratios:
        print(f"\nCaptured by messages, over untraced: {statistics.median(ratios.values()):.3f} in the median,"
              f" {min(ratios.values()):.3f} to {max(ratios.values()):.3f} ({len(ratios)} cells; goal: 1.05).")


def sampled(times):
    """Captures by delays of some calls or some processes only: their time, and the error of the replays."""
    ways = sorted({mode for _, _, mode, source in times if mode[1:].isdigit() and source == "-"}, key=lambda w: (w[0] != "p", int(w[1:])))
    if not ways:
        return
    print("\n| application | delayed | capture takes, s | over untraced | replay's error on C |\n|---|---|---|---|---|")
    for app, (name, _, _) in PUBLISHED.items():
        for way in ways:
            took = times.get((app, "C", way, "-"))
            if not took:
                continue
            wide, width = error(times[app, "C", "application", "-"], times[app, "C", way, "B"])
            calls = "every call" if way == "p1" else f"every {way[1:]}{'nd' if way == 'p2' else 'th'} call" if way[0] == "p" else f"{way[1:]} of 4 processes"
            alone = statistics.mean(times[app, "B", "application", "-"])
            print(f"| {name} | {calls} | {took[0]:.0f} | {took[0] / alone:.0f} | {wide:.1f} %"
                  + (f" ± {width:.1f}" if width is not None else "") + " |")


def main():
    times = collections.defaultdict(list)
    for line in open(sys.argv[1]):
        app, storage, mode, source, seconds = line.rstrip("\n").split("\t")
        times[app, storage, mode, source].append(float(seconds))
    modes = ("causal", "think", "afap")
    every = collections.defaultdict(list)
    print("| application | storage | runs | seconds | " + " | ".join(modes) + " | published: think | published: //TRACE |")
    print("|---|---|---|---|" + "---|" * (len(modes) + 2))
    for app, (name, think, trace) in PUBLISHED.items():
        for storage in "ABC":
            application = times.get((app, storage, "application", "-"))
            if not application:
                continue
            cells = []
            for mode in modes:
                errors = [error(application, times[app, storage, mode, source])
                          for source in "ABC" if times.get((app, storage, mode, source))]
                if not errors:
                    cells.append("-")
                    continue
                worst, width = max(errors, key=lambda e: e[0])
                every[mode].append(worst)
                cells.append(f"{worst:.1f} %" + (f" ± {width:.1f}" if width is not None else ""))
            print(f"| {name} | {storage} | {len(application)} | {statistics.mean(application):.2f} | "
                  + " | ".join(cells) + f" | {think} % (A, B, C) | {trace} |")
    costs(times)
    sampled(times)
    for mode in modes:
        if every[mode]:
            print(f"\n{mode}: {statistics.mean(every[mode]):.1f} % on average, {max(every[mode]):.1f} % at most"
                  f" ({len(every[mode])} of {len(PUBLISHED) * 3} cells)")
    print("\nPublished (Mesnier et al. 2007): //TRACE below 6 % on average over its applications; goals: 5 % and 10 %.")


main()
