"""The tables of docs/papers.md: what the named tests expect and measure.

    python3 papers.py          from the build folder, after make check

Runs the programs (some minutes) that print lines "T3.1 what: expected x, measured y", and prints
a table for each paper; WRITE=1 puts them into the page. Fails where a program
does.
"""
import os
import re
import subprocess
import sys

TOP = os.path.abspath(os.environ.get("srcdir", os.path.join(
    os.path.dirname(__file__), "..", "..")))
PAGE = os.path.join(TOP, "docs", "papers.md")
PROGRAMS = ("test_sketch", "test_sketch_recover", "test_top_list",
            "test_gtop_k", "test_gs_sgd", "test_gs_sgd_learns --all",
            "test_gs_sgd_costs", "test_ms_top_k", "test_two_level",
            "test_two_level_costs", "test_pieces", "test_lars_parts",
            "test_lars_site",
             "test_balance",
            "test_layer_schedule",
            "test_sync_sgd", "test_sync_sgd_buckets", "test_strips",
            "test_hand_over", "test_shared_models",
            "test_shared_vectors",
            "test_torn_copies --all", "integration/test_peer_sent",
            "bench/bench_tensors", "long/message_cost")
FOLDERS = {"test": "tests/unit", "integration": "tests", "long": "tests",
           "bench": "."}
LINE = re.compile(r"^\s*(T[3-6]\.\d+)\s+(.*?)[:\s]*expected\s+(.*), measured "
                  r"(.*)$")


def lines_of(program):
    name, *arguments = program.split()
    path = os.path.join(FOLDERS[re.split("[_/]", name)[0]], name)
    if not os.path.exists(path):
        print(f"papers: {path} is not there: make {path}")
        return []
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False,
                          env={**os.environ, "srcdir": TOP})
    # A prediction that is missed is a row, too.
    if done.returncode != 0 and (done.returncode != 1 or
                                 name != "long/message_cost"):
        sys.exit(f"papers: {path}: exit {done.returncode}")
    return [match.groups() for match in map(LINE.match,
                                            done.stdout.splitlines()) if match]


def main():
    tables = {}
    for program in PROGRAMS:
        for test, what, expected, measured in lines_of(program):
            tables.setdefault(test[:2], {})[test, what] = (
                f"| {test} | {what} | {expected} | {measured} | "
                f"`{program.removeprefix('bench/')}` |")
    if not tables:
        sys.exit(77)
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    for paper, rows in tables.items():
        table = "\n".join(["| test | what | expected | measured | by |",
                           "|---|---|---|---|---|", *rows.values()])
        print(table)
        text, count = re.subn(
            rf"(<!-- {paper} begins -->\n).*?(<!-- {paper} ends -->)",
            lambda m, table=table: f"{m[1]}\n{table}\n\n{m[2]}", text,
            flags=re.DOTALL)
        if count != 1:
            sys.exit(f"{PAGE}: no place for {paper}")
    if os.environ.get("WRITE") == "1":
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
