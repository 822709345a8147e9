"""What guard clip costs after a partition, a restart and a slow peer.

The bundled digits in the simulator, clip beside none, seeds in pairs. A fault
lasts for half of the run: two halves that do not hear each other; two peers
that crash and come back with a save that is as old; a peer that is ten times
slower. Asked: mean accuracy with the guard within 1.0 point of that without,
and the distance of the models from their mean below 1.2 times what it was in
the second before the fault, from its end on; the time is told.

Then, with the guard alone, two of ten that lie beside the same two that are
cut off for four of every six seconds: nobody gains by silence what it would not have
otherwise. Told, not asked.

    python3 accept_heal.py [parted] [restarted] [slow] [away]

KITH, OUT and SEEDS are those of accept.py; SPLITS are both by default.
"""
import os
import statistics
import sys

from accept import OUT, SEEDS, TOP, Table, kith, rows

EXPERIMENT = f"""name: heal
seed: 1
peers: 16
stop: {{epochs: 60}}
model: {{kind: mlp, layers: [64, 32, 10]}}
data: {{kind: idx, path: {TOP}/examples/data/digits}}
train: {{learning_rate: 0.05, momentum: 0.9, batch: 16}}
gossip: {{algorithm: dpsgd}}
network: {{latency: 200us, rate: 1Gbit}}
compute: {{step: 50ms}}
evaluate: 100ms
"""
# The run takes 18 s: rounds wait a second or so before they leave out who is
# silent, which must be little beside a fault.
BEGIN_S, LAST_S, BEFORE_S = 4.5, 9, 1
WITHIN, FALLS = 1.0, 1.2
# peers, algorithm, topology, every: each has clip where the file names none.
GRAPHS = ((10, "adpsgd", "random", 2), (10, "dpsgd", "complete", 1),
          (10, "local-sgd", "complete", 4), (16, "dpsgd", "torus", 1),
          (16, "dpsgd-atc", "hypercube", 1), (16, "diloco", "hypercube", 4))
FAULTS = {
    "parted": 'partition: "peer(0..{half}) <-> peer({next}..{last})", for: 9s',
    "restarted": "crash: peer({half}..{next}), restart: 9s",
    "slow": "slow: peer({half}), by: 10, for: 9s",
}
SPLITS = os.environ.get("SPLITS", "iid;dirichlet(0.1)").split(";")
KINDS = ("scale", "alie", "dissensus", "ride", "ascent")
CUT = ", ".join(f"{{at: {2 + 6 * k}s, for: 4s, "
                'partition: "peer(0..7) <-> peer(8..9)"}' for k in range(6))


def file_of_experiment():
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "heal.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(EXPERIMENT)
    return path


def healed(result):
    """Seconds from the fault's end until the distance is as before; None."""
    end = BEGIN_S + LAST_S
    distances = rows(result, "SELECT time_s, consensus_distance FROM series "
                     "WHERE peer IS NULL ORDER BY time_s")
    before = statistics.fmean(d for t, d in distances
                              if BEGIN_S - BEFORE_S <= t < BEGIN_S)
    return next((t - end for t, d in distances
                 if t >= end and d < FALLS * before), None)


def run(path, graph, split, guard, seed, fault, *settings):
    peers, algorithm, topology, every = graph
    return kith("sim", path, f"seed={seed}", f"peers={peers}",
                f"data.split={split}", f"gossip.algorithm={algorithm}",
                f"gossip.topology={topology}", f"gossip.every={every}",
                f"gossip.guard={guard}", f"faults=[{fault}]", *settings)


def in_words(times):
    if None in times:
        return "not to the end"
    return f"{max(times):.2f} s"


def heals(table, path, name):
    for graph in GRAPHS:
        for split in SPLITS:
            half = graph[0] // 2 - 1
            fault = "{at: 4500ms, " + FAULTS[name].format(
                half=half, next=half + 1, last=graph[0] - 1) + "}"
            gains, times = [], {"none": [], "clip": []}
            for seed in SEEDS:
                means = {}
                for guard, found in times.items():
                    result = run(path, graph, split, guard, seed, fault,
                                 "save=4s")
                    means[guard] = 100 * result["accuracy"]["mean"]
                    found.append(healed(result))
                    os.unlink(result["database"])
                gains.append(means["clip"] - means["none"])
            what = f"{name}: {graph[1]}, {graph[2]} of {graph[0]}, {split}"
            table.at_least(what, -WITHIN, statistics.fmean(gains), "{:+.2f}")
            table.add("  as near as before within, at most", "",
                      f"{in_words(times['clip'])}, none "
                      f"{in_words(times['none'])}",
                      None if None not in times["clip"] else False)


def honest(result):
    """Mean accuracy of the eight that do not lie."""
    last = rows(result, "SELECT accuracy, max(time_s) FROM series WHERE "
                "peer < 8 AND accuracy IS NOT NULL GROUP BY peer")
    os.unlink(result["database"])
    return 100 * statistics.fmean(accuracy for accuracy, _ in last)


def away(table, path):
    for graph in ((10, "dpsgd", "complete", 1), (10, "adpsgd", "random", 2)):
        for split in SPLITS:
            for kind in KINDS:
                lie = f"{{at: 20ms, hostile: peer(8..9), kind: {kind}}}"
                both = [statistics.fmean(
                    honest(run(path, graph, split, "clip", seed, fault,
                               "stop.epochs=80", "evaluate=end"))
                    for seed in SEEDS) for fault in (lie, f"{lie}, {CUT}")]
                table.note(f"{graph[1]}, {split}, {kind}: there, often away",
                           f"{both[0]:.1f}, {both[1]:.1f}")


def main():
    asked = sys.argv[1:] or [*FAULTS, "away"]
    table = Table("Guard clip after a partition, a restart and a slow peer")
    path = file_of_experiment()
    for name in FAULTS:
        if name in asked:
            heals(table, path, name)
    if "away" in asked:
        away(table, path)
    table.end()


if __name__ == "__main__":
    main()
