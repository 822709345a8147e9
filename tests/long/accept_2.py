"""Acceptance 2: the simulator predicts what the lab does, on the same file.

The cost of a step is given (PERIOD): the simulator has no other machine to ask,
and the lab has to be able to keep it, eight peers on these cores."""
import os

from accept import (DATASET, DEMO, SEEDS, Table, kith, mean, need_dataset, rows,
                    summary)

need_dataset()
PATH = f"data.path={DATASET}"
PERIOD = "compute.step=" + os.environ.get("PERIOD", "20ms")
table = Table(f"Acceptance 2, {len(SEEDS)} seeds")


def attempts(result):
    return rows(result, "SELECT peer, attempts FROM peers ORDER BY peer")


def ratio(key):
    lab_sum = sum(key(r) for r in lab)
    return sum(key(r) for r in sim) / lab_sum


lab = [kith("lab", DEMO, f"seed={s}", PERIOD, PATH) for s in SEEDS]
sim = [kith("sim", DEMO, f"seed={s}", PERIOD, PATH) for s in SEEDS]
again = kith("sim", DEMO, f"seed={SEEDS[0]}", PERIOD, PATH)

gap = 100 * (mean(r["accuracy"]["averaged"] for r in sim) -
             mean(r["accuracy"]["averaged"] for r in lab))
table.at_most("|sim - lab| accuracy, points", 0.5, abs(gap), "{:.2f}")
same = sum(attempts(a) == attempts(b) for a, b in zip(lab, sim))
table.add("attempts per peer equal", f"{len(SEEDS)} seeds", f"{same} seeds",
          same == len(SEEDS))
done = ratio(lambda r: r["exchanges"]["done"])
table.add("completed exchanges, sim / lab", "0.95..1.05", f"{done:.4f}",
          0.95 <= done <= 1.05)
sent = ratio(lambda r: r["bytes"]["sent"])
table.add("bytes, sim / lab", "0.95..1.05", f"{sent:.4f}",
          0.95 <= sent <= 1.05)
table.add("trace hash repeats", "equal",
          "equal" if again["trace_hash"] == sim[0]["trace_hash"] else "differs",
          again["trace_hash"] == sim[0]["trace_hash"])
for name, runs in (("lab", lab), ("sim", sim)):
    table.note(f"{name}: done, refused, torn", " ".join(
        f"{r['exchanges']['done']}/{r['exchanges']['refused']}/"
        f"{summary(r, 'exchanges.torn'):.0f}" for r in runs))

# Bytes per completed exchange: two peers, exchanges far apart, so that every
# attempt completes at once; one is slower, so that they do not dial each other
# at the same moment. Two runs of different length take the handshakes away.
# Numbers in headers grow by a byte at 128 and 256: with these numbers no
# exchange falls where a few steps more or less would cross that.
PAIR = ("peers=2", "gossip.every=100", PATH, "assert=[]",
        "compute={step: 10ms, slow: [{peers: peer(1), by: 1.7}]}")


def per_exchange(world):
    short = kith(world, DEMO, *PAIR, "stop={steps: 250}")
    long = kith(world, DEMO, *PAIR, "stop={steps: 650}")
    number = long["exchanges"]["done"] - short["exchanges"]["done"]
    return (long["bytes"]["sent"] - short["bytes"]["sent"]) / number


pair = {world: per_exchange(world) for world in ("lab", "sim")}
table.add("bytes per completed exchange", f"{pair['lab']:.2f} (lab)",
          f"{pair['sim']:.2f} (sim)", pair["lab"] == pair["sim"])
table.end()
