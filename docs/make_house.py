#!/usr/bin/env python3
"""Draws the house from the build: docs/house.svg.

    usage: docs/make_house.py BUILD >docs/house.svg

A box is an archive of BUILD: its folders, their code lines, and what each
holds (the first sentence of HOLDS). An arrow says that the archive needs a
symbol which the other one defines; only arrows that no longer way explains are
drawn. A row needs nothing of its own or a higher row, so the picture cannot be
drawn when archives need each other in a circle.
"""
import collections
import glob
import html
import os
import re
import subprocess
import sys

HOLDS = {
    "cli": "commands: options, names, printing",
    "report": "pages and tables made of runs",
    "lab": "many peers, one machine, one launcher",
    "library": "libkith: anyone's loop as a peer",
    "ipsec_mb": "AES-GCM by ipsec-mb",
    "peer": "one real peer: sockets and threads",
    "sim": "the same node in virtual time",
    "plan": "closed forms of speed and memory",
    "keys": "keys and certificates on disk",
    "rundb": "run databases, recordings, sweeps",
    "worker": "the queue that owns a peer's vectors",
    "experiment": "the file, its checks and faults",
    "graph": "a model's operations and memory",
    "model": "models and optimisers",
    "data": "data sets, splits, batches",
    "session": "handshake, records, certificates",
    "core": "the node: events in, effects out",
    "gossip": "algorithms, compressors, guards, graphs",
    "backend": "kernels: naive, cpu, cuda",
    "wire": "message headers as bytes",
    "base": "errors, random streams, text",
}
WIDTH, HEIGHT, GAP, RISE, EDGE = 244, 78, 22, 50, 12
COLOURS = {"src/protocol": "#dbe9f6", "src/gossip": "#e2f0d9",
           "src/training": "#fdebd3", "src/base": "#eeeeee",
           "src/experiment": "#f3e3f1", "src/results": "#e4e0f4",
           "sim": "#d9f0ee"}


def symbols(archive, *flags):
    text = subprocess.run(["nm", *flags, archive], check=True,
                          capture_output=True, text=True).stdout
    return {line.split()[-1] for line in text.splitlines()
            if line and not line.endswith(":")}


def folders_of(top, name):
    """The folders of an archive's sources, out of the build lists."""
    for list_file in glob.glob(f"{top}/src/*/local.mk") + [f"{top}/sim/local.mk"]:
        with open(list_file, encoding="utf-8") as file:
            text = file.read()
        found = re.search(rf"^libkith_{name}_a_SOURCES =(.*?)(?:\n\n|\n\w|\Z)",
                          text.replace("\\\n", " "), re.M | re.S)
        if found:
            return sorted({os.path.dirname(p) for p in found.group(1).split()})
    sys.exit(f"make_house.py: no build list has libkith_{name}.a")


def code_lines(top, folder):
    total = 0
    for path in glob.glob(f"{top}/{folder}/*.[ch]"):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        total += sum(1 for line in text.split("\n") if line.strip())
    return total


def needed(archives):
    has = {n: symbols(a, "-g", "--defined-only") for n, a in archives.items()}
    wants = {n: symbols(a, "-u") for n, a in archives.items()}
    return {n: {m for m in archives if m != n and wants[n] & has[m] - has[n]}
            for n in archives}


def rows_of(needs):
    """Row of each archive: one above the highest that it needs."""
    row = {}

    def place(name, above):
        if name in above:
            sys.exit("make_house.py: a circle: " + " ".join((*above, name)))
        if name not in row:
            row[name] = 1 + max((place(m, (*above, name))
                                 for m in needs[name]), default=-1)
        return row[name]
    for name in needs:
        place(name, ())
    return row


def direct(needs):
    """Arrows that no longer way explains."""
    def reach(name):
        return needs[name].union(*(reach(m) for m in needs[name]))
    return {(n, m) for n in needs for m in needs[n]
            if not any(m in reach(k) for k in needs[n] if k != m)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    archives = {re.sub(r".*libkith_(.*)\.a", r"\1", path): path
                for path in sorted(glob.glob(sys.argv[1] + "/libkith_*.a"))}
    archives.pop("libcrypto", None)  # The session's second provider of AEAD.
    if not archives:
        sys.exit(f"make_house.py: no archives in {sys.argv[1]}: build first")
    needs = needed(archives)
    row = rows_of(needs)
    by_row = collections.defaultdict(list)
    for name in sorted(archives, key=lambda n: (row[n], n)):
        by_row[row[name]].append(name)
    widest = max(map(len, by_row.values()))
    width = widest * (WIDTH + GAP) + 2 * EDGE
    height = len(by_row) * (HEIGHT + RISE) + 2 * EDGE
    at = {}
    for level, names in by_row.items():
        left = (width - len(names) * (WIDTH + GAP) + GAP) / 2
        for i, name in enumerate(names):
            at[name] = (left + i * (WIDTH + GAP),
                        height - EDGE - (level + 1) * (HEIGHT + RISE) + RISE)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
          f'height="{height}" font-family="sans-serif" font-size="12">')
    print('<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" '
          'markerWidth="7" markerHeight="7" orient="auto">'
          '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>')
    print(f'<rect width="{width}" height="{height}" fill="white"/>')
    for name, other in sorted(direct(needs)):
        x1, y1 = at[name][0] + WIDTH / 2, at[name][1] + HEIGHT
        x2, y2 = at[other][0] + WIDTH / 2, at[other][1]
        bend = (y2 - y1) / 2
        print(f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} '
              f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}" fill="none" '
              'stroke="#999" stroke-width="1.2" marker-end="url(#a)"/>')
    for name, (x, y) in at.items():
        folders = folders_of(top, name)
        lines = sum(code_lines(top, f) for f in folders)
        colour = next((c for f, c in COLOURS.items()
                       if folders[0].startswith(f)), "#fafafa")
        shown = " ".join([folders[0]] + [os.path.basename(f) + "/"
                                         for f in folders[1:]])
        print(f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" '
              f'height="{HEIGHT}" rx="6" fill="{colour}" stroke="#888"/>')
        for drop, size, weight, text in (
                (22, 15, "bold", name), (41, 11, "normal", HOLDS.get(name, "")),
                (57, 7 if len(shown) > 60 else 9 if len(shown) > 40 else 11, "normal", shown),
                (71, 10, "normal", f"{lines} code lines")):
            print(f'<text x="{x + WIDTH / 2:.0f}" y="{y + drop:.0f}" '
                  f'text-anchor="middle" font-size="{size}" '
                  f'font-weight="{weight}">{html.escape(text)}</text>')
    print("</svg>")


if __name__ == "__main__":
    main()
