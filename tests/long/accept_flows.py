"""Flows of the simulator beside SimGrid's.

    python3 accept_flows.py

50 random small platforms, whose flows end in tests/long/flow_times (sim/flows.c)
and in flow_times_simgrid.cpp (SimGrid, network model CM02, latency 0, no cross
traffic: max-min fair sharing alone); then 1,000 hosts of 1 Gbit/s with 40 MB for
random others, by turns RUNS (3) times each. Last the public program: 1,000 peers
of kith sim exchange models of 40 kB over 1 Mbit/s, which are flows of 40 MB over
1 Gbit/s a thousand times smaller; it does all else that a run does, and its
requests and answers are flows, too. Seconds are processor time: each is one
thread. KITH, OUT are those of accept.py.
"""
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

GOSSIP = """name: flows
seed: 1
peers: 1000
stop: {steps: 10}
model: {kind: consensus, dim: 10000}
gossip: {algorithm: adpsgd, every: 1, topology: random}
compute: {step: 1s, spread: exponential}
network: {latency: 1ms, rate: 1Mbit, sharing: fair}
evaluate: end
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
    theirs = statistics.median(speeds["SimGrid"])
    table.at_least("ours / SimGrid", 10,
                   statistics.median(speeds["ours"]) / theirs, "{:.1f}")
    return theirs


def check_gossip(table, folder, theirs):
    path, trace = os.path.join(folder, "flows.yaml"), os.path.join(folder, "t")
    with open(path, "w", encoding="utf-8") as file:
        file.write(GOSSIP)
    kith("sim", path, options=("--rows", "none", "--trace", trace))
    with open(trace, encoding="utf-8") as file:
        kinds = [line.split(" < ")[1].split()[0] for line in file
                 if " < " in line]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kith("sim", path, options=("--rows", "none"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime + after.ru_stime -
               before.ru_utime - before.ru_stime)
    models = kinds.count("model")
    table.note("kith sim: models alone a second", f"{models / seconds:.0f}")
    table.note("kith sim: messages a second, each a flow",
               f"{len(kinds) / seconds:.0f}")
    table.note("kith sim / SimGrid, models alone",
               f"{models / seconds / theirs:.1f}")
    table.at_least("kith sim / SimGrid, messages", 10,
                   len(kinds) / seconds / theirs, "{:.1f}")


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
        check_gossip(table, folder, check_speed(table, simgrid))
    table.end()


if __name__ == "__main__":
    main()
