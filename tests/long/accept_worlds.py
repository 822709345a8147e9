"""The simulator against the lab: ten files of links, ten of faults.

Links: wall time and exchanges, each the mean of the seeds, within 3 %, while
eight peers keep these cores less than 30 % busy. Faults: each assertion of a
file has the same verdict in both worlds, seed by seed. ONLY=NAME,... runs some
of the files."""
import os
import resource

from accept import OUT, SEEDS, TOP, Table, kith, mean, rows

# name: peers, steps, algorithm and topology, every, network
LINKS = {
    "quiet": (8, 300, "adpsgd", "random", 1, "latency: 5ms"),
    "lossy": (8, 300, "adpsgd", "random", 1,
              "latency: 2ms, jitter: 200us, loss: 0.01"),
    "far": (8, 1060, "adpsgd", "random", 2,
            "latency: 20ms, jitter: 4ms, loss: 0.05"),
    "ocean": (8, 1800, "adpsgd", "ring", 2, "latency: 50ms, jitter: 5ms"),
    "acid": (8, 1100, "acid", "ring", 1, "latency: 1ms, jitter: 200us"),
    "elastic": (8, 300, "elastic", "random", 1,
                "latency: 5ms, jitter: 500us, loss: 0.01"),
    "rounds": (8, 260, "dpsgd", "ring", 1, "latency: 5ms"),
    "rounds-lossy": (8, 260, "dpsgd", "ring", 1,
                     "latency: 1ms, jitter: 1ms, loss: 0.01"),
    "rounds-far": (8, 170, "dpsgd", "torus", 1,
                   "latency: 10ms, jitter: 2ms, loss: 0.05"),
    "push-sum": (8, 1050, "sgp", "one-peer-exponential", 1,
                 "latency: 1ms, jitter: 200us, loss: 0.01"),
}

# Eight machines are never in step, as simulated peers of one speed would be.
SLOW = ", ".join(f"{{peers: peer({i}), by: {1 + 0.01 * i:.2f}}}"
                 for i in range(1, 8))

DIGITS = """peers: 8
model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: data/digits}
train: {learning_rate: 0.05, momentum: 0.9, batch: 8}
network: {latency: 2ms, jitter: 200us}
compute: {step: 10ms}
evaluate: 500ms
"""
ASYNC = "gossip: {algorithm: adpsgd, every: 2, topology: random}"
ROUNDS = "gossip: {algorithm: dpsgd, topology: ring}"
PUSH = "gossip: {algorithm: sgp, topology: one-peer-exponential}"
# name: gossip, faults, assertions, some of which cannot hold
FAULTS = {
    "restart": (ASYNC, '{at: 1s, crash: "n(2)", restart: 1s}',
                ("finally accuracy >= 0.85", "finally live",
                 "always finite(model)")),
    "crash": (ASYNC, '{at: 1s, crash: "n(2)"}',
              ("finally accuracy >= 0.85", "finally live",
               "always accuracy >= 0.85")),
    "partition": (ASYNC,
                  '{at: 2s, for: 1s, partition: "peer(0..3) <-> peer(4..7)"}',
                  ("finally live",
                   "within 3s of partition.end consensus_distance < "
                   "1.2 * before")),
    "split": (ROUNDS,
              '{at: 1s, for: 1h, partition: "peer(0..3) <-> peer(4..7)"}',
              ("finally consensus_distance < 0.01", "always finite(model)")),
    "pause": (ROUNDS, '{at: 1s, for: 1s, pause: "peer(1)"}',
              ("finally accuracy >= 0.85", "finally live")),
    "slow": (ROUNDS, '{at: 1s, for: 2s, slow: "peer(3)", by: 5}',
             ("finally live", "finally accuracy >= 0.99")),
    "huge": (ASYNC, '{at: 1s, for: 500ms, huge: "peer(7)", by: 1e19}',
             ("finally accuracy >= 0.85", "finally live",
              "always consensus_distance < 1000")),
    "huge-rounds": (ROUNDS, '{at: 1s, for: 500ms, huge: "peer(7)", by: 1e19}',
                    ("finally accuracy >= 0.85", "finally live")),
    "push": (PUSH, '{at: 1s, crash: "peer(2)", restart: 1s}',
             ("finally accuracy >= 0.85", "finally live",
              "finally consensus_distance < 1e-6")),
    "many": (ASYNC, '{at: 1s, crash: "n(1)", restart: 500ms}\n'
             '  - {at: 2s, for: 500ms, pause: "peer(3)"}\n'
             '  - {at: 2s, for: 1s, partition: "peer(0..3) <-> peer(4..7)"}',
             ("finally accuracy >= 0.85", "finally live",
              "finally loss <= 0.001")),
}

table = Table(f"Both worlds, {len(SEEDS)} seeds")
only = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else None


def write(name, text):
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, f"{name}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: {name}\n{text}")
    return path


def run(path, world, seed, settings=()):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = kith(world, path, f"seed={seed}", *settings, expect=(0, 1))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result["cpu_s"] = (after.ru_utime + after.ru_stime - before.ru_utime -
                       before.ru_stime)
    return result


def apart(sim, lab):
    """Of means over the seeds, in percent."""
    return 100 * (mean(sim) / mean(lab) - 1)


def compare_links(name, peers, steps, algorithm, topology, every, network):
    path = write(name, f"""peers: {peers}
stop: {{steps: {steps}}}
model: {{kind: quadratic, dim: 2500}}
gossip: {{algorithm: {algorithm}, topology: {topology}, every: {every}}}
network: {{{network}}}
compute: {{step: 20ms, slow: [{SLOW}]}}
save: never
""")
    sim = [run(path, "sim", seed) for seed in SEEDS]
    lab = [run(path, "lab", seed) for seed in SEEDS]
    time = apart([r["virtual_s"] for r in sim], [r["wall_s"] for r in lab])
    done = apart(*([r["exchanges"]["done"] for r in runs]
                   for runs in (sim, lab)))
    busy = mean(r["cpu_s"] / r["wall_s"] / os.cpu_count() for r in lab)
    least = min(r["exchanges"]["done"] for r in sim + lab)
    table.note(f"{name}: exchanges, of cores",
               f"{least} {100 * busy:.0f} %")
    table.add(f"{name}: time, exchanges", "within 3 %",
              f"{time:+.1f} {done:+.1f} %", abs(time) <= 3 and abs(done) <= 3)


def verdicts(result):
    return rows(result, "SELECT assertion, held FROM verdicts ORDER BY 1")


def compare_faults(name, gossip, faults, assertions):
    lines = "".join(f'  - "{line}"\n' for line in assertions)
    path = write(name, f"""{DIGITS}{gossip}
stop: {{steps: 600}}
faults:
  - {faults}
assert:
{lines}""")
    settings = (f"data.path={TOP}/examples/data/digits",)
    pairs = [[verdicts(run(path, world, seed, settings))
              for world in ("sim", "lab")] for seed in SEEDS]
    for sim, lab in pairs:
        for ours, theirs in zip(sim, lab):
            if ours != theirs:
                print(f"  {name}: {ours[0]}: sim {ours[1]}, lab {theirs[1]}")
    same = sum(sim == lab for sim, lab in pairs)
    held = "".join(str(line[1]) for line in pairs[0][0])
    table.add(f"{name}: verdicts ({held})", f"{len(SEEDS)} alike",
              f"{same} alike", same == len(SEEDS))


for key, value in LINKS.items():
    if only is None or key in only:
        compare_links(key, *value)
for key, value in FAULTS.items():
    if only is None or key in only:
        compare_faults(key, *value)
table.end()
