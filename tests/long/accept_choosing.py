"""The tables of docs/choosing.md about links and churn, on workload W1.

Links: time to a loss of 0.6 where a model crosses the link in 0.05 to 100
steps; a larger model is a slower link. Churn: 12 crashes in 7.5 s of 8 peers,
each back after 0.3 to 0.6 s, against the same run without. Means of 5 seeds.

KITH and OUT are as in accept.py; OUT kept, an interrupted run goes on. WRITE=1
puts the tables into docs/choosing.md.
"""
import glob
import os
import re
import sqlite3
import subprocess
import sys

from accept import KITH, OUT, TOP, mean

PRESETS = os.path.join(TOP, "examples", "taxonomy")
SEEDS = 5
STEP_S, MODEL_BITS = 0.005, 8 * 28_456  # W1: 7,114 float32
LINKS = ["allreduce-ring", "d-psgd", "ad-psgd", "elastic-gossip", "gosgd",
         "choco-sgd", "local-sgd", "diloco", "noloco", "gasloc", "sparta"]
CROSSINGS = [0.05, 1, 10, 100]  # steps in which a model crosses the link
CHURN = ["ad-psgd", "elastic-gossip", "gosgd", "sgp", "swarm-sgd", "a2cid2",
         "swift", "sparta", "d-psgd", "local-sgd", "qg-dsgdm-n", "choco-sgd",
         "epidemic-learning", "epidemic-oracle", "matcha", "moshpit",
         "gossipgrad", "noloco", "gasloc", "diloco", "allreduce-ring", "d2",
         "gradient-tracking", "relaysgd", "running-sums"]
CRASHES = "faults=[" + ", ".join(
    f'{{at: {second}s, crash: "n(2)", restart: "uniform(300ms, 600ms)"}}'
    for second in range(1, 7)) + "]"


def sweep(folder, preset, *settings):
    """Runs of 5 seeds: {column: [values]}."""
    out = os.path.join(OUT, folder, preset)
    os.makedirs(out, exist_ok=True)
    line = [KITH, "sim", os.path.join(PRESETS, preset + ".yaml"), "--seeds",
            str(SEEDS), "--out", out]
    for setting in settings:
        line += ["--set", setting]
    done = subprocess.run(line, stdout=subprocess.DEVNULL, text=True,
                          stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(" ".join(line) + "\n" + done.stderr[-2000:])
    files = glob.glob(os.path.join(out, "*.db"))
    assert len(files) == 1, files
    database = sqlite3.connect(f"file:{files[0]}?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    rows = database.execute("SELECT * FROM runs ORDER BY seed").fetchall()
    assert len(rows) == SEEDS, (preset, len(rows))
    found = {key: [row[key] for row in rows] for key in rows[0].keys()}
    database.close()
    return found


def middle(values, text):
    """Its mean, or a dash where a run has none."""
    return ("-" if any(value is None for value in values)
            else text.format(mean(values)))


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head]] +
                     ["|" + "---|" * len(head)] +
                     ["| " + " | ".join(row) + " |" for row in rows])


def links():
    rows = []
    for preset in LINKS:
        line = [f"`{preset}`"]
        for crossing in CROSSINGS:
            rate = int(MODEL_BITS / (crossing * STEP_S))
            found = sweep(f"links-{crossing:g}", preset,
                          f"network.rate={rate}bit", "target_loss=0.6",
                          "evaluate=" + ("100ms" if crossing < 10 else "1s"))
            line.append(middle(found["time_to_target_s"], "{:.1f}"))
        line.append(middle(found["loss"], "{:.3f}"))
        line.append(middle([sent / 1e6 for sent in found["bytes_mean"]],
                           "{:.1f}"))
        print(" ".join(line), flush=True)
        rows.append(line)
    return table(["preset"] + [f"{crossing:g}" for crossing in CROSSINGS] +
                 ["loss at the end", "MB sent by a peer"], rows)


def churn():
    rows = []
    for preset in CHURN:
        calm = sweep("calm", preset, "save=250ms")
        rough = sweep("churn", preset, "save=250ms", CRASHES)
        line = [f"`{preset}`", middle(calm["loss"], "{:.3f}"),
                middle(rough["loss"], "{:.3f}"),
                middle(rough["consensus_distance"], "{:.2f}"),
                middle(calm["virtual_s"], "{:.1f}"),
                middle(rough["virtual_s"], "{:.1f}")]
        print(" ".join(line), flush=True)
        rows.append(line)
    return table(["preset", "loss, calm", "loss, churn",
                  "peers apart at the end, churn", "seconds, calm",
                  "seconds, churn"], rows)


def main():
    tables = {"links": links(), "churn": churn()}
    print("\n" + "\n\n".join(tables.values()))
    if os.environ.get("WRITE"):
        path = os.path.join(TOP, "docs", "choosing.md")
        with open(path, encoding="utf-8") as page:
            text = page.read()
        for name, lines in tables.items():
            text, count = re.subn(
                f"<!-- {name} begins -->.*<!-- {name} ends -->",
                lambda _, n=name, t=lines:
                    f"<!-- {n} begins -->\n\n{t}\n\n<!-- {n} ends -->",
                text, flags=re.S)
            assert count == 1, name
        with open(path, "w", encoding="utf-8") as page:
            page.write(text)


if __name__ == "__main__":
    main()
