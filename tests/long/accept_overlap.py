"""Two peers that share gradients over 50 Mbit/s, whole and in buckets.

A step takes 400 ms, of which about two thirds are the way back; the gradient of
84,000 values takes 54 ms up the link and as long down. The same file runs in
the simulator and as two processes: what a step takes with whole gradients less
what it takes in buckets is the gain, and the simulator's is the prediction.

    python3 accept_overlap.py

Settings beside KITH and OUT of accept.py:
  STEPS    of a peer (60)
  LAYERS   of the model ([128, 128, 128, 128, 128, 10])
  BUCKETS  numbers of buckets to try, and of urgent ones (2,4,4:3)
"""
import os
import statistics

from accept import OUT, Table, kith, rows

STEPS = int(os.environ.get("STEPS", "60"))
BUCKETS = os.environ.get("BUCKETS", "2,4,4:3").split(",")
LAYERS = os.environ.get("LAYERS", "[128, 128, 128, 128, 128, 10]")
FILE = f"""name: overlap
seed: 1
peers: 2
stop: {{steps: {STEPS}}}
save: never
model: {{kind: mlp, layers: {LAYERS}}}
data: {{kind: gaussian, rows: 2000, spread: 0.2}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16}}
gossip: {{algorithm: sync-sgd}}
network: {{latency: 1ms, rate: 50Mbit}}
compute: {{step: 400ms}}
"""


def step_time(world, path, buckets):
    """Seconds from one step's gradient to the next one's, the median; loss."""
    count, _, urgent = buckets.partition(":")
    result = kith(world, path, f"gossip.buckets={count}",
                  f"gossip.urgent={urgent or 1}")
    times = [time for time, in rows(
        result, "SELECT time_s FROM marks JOIN mark_kinds USING(kind) "
        "WHERE name = 'attempt' AND peer = 0 ORDER BY time_s")]
    if len(times) != STEPS:
        raise SystemExit(f"{world}: {len(times)} triggers of {STEPS} steps")
    steps = [later - time for time, later in zip(times, times[1:])]
    return statistics.median(steps), result["loss"]["mean"]


def main():
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "overlap.yaml")
    with open(path, "w") as file:
        file.write(FILE)
    table = Table("T5.4: overlap on two processes at 50 Mbit/s")
    found = {(world, n): step_time(world, path, n)
             for world in ("sim", "lab") for n in ["1", *BUCKETS]}
    for (world, n), (step_s, _) in found.items():
        table.note(f"{world}, {n} buckets: step", f"{1e3 * step_s:.1f} ms")
    for n in BUCKETS:
        gains = [found[world, "1"][0] - found[world, n][0]
                 for world in ("sim", "lab")]
        print(f"T5.4 {n} buckets, gain of a step, of the predicted "
              f"{1e3 * gains[0]:.1f} ms: expected >= 0.7, measured "
              f"{gains[1] / gains[0]:.3f} ({1e3 * gains[1]:.1f} ms)")
        table.at_least(f"{n} buckets: gain / predicted", 0.7,
                       gains[1] / gains[0])
    losses = {loss for _, loss in found.values()}
    table.add("losses that differ", "0", str(len(losses) - 1),
              len(losses) == 1)
    table.end()


if __name__ == "__main__":
    main()
