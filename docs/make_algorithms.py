#!/usr/bin/env python3
"""Makes docs/algorithms.md from what the algorithms declare.

    usage: make_algorithms.py KITH >docs/algorithms.md
"""
import json
import subprocess
import sys

HEAD = """# Algorithms

Made by `docs/make_algorithms.py` from `kith list algorithms --json`; `make check` holds it against the program. d = values of the model, deg = neighbours of a round.

| column | means |
|---|---|
| waits | `no`: nobody waits for anybody; `a round`: a round travels during the next step; `yes`: the step after a round waits for it |
| loss | a message that is lost for good leaves no bias behind |
| churn | a peer that leaves or restarts leaves no bias behind |
| graphs | `any`; `static`: something is kept for each neighbour; `tree`; or the rounds that are its own |
| one-way | links may have a direction |
| exact | the fixed point has no bias where the peers' data differ |
| sum | the sum of all models (or of weighted ones) changes by gradients alone |
| packs | takes `gossip.compressor`: C(d) |
| guard | takes `gossip.guard` |
| memory | vectors of d values beside the model |
| sends | of a peer in a round, or in an exchange of a pair |
| keys | of `gossip:` that it reads beside those of all |

| algorithm | paper | waits | loss | churn | graphs | one-way | exact | sum | packs | guard | memory | sends | keys |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def graphs(algorithm):
    if algorithm["pattern"] == "none":
        return "-"
    if algorithm["schedule"] is not None:
        return f"`{algorithm['schedule']}`"
    if algorithm["tree"]:
        return "tree"
    return "static" if algorithm["fixed_graph"] else "any"


def memory(algorithm):
    own, edge = algorithm["vectors"], algorithm["edge_vectors"]
    parts = [str(own)] if own > 0 or edge == 0 else []
    parts += [f"{edge} deg" if edge > 1 else "deg"] if edge > 0 else []
    return " + ".join(parts)


def row(algorithm):
    def yes(holds):
        return "y" if holds else "n"

    alone = algorithm["pattern"] == "none"
    waits = {"no": "no", "round": "a round", "strict": "yes"}
    cells = [f"`{algorithm['name']}`", algorithm["paper"] or "-",
             waits[algorithm["wait"]], yes(not algorithm["lossless"]),
             yes(not algorithm["no_churn"]), graphs(algorithm),
             yes(algorithm["directed"] or alone), yes(algorithm["exact"]),
             yes(algorithm["conserves_sum"]), yes(algorithm["compresses"]),
             yes(algorithm["guarded"]),
             memory(algorithm), algorithm["sends"], algorithm["keys"] or "-"]
    return "| " + " | ".join(cells) + " |"


def differences(listed):
    """(what differs, names), each text once."""
    texts = {}
    for algorithm in listed:
        if algorithm["differs"] is not None:
            texts.setdefault(algorithm["differs"], []).append(algorithm["name"])
    return texts.items()


def main():
    listed = json.loads(subprocess.run(
        [sys.argv[1], "list", "algorithms", "--json"],
        stdout=subprocess.PIPE, check=True).stdout)["algorithms"]
    print(HEAD)
    for algorithm in listed:
        print(row(algorithm))
    print("""
Where an algorithm is not its paper's, `kith list algorithms NAME` says so (`differs`):
""")
    for text, names in differences(listed):
        print(f"- {', '.join(f'`{name}`' for name in names)}: {text}.")
    print("""
`tests/oracle/` holds the rounds of the others, and of most of these as they differ, against their papers' equations in NumPy, step by step, to 1e-12.

Rounds of all-reduce are many to a step: n = 8 peers send 1.75 d in a step by ring, 1.75 d on average by tree, 3 d by doubling. Where it says 0.125 deg d the number is that of eight peers, and other
numbers follow from the defaults (`share` of sparta, gtop-k, sparse-loco, update-sets, two-level and gs-sgd, whose sketches and exact values are averaged, as are the shards and lists of two-level, of 2 sites of 4; `fragments` of streaming, `outer_every` of sparta-diloco, an average over its rounds).

What each of them computes is in the first comment of its file in `src/gossip/algorithm/`; [choosing.md](choosing.md) says which to take, [adding-an-algorithm.md](adding-an-algorithm.md) how to add one.""")


if __name__ == "__main__":
    main()
