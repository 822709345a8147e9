"""The rows of algorithms.md, section 4, as a table of docs/validation.md.

Runs the tests that print "T<row> what ... expected E ... measured M", and writes
one line per row, test and kind of value (numbers in `what` taken for alike): the
values where there are few of them, else how many and how far apart at most,
relative to what is expected, absolute where that is 0. Fails where a test does.

usage: theory_table.py BUILD   (the folder with tests/unit and tests/property)
"""
import os
import re
import subprocess
import sys

TESTS = """unit/test_theory unit/test_topology unit/test_topology_rounds
unit/test_epidemic unit/test_taxonomy_consensus unit/test_running_sums
unit/test_rules_rounds unit/test_taxonomy_bias unit/test_taxonomy_noise
unit/test_async_spread unit/test_taxonomy_choco unit/test_compressors
unit/test_compressor_quality property/test_sim_theory unit/test_taxonomy_links
unit/test_taxonomy_equal unit/test_rules unit/test_rules_outer
unit/test_taxonomy_clipped""".split()
LINE = re.compile(r"^\s*T(\d+)\s+(.*?)[:,]?\s*\bexpected\s+(.*?),?\s+measured"
                  r"\s+(.*)$")
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
LAW = re.compile(r"measured / law ([0-9.]+)")
FEW = 3
MANY = 100
TINY = 1e-9


def lines_of(build, test):
    done = subprocess.run([os.path.join(build, "tests", test)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"{test}: exit {done.returncode}\n{done.stdout[-2000:]}")
    for line in done.stdout.split("\n"):
        found = LINE.match(line)
        if found:
            row, what, expected, measured = found.groups()
            yield int(row), what.strip(), expected, measured


def value(text):
    """The number that the text begins with, or None."""
    found = NUMBER.match(text)
    return float(found.group()) if found else None


def short(text):
    """Numbers to six digits, and no more than a phrase."""
    def rounded(found):
        text = found.group()
        return f"{float(text):.6g}" if len(text) > 8 else text
    return NUMBER.sub(rounded, re.sub(r"\s+", " ", text))[:90]


def against_law(group):
    """Where a literature's law stands beside: the span of measured / law."""
    found = [LAW.search(measured) for _, measured in group]
    if None in found:
        return ""
    ratios = sorted(float(one.group(1)) for one in found)
    return f"; measured / law {ratios[0]:.4f} to {ratios[-1]:.4f}"


def summary(group):
    if len(group) <= FEW:
        return (", ".join(short(expected) for expected, _ in group),
                "; ".join(short(measured) for _, measured in group))
    pairs = [(value(expected), value(measured)) for expected, measured in group]
    if any(None in pair for pair in pairs):
        return short(group[0][0]) + ", ...", short(group[0][1]) + ", ..."
    apart = max(abs(m - e) / (abs(e) if abs(e) > TINY else 1)
                for e, m in pairs)
    how = f"at most {apart:.1e} apart" if apart > 0 else "as printed, equal"
    return f"{len(group)} values", how + against_law(group)


def alike(what, many):
    """What is left of `what` without numbers and brackets; in a long list
    without its first word, a graph's name."""
    if many:
        what = what.partition(" ")[2]
    what = re.sub(r"\([^)]*\)", "", what)
    return re.sub(r"\s+", " ", NUMBER.sub("#", what))


def main():
    print("| row | test | what | expected | measured |\n|---|---|---|---|---|")
    rows = {}
    for test in TESTS:
        for row, *entry in lines_of(sys.argv[1], test):
            rows.setdefault((row, TESTS.index(test)), []).append(entry)
    for row, test in sorted(rows):
        entries, groups = rows[row, test], {}
        for entry in entries:
            key = alike(entry[0], len(entries) > MANY)
            groups.setdefault(key, []).append(entry)
        for key, group in groups.items():
            what = key if len(group) > FEW else group[0][0]
            expected, measured = summary([entry[1:] for entry in group])
            cells = [f"T{row}", TESTS[test], short(what), expected, measured]
            print("| " + " | ".join(cell.replace("|", "\\|")
                                    for cell in cells) + " |")


if __name__ == "__main__":
    main()
