#!/usr/bin/env python3
"""Counts what CONVENTIONS ask of a folder's C files.

    usage: measure.py [--check] TREE

For core, session, sim and peer: functions, assertions a function, how many of
them state a relation or an invariant, comment lines a code line. For the whole
tree: structs of more than four booleans, functions of more than seven
parameters, code lines (no blanks, comments or assertions). With --check, ends
with status 1 where a bound is missed, one line each.
"""
import os
import re
import sys

FOLDERS = {
    # folder: (assertions a function, comment lines a code line), 0: no bound
    "src/protocol/core": (1.0, 0.15),
    "src/protocol/session": (1.0, 0.15),
    "sim": (1.0, 0.15),
    "src/peer": (0, 0.15),
}
BOOLEANS, PARAMETERS = 4, 7
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*-- [^\n]*", re.S | re.M)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
ASSERT = re.compile(r"\b(?:KITH_ASSERT|KITH_DEBUG_ASSERT|_Static_assert)\s*(\((?:[^;]|\n)*?\));")
FUNCTION = re.compile(
    r"^(?!typedef|enum|struct \w+\s*\{|union|#|\s)[\w\s*]*?\b(\w+)\("
    r"([^;{}]*?)\)\s*\{", re.M)
# A type of function that another library has is not ours to shorten.
PARAMETER_LIST = re.compile(
    r"^[ ]*(?!return\b|else\b|typedef\b)(?:static |extern |inline |KITH_MUST_CHECK )*[a-z_][\w ]*[ *]+"
    r"\(?\*?(\w+)\)?\(([^(){};]*)\)\s*[;{]", re.M)
STRUCT = re.compile(r"\bstruct (\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}", re.S)
POINTER_ONLY = re.compile(r"^\(\s*!?[\w.>\-\[\]]+(\s*!=\s*NULL)?\s*\)$")


def sources(tree, folder, endings):
    for at, _, names in sorted(os.walk(os.path.join(tree, folder))):
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, tree), file.read()


def without_comments(text):
    """The text with comments blanked, lines kept."""
    text = TEXT.sub(lambda m: m.group(0) if "/" not in m.group(0)
                    else '""', text)
    return COMMENT.sub(lambda m: "\n" * m.group(0).count("\n"), text)


def code_lines(text):
    bare = ASSERT.sub("", without_comments(text))
    return sum(1 for line in bare.split("\n") if line.strip())


def comment_lines(text):
    masked = TEXT.sub('""', text)
    return sum(m.group(0).count("\n") + 1 for m in COMMENT.finditer(masked))


def states_a_relation(condition):
    return not POINTER_ONLY.match(condition.strip())


def folder_counts(tree, folder):
    functions = asserts = relations = code = comments = 0
    for _, text in sources(tree, folder, (".c",)):
        bare = without_comments(text)
        functions += sum(m.group(1) not in ("if", "for", "while", "switch")
                         for m in FUNCTION.finditer(bare))
        found = [m.group(1) for m in ASSERT.finditer(bare)]
        asserts += len(found)
        relations += sum(map(states_a_relation, found))
        code += code_lines(text)
        comments += comment_lines(text)
    return functions, asserts, relations, code, comments


def crowded_structs(tree):
    for top in ("include", "src", "sim"):
        for path, text in sources(tree, top, (".c", ".h")):
            for match in STRUCT.finditer(without_comments(text)):
                booleans = 0
                for line in re.findall(r"\bbool\s+([^;()]*);", match.group(2)):
                    booleans += line.count(",") + 1
                name = match.group(1)
                if booleans > BOOLEANS and "option" not in name:
                    yield path, name, booleans


def long_parameter_lists(tree):
    for top in ("include", "src", "sim"):
        for path, text in sources(tree, top, (".c", ".h")):
            for match in PARAMETER_LIST.finditer(without_comments(text)):
                count = match.group(2).count(",") + 1
                if count > PARAMETERS:
                    yield path, match.group(1), count


def main():
    check = "--check" in sys.argv
    trees = [a for a in sys.argv[1:] if a != "--check"]
    if len(trees) != 1:
        sys.exit(__doc__)
    tree, missed = trees[0], []
    print(f"{'folder':24}{'functions':>10}{'asserts':>9}{'each':>7}"
          f"{'relations':>11}{'comments':>10}")
    for folder, (asked, commented) in FOLDERS.items():
        functions, asserts, relations, code, comments = folder_counts(
            tree, folder)
        if functions == 0:
            continue
        each = asserts / functions
        share = relations / max(asserts, 1)
        per_line = comments / max(code, 1)
        print(f"{folder:24}{functions:10}{asserts:9}{each:7.2f}"
              f"{share:10.0%}{per_line:10.2f}")
        if each < asked:
            missed.append(f"{folder}: {each:.2f} assertions a function,"
                          f" {asked} asked")
        if asked and share < 0.5:
            missed.append(f"{folder}: {share:.0%} of the assertions state a"
                          " relation, half asked")
        if per_line < commented:
            missed.append(f"{folder}: {per_line:.2f} comment lines a code"
                          f" line, {commented} asked")
    for path, name, count in crowded_structs(tree):
        missed.append(f"{path}: struct {name} has {count} booleans,"
                      f" {BOOLEANS} allowed: an enum or a set of flags")
    for path, name, count in sorted(set(long_parameter_lists(tree))):
        missed.append(f"{path}: {name} takes {count} parameters,"
                      f" {PARAMETERS} allowed: an options struct")
    total = sum(code_lines(text) for top in ("include", "src", "sim")
                for _, text in sources(tree, top,
                                       (".c", ".h", ".cu", ".cuh", ".def",
                                        ".sql")))
    print(f"code lines in src, sim, include: {total}")
    for line in missed:
        print(line)
    sys.exit(1 if check and missed else 0)


if __name__ == "__main__":
    main()
