"""Flows of the simulator beside SimGrid's.

    python3 accept_flows.py

50 random small platforms, whose flows end in tests/long/flow_times (sim/flows.c)
and in flow_times_simgrid.cpp (SimGrid, network model CM02, latency 0, no cross
traffic: max-min fair sharing alone); then 1,000 hosts of 1 Gbit/s with 40 MB for
random others, by turns RUNS (3) times each. Last the public program: 1,000 peers of
kith sim exchange models of 40 MB over 1 Gbit/s, whose values nobody has; the same
models, when its timeline says that they began, in SimGrid, by turns. kith sim does
all else that a run does meanwhile, and its requests and answers are flows, too.
Seconds are processor time: each is one thread. KITH, OUT are those of accept.py.
"""
import json
import os
import random
import resource
import statistics
import subprocess
import tempfile

from accept import TOP, Table, kith

RUNS = int(os.environ.get("RUNS", "3"))
PLATFORMS = 50
OURS = [os.path.abspath("tests/long/flow_times")]
SIMGRID = ["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0",
           "--log=root.thresh:error"]

LATENCY_NS = 1000
GOSSIP = """name: flows
seed: 1
peers: 1000
stop: {steps: 10}
model: {kind: none, dim: 10000000}
gossip: {algorithm: adpsgd, every: 1, topology: random}
compute: {step: 1s, spread: exponential}
network: {latency: 1us, rate: 1Gbit, sharing: fair}
"""


def text(capacities, flows):
    """What both programs read; flows: (start in ns, bytes, links)."""
    lines = [f"{len(capacities)} {len(flows)}", *map(str, capacities)]
    lines += [" ".join(map(str, (start, size, len(path), *path)))
              for start, size, path in sorted(flows)]
    return "\n".join(lines) + "\n"


def small(seed):
    """Hosts with a line out (2 h) and a line in (2 h + 1), in zones with a link
    for each ordered pair of them, all of their own speed."""
    draw = random.Random(seed)
    hosts, zones = draw.randint(2, 12), draw.randint(1, 3)
    capacities = [round(10 ** draw.uniform(6, 9))
                  for _ in range(2 * hosts + zones * zones)]
    flows = []
    for _ in range(draw.randint(5, 80)):
        one, other = draw.sample(range(hosts), 2)
        path = [2 * one, 2 * other + 1]
        if one % zones != other % zones:
            path.insert(1, 2 * hosts + zones * (one % zones) + other % zones)
        start = draw.choice((0, 10 ** 8, draw.randrange(10 ** 9)))
        flows.append((start, round(10 ** draw.uniform(4, 8)), path))
    return text(capacities, flows)


def large(flow_count, load, hosts=1000, size=40_000_000, capacity=125e6):
    """Flows come at random, so many that lines are busy for this share."""
    draw = random.Random(1)
    rate = load * hosts * capacity / size / 1e9
    flows, start = [], 0.0
    for _ in range(flow_count):
        start += draw.expovariate(rate)
        one, other = draw.sample(range(hosts), 2)
        flows.append((round(start), size, [2 * one, 2 * other + 1]))
    return text([capacity] * (2 * hosts), flows)


def run(command, platform):
    """Ends in ns, seconds."""
    done = subprocess.run(command, input=platform, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    return ([int(end) for end in done.stdout.split()],
            float(done.stderr.split()[1]))


def apart(platform, simgrid):
    """The largest relative difference of how long a flow takes."""
    links = int(platform.split()[0])
    starts = [int(line.split()[0])
              for line in platform.splitlines()[1 + links:]]
    ours, theirs = run(OURS, platform)[0], run(simgrid, platform)[0]
    return max(abs(a - b) / (b - start)
               for start, a, b in zip(starts, ours, theirs, strict=True))


def check_speed(table, simgrid):
    platform = large(5000, 0.5)
    table.at_most("1,000 hosts, 40 MB: largest difference of a flow's time",
                  0.01, apart(platform, simgrid), "{:.1e}")
    speeds = {"ours": [], "SimGrid": []}
    for _ in range(RUNS):
        for name, command in (("ours", OURS), ("SimGrid", simgrid)):
            ends, seconds = run(command, platform)
            speeds[name].append(len(ends) / seconds)
    for name, values in speeds.items():
        table.note(f"{name}: messages a second "
                   f"[{min(values):.0f}..{max(values):.0f}]",
                   f"{statistics.median(values):.0f}")
    table.at_least("ours / SimGrid", 10,
                   statistics.median(speeds["ours"]) /
                   statistics.median(speeds["SimGrid"]), "{:.1f}")


def models_of(timeline):
    """Of each model: start in ns, bytes, from, to, end; sorted. A connection
    carries one at a time: the next one starts where the last one has left."""
    with open(timeline, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    begun, models, left = {}, [], {}
    for event in events:
        if event.get("cat") != "message" or "model" not in event["name"]:
            continue
        at = round(1000 * event["ts"])
        if event["ph"] == "b":
            begun[event["id"]] = (at, event["pid"], event["args"])
        else:
            start, sender, args = begun.pop(event["id"])
            line = sender, args["to"]
            start = max(start, left.get(line, 0))
            left[line] = at - LATENCY_NS
            models.append((start, args["bytes"], *line, left[line]))
    assert not begun
    return sorted(models)


def check_program(table, folder, simgrid):
    """The public program, and its own models in SimGrid."""
    path = os.path.join(folder, "flows.yaml")
    timeline = os.path.join(folder, "timeline.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(GOSSIP)
    kith("sim", path, options=("--rows", "none", "--timeline", timeline,
                               "--window", "0..999"))
    models = models_of(timeline)
    platform = text([125e6] * 2000,
                    [(start, size, [2 * one, 2 * other + 1])
                     for start, size, one, other, _ in models])
    ours, theirs = [], []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        kith("sim", path, options=("--rows", "none"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours.append(len(models) / (after.ru_utime + after.ru_stime -
                                   before.ru_utime - before.ru_stime))
        ends, seconds = run(simgrid, platform)
        theirs.append(len(models) / seconds)
    apart_most = max(
        abs(end - their) / (their - start)
        for (start, *_, end), their in zip(models, ends, strict=True))
    table.note("kith sim: models of 40 MB", f"{len(models)}")
    table.at_most("kith sim / SimGrid, the same models: largest difference of "
                  "a model's time", 0.01, apart_most, "{:.1e}")
    for name, values in (("kith sim", ours), ("SimGrid", theirs)):
        table.note(f"{name}: models a second "
                   f"[{min(values):.0f}..{max(values):.0f}]",
                   f"{statistics.median(values):.0f}")
    table.at_least("kith sim / SimGrid, the same models", 10,
                   statistics.median(ours) / statistics.median(theirs),
                   "{:.1f}")


def main():
    table = Table("Flows beside SimGrid's CM02")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "flow_times_simgrid")
        subprocess.run(["c++", "-O2", "-std=c++17", "-o", program,
                        os.path.join(TOP, "tests/long/flow_times_simgrid.cpp"),
                        "-lsimgrid"], check=True)
        simgrid = [program, *SIMGRID]
        worst = max(apart(small(seed), simgrid)
                    for seed in range(1, PLATFORMS + 1))
        table.at_most(f"{PLATFORMS} small platforms: largest difference of a "
                      f"flow's time", 0.01, worst, "{:.1e}")
        check_speed(table, simgrid)
        check_program(table, folder, simgrid)
    table.end()


if __name__ == "__main__":
    main()
