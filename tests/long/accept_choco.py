"""T9 of algorithms.md, its last line: CHOCO-SGD on Fashion-MNIST.

Eight peers on a ring, iid, the demo's model and length, plain SGD: the largest
1 % of the differences lose at most 1 point to uncompressed D-PSGD after as many
steps, and are at most 2.5 % of its bytes.
"""
from accept import DATASET, DEMO, SEEDS, Table, kith, mean, need_dataset

need_dataset()
METHODS = {
    "D-PSGD": "{algorithm: dpsgd-atc, topology: ring}",
    "CHOCO-SGD": "{algorithm: choco, topology: ring, compressor: top-k, "
                 "density: 0.01, consensus: 0.02}",
}


def main():
    table = Table(f"T9, CHOCO-SGD at 1 %, {len(SEEDS)} seeds")
    accuracy, sent, steps = {}, {}, {}
    for name, gossip in METHODS.items():
        runs = [kith("sim", DEMO, f"seed={seed}", f"data.path={DATASET}",
                     "train.momentum=0", f"gossip={gossip}", "assert=[]")
                for seed in SEEDS]
        accuracy[name] = [100 * run["accuracy"]["averaged"] for run in runs]
        sent[name] = sum(run["bytes"]["sent"] for run in runs)
        steps[name] = sum(run["steps"] for run in runs)
        table.note(f"T9 {name}: accuracy, %",
                   ", ".join(f"{value:.2f}" for value in accuracy[name]))
    table.add("T9 steps", str(steps["D-PSGD"]), str(steps["CHOCO-SGD"]),
              steps["D-PSGD"] == steps["CHOCO-SGD"])
    table.at_least("T9 CHOCO-SGD - D-PSGD, points", -1.0,
                   mean(accuracy["CHOCO-SGD"]) - mean(accuracy["D-PSGD"]),
                   "{:+.2f}")
    table.at_most("T9 CHOCO-SGD / D-PSGD, bytes", 0.025,
                  sent["CHOCO-SGD"] / sent["D-PSGD"])
    table.end()


if __name__ == "__main__":
    main()
