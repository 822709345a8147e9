"""Eight peers with a model of 124 million parameters at 100 Mbit/s and 40 ms.

Steps take 0.11 s; half of the blocks of a moniqua4 message are 32 MB, 2.6 s on
the wire, so peers exchange every 64 steps, two at a time. All of it is scaled
down tenfold, model and rate, so that times stay as they are: first in the
simulator, which predicts, then with real processes and shaped links. Then a
small language model on the bundled text, exchanging as often, beside the same
in float32 over links that are as fast as they need to be.

    python3 accept_slow_link.py

Settings beside KITH, OUT and SEEDS of accept.py:
  PARTS   of sim, lab, loss (all)
  TEXT    plain text (../shared/data/tinyshakespeare.txt of the checkout)
  STEPS   of a peer in the lab (1000), and LOSS_STEPS of the language model (1000)
"""
import os
import statistics

from accept import OUT, SEEDS, TOP, Table, kith, summary

PARTS = os.environ.get("PARTS", "sim,lab,loss").split(",")
TEXT = os.environ.get("TEXT", os.path.join(
    TOP, "..", "shared", "data", "tinyshakespeare.txt"))
STEPS = int(os.environ.get("STEPS", "1000"))
LOSS_STEPS = int(os.environ.get("LOSS_STEPS", "1000"))
PEERS, PARAMETERS = 8, 12400000
SLOW = f"""name: slow-link
seed: 1
peers: {PEERS}
stop: {{steps: {STEPS}}}
save: never
model: {{kind: consensus, dim: {PARAMETERS}}}
gossip:
  {{algorithm: adpsgd, every: 64, exchanges: 2, wire: moniqua4, wire_share: 0.5}}
network: {{latency: 40ms, rate: 10Mbit}}
compute: {{step: 110ms}}
"""
TALK = f"""name: slow-loss
seed: 1
peers: {PEERS}
stop: {{steps: {LOSS_STEPS}}}
model: {{kind: gpt, depth: 4, heads: 4, width: 128, context: 64, vocabulary: 65}}
data: {{kind: text, path: {TEXT}}}
train:
  optimiser: adamw
  learning_rate: 0.0025
  beta2: 0.99
  schedule: cosine
  warmup: 100
  floor: 0.1
  batch: 2
gossip: {{algorithm: adpsgd, every: 64, exchanges: 2}}
network: {{latency: 40ms}}
compute: {{step: 110ms}}
"""


def written(name, text):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def times(table, world):
    result = kith(world, written("slow-link.yaml", SLOW))
    # An exchange at every step is two models.
    dense = PEERS * STEPS * 2 * 4 * PARAMETERS
    share = summary(result, "exchanges.done") / summary(result,
                                                        "exchanges.attempts")
    table.at_least(f"{world}: steps of the time", 0.945, result["utilisation"])
    table.at_least(f"{world}: exchanges / triggers", 0.80, share)
    table.at_least(f"{world}: float32 at every step / bytes", 100,
                   dense / result["bytes"]["sent"], "{:.0f}")
    return share


def loss(path, seed, *settings):
    return kith("sim", path, f"seed={seed}", *settings)["loss"]["mean"]


def losses(table):
    if not os.path.exists(TEXT):
        print(f"skipped: no text at {TEXT}")
        return
    path = written("slow-loss.yaml", TALK)
    dense = [loss(path, seed) for seed in SEEDS]
    packed = [loss(path, seed, "gossip.wire=moniqua4", "gossip.wire_share=0.5")
              for seed in SEEDS]
    for seed, a, b in zip(SEEDS, dense, packed):
        print(f"  seed {seed}: float32 {a:.4f}, moniqua4 x 0.5 {b:.4f}")
    ratio = statistics.fmean(packed) / statistics.fmean(dense)
    table.at_least("float32's loss / its loss", 0.98, 1 / ratio)


def main():
    table = Table("a slow link")
    shares = {world: times(table, world) for world in ("sim", "lab")
              if world in PARTS}
    if len(shares) == 2:
        table.at_least("lab's share of triggers / predicted", 0.97,
                       shares["lab"] / shares["sim"])
    if "loss" in PARTS:
        losses(table)
    table.end()


if __name__ == "__main__":
    main()
