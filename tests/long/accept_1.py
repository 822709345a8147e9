"""Acceptance 1: eight real peers learn Fashion-MNIST, beside the baselines.

  lab     examples/demo.yaml: 8 peers, batch 16, one exchange every 2 steps
  train   one process at batch 64 and equal samples
  sync    synchronous SGD at batch 128: `kith train` at batch 128 takes the
          same steps as 8 peers that average every gradient
  skewed  the lab with dirichlet(0.1), one exchange per step; its steps have a
          period (PACE) in which an exchange can end, because a trigger that
          finds one under way is skipped
"""
import os

from accept import DATASET, DEMO, SEEDS, Table, kith, mean, need_dataset, summary

need_dataset()
PATH = f"data.path={DATASET}"
PACE = "compute.step=" + os.environ.get("PACE", "16ms")
table = Table(f"Acceptance 1, {len(SEEDS)} seeds")


def averaged(results):
    return mean(r["accuracy"]["averaged"] for r in results)


def spread(results):
    return " ".join(f"{100 * r['accuracy']['averaged']:.2f}" for r in results)


lab = [kith("lab", DEMO, f"seed={s}", PATH) for s in SEEDS]
train = [kith("train", DEMO, f"seed={s}", "train.batch=64", PATH)
         for s in SEEDS]
sync = [kith("train", DEMO, f"seed={s}", "train.batch=128", PATH)
        for s in SEEDS]
# The demo's own assertion is about the even split.
skewed = [kith("lab", DEMO, f"seed={s}", "gossip.every=1",
               "data.split=dirichlet(0.1)", PACE, "assert=[]", PATH)
          for s in SEEDS]

table.note("lab, by seed", spread(lab))
table.note("train at 64, by seed", spread(train))
table.note("train at 128, by seed", spread(sync))
table.note("lab dirichlet(0.1), by seed", spread(skewed))
table.at_least("lab, averaged model", 0.872, averaged(lab))
table.at_least("lab - train at 64, points", -1.5,
               100 * (averaged(lab) - averaged(train)), "{:.2f}")
table.at_least("lab - synchronous at 128, points", -0.8,
               100 * (averaged(lab) - averaged(sync)), "{:.2f}")
table.at_least("dirichlet(0.1), averaged model", 0.855, averaged(skewed))
gap = mean(r["accuracy"]["averaged"] - r["accuracy"]["mean"] for r in skewed)
table.at_most("dirichlet(0.1), |averaged - mean|, points", 1.0, abs(100 * gap),
              "{:.2f}")
rate = mean(r["exchanges"]["done"] / r["steps"] for r in skewed)
table.note("dirichlet(0.1), exchanges done per own step", f"{rate:.3f}")
table.at_most("lab, longest run, s", 120, max(r["wall_s"] for r in lab),
              "{:.1f}")
parts = {p: sum(summary(r, f"cpu.{p}_s") for r in lab)
         for p in ("train", "aead", "socket", "other")}
whole = sum(parts.values())
for part, seconds in parts.items():
    if part == "other":
        table.at_most("CPU share: other", 0.25, seconds / whole, "{:.3f}")
    else:
        table.note(f"CPU share: {part}", f"{seconds / whole:.3f}")
table.note("CPU s per run", f"{whole / len(lab):.1f}")
table.end()
