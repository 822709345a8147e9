#!/usr/bin/env python3
"""Writes docs/papers_costs.md and docs/papers_costs.svg.

    usage: docs/make_papers_costs.py PROGRAM FOLDER

PROGRAM (tests/unit/test_papers_costs) says what each method waits for and
sends; docs/papers_costs.csv what an operation takes on one core, as benchmarks
have it. Nothing else goes in, so that both files are the same wherever they are
made (integration/test_docs_costs.sh).
"""
import csv
import math
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SITE, SHARE, ROWS, COLUMNS, EVERY, BLOCKS = 8, 0.01, 5, 4, 15, 16
LAYERS, IN_US = 161, 5
STEPS = (50, 100, 200)
COLOURS = {"dense ring": "#222222", "lists of all": "#c0392b",
           "gTop-k": "#e67e22", "gs-SGD": "#8e44ad", "two-level": "#2471a3",
           "moniqua4 pairs": "#1e8449", "update sets": "#7f8c8d"}
METHODS = tuple(COLOURS)
NAMES = {25000000: "25 million", 124000000: "124 million"}


def read_costs():
    with open(f"{TOP}/docs/papers_costs.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_table(program):
    """(network, d, rate, peers, method) -> (ms, bytes, share); None: refused."""
    text = subprocess.run([program, "--table"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    table = {}
    for line in text.splitlines():
        network, d, rate, peers, method, *found = line.split("\t")
        table[network, int(d), int(rate), int(peers), method] = (
            None if found[0] == "-" else tuple(map(float, found)))
    return table


def operations(method, d, peers, share):
    """[(operation, how often)] of a step, of the peer that does most."""
    k, levels = SHARE * d, math.ceil(math.log2(peers))
    if method == "dense ring":
        return [("add", d * (peers - 1) / peers)]
    if method == "lists of all":
        return [("add", d), ("ms_top_k", d), ("scatter", peers * k)]
    if method == "gTop-k":
        return [("offer", d), ("merge", levels * 2 * k), ("add", d)]
    if method == "gs-SGD":
        return [("offer", d), ("sketch_add", ROWS * k),
                ("sketch_merge", levels * ROWS * COLUMNS * k),
                ("sketch_hash", ROWS * d / BLOCKS), ("sketch_find", ROWS * d),
                ("scatter", levels * COLUMNS * k), ("add", d)]
    if method == "two-level":
        return [("add", d * (SITE - 1) / SITE + d / SITE),
                ("ms_top_k", d / SITE),
                ("scatter", peers / SITE * k / SITE)]
    if method == "moniqua4 pairs":
        return [("moniqua4", d)]
    window = 2 * levels + 6  # src/gossip/algorithm/update_log.c, the least
    read = (window * peers + peers + peers // 4 + 1) * d / EVERY
    return [("compress_2bit", d / EVERY), ("decompress_2bit", read),
            ("add", read)]


class Page:
    def __init__(self, program):
        self.costs = read_costs()
        self.ns = {row["operation"]: float(row["ns"]) for row in self.costs}
        self.table = read_table(program)
        self.sizes = sorted({key[3] for key in self.table})
        self.rates = sorted({key[2] for key in self.table})

    def work(self, method, d, peers, share=SHARE):
        return 1e-6 * sum(self.ns[name] * count for name, count in
                          operations(method, d, peers, share))

    def ms(self, network, d, rate, peers, method, works=False):
        found = self.table[network, d, rate, peers, method]
        if found is None:
            return None
        return found[0] + (self.work(method, d, peers) if works else 0)

    def faster(self, network, d, rate, pair, works):
        """Sizes at which pair[0] takes less time, as "8 to 64"."""
        runs = []
        for p in self.sizes:
            one, other = (self.ms(network, d, rate, p, m, works) for m in pair)
            if one is None or other is None or one >= other:
                runs.append(None)
            else:
                runs.append(p)
        found = [p for p in runs if p]
        if not found:
            return "never"
        whole = runs[runs.index(found[0]):runs.index(found[-1]) + 1]
        if None in whole:
            return ", ".join(map(str, found))
        return (f"{found[0]}" if len(found) == 1 else
                f"{found[0]} to {found[-1]}")


def figure(value):
    return "-" if value is None else f"{value:.3g}" if value < 1000 \
        else f"{value:.0f}"


def rows(header, lines):
    yield "| " + " | ".join(map(str, header)) + " |"
    yield "|" + "---|" * len(header)
    for line in lines:
        yield "| " + " | ".join(map(str, line)) + " |"
    yield ""


def times(page, d):
    yield from rows(["Gbit/s", "method", *page.sizes], [
        [rate, m, *(figure(page.ms("machines", d, rate, p, m))
                    for p in page.sizes)]
        for rate in page.rates for m in METHODS])


def works(page, d):
    yield from rows(["method", *page.sizes], [
        [m, *(figure(None if page.ms("machines", d, 1, p, m) is None else
                     page.work(m, d, p)) for p in page.sizes)]
        for m in METHODS])


def sent(page, d):
    def megabytes(p, m):
        found = page.table["machines", d, 1, p, m]
        return None if found is None else found[1] * 1e-6
    yield from rows(["method", *page.sizes], [
        [m, *(figure(megabytes(p, m)) for p in page.sizes)] for m in METHODS])


PAIRS = [(m, "dense ring") for m in METHODS[1:]] + [
    ("gs-SGD", "gTop-k"), ("two-level", "lists of all"),
    ("moniqua4 pairs", "two-level")]


def crossings(page, d, network):
    def cell(pair, rate):
        return " / ".join(page.faster(network, d, rate, pair, works)
                          for works in (False, True))
    yield from rows(["faster at, peers"] + [f"{r} Gbit/s" for r in page.rates],
                    [[f"{a} than {b}", *(cell((a, b), r) for r in page.rates)]
                     for a, b in PAIRS])


def beside(page):
    d, dense = 25000000, 124000000

    def gain(p, rate, step, works):
        return 100 * ((step + page.ms("machines", d, rate, p, "dense ring",
                                      works)) /
                      (step + page.ms("machines", d, rate, p, "two-level",
                                      works)) - 1)

    def ratio(p, works):
        return (page.ms("even", d, 1, p, "gTop-k", works) /
                page.ms("even", d, 1, p, "gs-SGD", works))
    ring = {rate: page.ms("even", dense, rate, 128, "dense ring")
            for rate in page.rates}
    yield from rows(["paper", "its figure", "ours", "what differs"], [
        ["gs-SGD over gTop-k, throughput", "1.3 to 3.1",
         "; ".join(f"{p} peers {ratio(p, False):.2f}, with arithmetic "
                   f"{ratio(p, True):.2f}" for p in (8, 16, 32)),
         "1 Gbit/s, one peer a machine, 25 million, nothing computed between. "
         "Ours is a table of 5 rows of 4 k, there and back, and 4 k exact "
         "values, there and back, beside lists of k; the paper's network, "
         "models and table, and whether it asks for exact values, are not "
         "known to us"],
        ["two-level over prior systems", "25 to 40 %",
         "; ".join(f"steps of {s} ms {gain(128, 25, s, False):.0f} %, with "
                   f"arithmetic {gain(128, 25, s, True):.0f} %"
                   for s in STEPS),
         "128 peers, 25 Gbit/s, 25 million, over a dense ring; nothing is "
         "overlapped, here or there; theirs are V100s and whole systems, whose "
         "density and step times are not stated"],
        ["synchronous SGD on 128 nodes", "90 times one",
         "; ".join(f"{rate} Gbit/s: steps of {STEPS[-1]} ms "
                   f"{128 * STEPS[-1] / (STEPS[-1] + ring[rate]):.0f}, 90 from "
                   f"steps of {ring[rate] * 90 / 38:.0f} ms on"
                   for rate in (25, 100)),
         "124 million (VGG-A has 133) by a dense ring after the step, one peer "
         "a machine; the paper sends while it computes, on Aries. A step is "
         "one node's share of the batch"],
        ["tensors without RPC over gRPC", "25 times", "not in this model",
         "copies and calls are not charged, so that a link has no slower "
         "twin; what was measured of shared memory on one machine stands in "
         "[papers.md](papers.md#tensors-without-rpc-xue-et-al-shared-memory)"]])


def divided(page):
    d = 25000000
    alone = 1e-6 * page.ns["norms"] * d
    gather = (SITE - 1) * (IN_US * 1e-3 + 4 * LAYERS / SITE * 8 /
                           (10 * 25e9) * 1e3)
    return (f"PTO (`kith/lars_parts.h`): norms of 25 million weights and "
            f"gradients take {alone:.2f} ms on one core; divided by "
            f"{SITE} members of a site {alone / SITE:.2f} ms, and "
            f"{gather:.3f} ms for {LAYERS} rates to all at ten times 25 "
            f"Gbit/s. A layer of more than an eighth of the values would set "
            f"the pace.")


INTRO = """# Four papers, simulated from calibrated costs

Generated by `docs/make_papers_costs.py build/tests/unit/test_papers_costs docs`; a prediction, not a run. What is
measured, and what of it a simulator's run agrees with, stands in [papers.md](papers.md): T3.6 and T4.4 hold the same
code (`tests/support/round_costs.c`) against closed formulas and against the simulator's own time.

**Charged.** The network: the rounds of each method's schedule, the bytes of its record, the law of links (latency
and rate), a sender that waits for the answer. Machines of 8 peers with one line of the rate given,
which all messages that leave share, 25 us; inside ten times that and 5 us. Arithmetic: operations times what they take
on **one core** of the machine that ran the benchmarks named at the end, of float32, as the code is now: gTop-k and gs-SGD choose by
offering every value to a list (12.9 ns), where top-k's kernel takes 0.65, so that 306 ms of 25 million values could go.

**Not charged.** A model's own step, and anything that overlaps with it; sealing (AEAD), copies, packing but
moniqua4's, clearing and gathering vectors; what is sent again, losses, stragglers, starting up; what is learnt in a
step, which differs: pairs and update sets are no all-reduce. Nothing here is a GPU's.

Methods: **dense ring** `allreduce-ring`; **lists of all** the largest 1 % of each to everybody (up to 512 links);
**gTop-k**, **gs-SGD** the largest 1 % along a tree; **two-level** sites of 8, 1 % by MSTopK between them; **moniqua4
pairs** a random pair in each step; **update sets** in random pairs every 15 steps, a 15th of it a step, of 1 % (0.5 %
for 32 peers, 0.125 % for 64: a log must fit three models; more than 64 are refused). A dash: refused by name.

**Read off it**, in machines of 8. By the network alone gTop-k, pairs and update sets beat the dense ring at every size
that they take, two-level from 16 peers to 512 or more, lists of all up to 16, gs-SGD up to 64 or more. On one core
arithmetic takes that back from lists of all, gTop-k and update sets at 10 Gbit/s and above, and from gs-SGD everywhere:
two-level, which chooses from an eighth of the values, stays ahead at most sizes, and pairs at most up to 25 Gbit/s.

![time of a step over peers](papers_costs.svg)
"""


def page_text(page):
    yield INTRO
    for d in NAMES:
        yield f"## {NAMES[d]} values: ms a step, network alone\n"
        yield from times(page, d)
    for d in NAMES:
        yield f"## {NAMES[d]} values: ms of arithmetic a step, one core\n"
        yield from works(page, d)
    yield "## MB that a peer sends in a step, in the mean\n"
    for d in NAMES:
        yield f"{NAMES[d]} values:\n"
        yield from sent(page, d)
    yield "## Where one is faster than another\n"
    yield ("Peers of 8, 16, ... 1,024 at which it is; first by the network "
           "alone, then with arithmetic on one core.\n")
    for network, what in (("machines", "machines of 8"),
                          ("even", "one peer a machine")):
        for d in NAMES:
            yield f"{NAMES[d]} values, {what}:\n"
            yield from crossings(page, d, network)
    yield "## The papers' figures beside these\n"
    yield from beside(page)
    yield divided(page) + "\n"
    yield "## Calibration\n"
    yield ("Medians, nanoseconds of CPU time on one core of an AMD EPYC that "
           "others shared (`docs/papers_costs.csv`).\n")
    yield from rows(["operation", "ns", "of", "program", "series"], [
        [row["operation"], row["ns"], row["of"],
         f"`bench/{row['program']}.c`", row["series"]] for row in page.costs])


# ---- the figure

LEFT, UPPER, WIDE, HIGH, GAP_X, GAP_Y = 60, 40, 210, 190, 22, 58
DECADES = (-3, 5)  # ms


def panel(page, column, row):
    rate = page.rates[column]
    x0, y0 = LEFT + column * (WIDE + GAP_X), UPPER + row * (HIGH + GAP_Y)
    low, high = DECADES

    def at(p, ms):
        across = math.log2(p / page.sizes[0]) / (len(page.sizes) - 1)
        up = (math.log10(ms) - low) / (high - low)
        return f"{x0 + across * WIDE:.1f},{y0 + HIGH - up * HIGH:.1f}"
    what = "with arithmetic, one core" if row else "network alone"
    yield (f'<rect x="{x0}" y="{y0}" width="{WIDE}" height="{HIGH}" '
           'fill="none" stroke="#999"/>')
    yield f'<text x="{x0}" y="{y0 - 6}">{rate} Gbit/s, {what}</text>'
    for decade in range(low, high + 1):
        y = y0 + HIGH - (decade - low) / (high - low) * HIGH
        yield (f'<path d="M{x0} {y:.1f}h{WIDE}" stroke="#ddd" '
               'stroke-width="0.5"/>')
        if column == 0:
            yield (f'<text x="{x0 - 6}" y="{y + 4:.1f}" text-anchor="end">'
                   f'{10.0 ** decade:g}</text>')
    for i, p in enumerate(page.sizes):
        if i % 2 == 0 or i == len(page.sizes) - 1:
            x = x0 + i / (len(page.sizes) - 1) * WIDE
            yield (f'<text x="{x:.1f}" y="{y0 + HIGH + 14}" '
                   f'text-anchor="middle">{p}</text>')
    for m in METHODS:
        points = [(p, page.ms("machines", 25000000, rate, p, m, row > 0))
                  for p in page.sizes]
        line = " ".join(at(p, ms) for p, ms in points if ms is not None)
        yield (f'<polyline points="{line}" fill="none" '
               f'stroke="{COLOURS[m]}" stroke-width="1.6"/>')


def picture(page):
    width = LEFT + len(page.rates) * (WIDE + GAP_X)
    height = UPPER + 2 * (HIGH + GAP_Y) + 10
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="11">')
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield (f'<text x="{LEFT}" y="16">ms a step over peers, 25 million values, '
           'machines of 8: a prediction</text>')
    for row in range(2):
        for column in range(len(page.rates)):
            yield from panel(page, column, row)
    for i, m in enumerate(METHODS):
        x, y = LEFT + i * 130, height - 12
        yield (f'<path d="M{x} {y - 4}h18" stroke="{COLOURS[m]}" '
               f'stroke-width="2"/><text x="{x + 23}" y="{y}">{m}</text>')
    yield "</svg>"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page = Page(sys.argv[1])
    for name, lines in (("papers_costs.md", page_text(page)),
                        ("papers_costs.svg", picture(page))):
        with open(os.path.join(sys.argv[2], name), "w",
                  encoding="utf-8") as file:
            file.write("\n".join(lines).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
