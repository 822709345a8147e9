"""T2.3: kith plan beside kith sim over a grid; see accept_plan.sh."""
import itertools
import json
import os
import subprocess
import sys
import tempfile

KITH = os.path.abspath(os.environ.get("KITH", "./kith"))
EXPERIMENT = """name: grid
peers: 16
seed: 1
stop: {steps: 200}
model: {kind: quadratic, dim: 25000}
gossip: {algorithm: dpsgd}
compute: {step: 10ms}
network: {latency: 1ms, rate: 80Mbit}
evaluate: end
"""
WIRES = "float32", "bfloat16", "int8"
GRAPHS = {1: "one-peer-exponential", 2: "ring", 4: "torus"}
INTERVALS = 1, 2, 4
ALGORITHMS = {"dpsgd-atc": 0, "dpsgd": 1}  # o of G2
PUSHES = "sgp", "gosgd", "gossip-push"
PUSH_INTERVALS = 1, 2, 3, 4
# Partners drawn by chance refuse where they are busy: graph, least share of
# what is planned.
DRAWN = {"ring": .7, "complete": .65}
WITHIN = .05


def run(command, settings):
    sets = [word for key, value in settings.items()
            for word in ("--set", f"{key}={value}")]
    done = subprocess.run([KITH, command, "grid.yaml", "--json", *sets,
                           *(("--rows", "none") if command == "sim" else ())],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kith {command} {settings}: {done.stderr}")
    return json.loads(done.stdout)


def cell(sharing, algorithm, wire, degree, every):
    """Predicted, at most, simulated; seconds of a step."""
    settings = {"gossip.algorithm": algorithm, "gossip.wire": wire,
                "gossip.topology": GRAPHS[degree], "gossip.every": every,
                "network.sharing": sharing}
    figures = run("plan", settings)["figures"]
    found = run("sim", settings)
    low = figures["step"]["value"]
    high = figures.get("step_most", figures["step"])["value"]
    return low, high, found["virtual_s"] * found["peers"] / found["steps"]


def compare(sharing):
    """Worst distance of any cell from G2, and how many lie out of bounds: those
    of fair lines are G2 itself."""
    broken, worst = 0, 0
    print(f"network.sharing: {sharing}\n"
          "o  wire      f  tau   G2, ms  at most  simulated  off G2")
    grid = itertools.product(ALGORITHMS, WIRES, GRAPHS, INTERVALS)
    for algorithm, wire, degree, every in grid:
        low, high, found = cell(sharing, algorithm, wire, degree, every)
        high = low if sharing == "fair" else high
        error = found / low - 1
        well = low * (1 - WITHIN) <= found <= high * (1 + WITHIN)
        broken += not well
        worst = max(worst, abs(error))
        print(f"{ALGORITHMS[algorithm]}  {wire:<8}  {degree}  {every:>3}  "
              f"{1e3 * low:>7.2f}  {1e3 * high:>7.2f}  {1e3 * found:>9.2f}  "
              f"{100 * error:>+5.1f} %{'' if well else '  BROKEN'}")
    return broken, worst


def pushes(graph, least, algorithms, wires):
    """Bytes of a step, simulated beside planned: how many cells are out of
    bounds, and the furthest of them."""
    broken, furthest = 0, 0
    print(f"pushes, {graph}\nmethod       wire      tau  planned  simulated  off")
    for name, wire, every in itertools.product(algorithms, wires,
                                               PUSH_INTERVALS):
        settings = {"gossip.algorithm": name, "gossip.wire": wire,
                    "gossip.topology": graph, "gossip.every": every}
        planned = run("plan", settings)["figures"]["bytes_per_step"]["value"]
        found = run("sim", settings)
        ratio = found["bytes"]["sent"] / found["steps"] / planned
        well = least <= ratio <= 1 + WITHIN
        broken += not well
        furthest = max(furthest, ratio - 1, key=abs)
        print(f"{name:<11}  {wire:<8}  {every:>3}  {planned:>7.0f}  "
              f"{ratio * planned:>9.0f}  {100 * (ratio - 1):>+5.1f} %"
              f"{'' if well else '  BROKEN'}")
    return broken, furthest


def compare_pushes():
    broken, furthest = pushes(GRAPHS[1], 1 - WITHIN, PUSHES, WIRES)
    print(f"T2.3 pushes, one to one: expected within 5 % of the bytes, measured "
          f"{100 * furthest:+.1f} %, {broken} of 36 above")
    for graph, least in DRAWN.items():
        more, furthest = pushes(graph, least, PUSHES[1:], WIRES[:1])
        print(f"     partners drawn, {graph}: {100 * furthest:+.1f} %, {more} of "
              f"8 out of {least:.2f} to 1.05")
        broken += more
    return broken


def main():
    folder = os.environ.get("OUT") or tempfile.mkdtemp()
    os.chdir(folder)
    with open("grid.yaml", "w", encoding="utf-8") as file:
        file.write(EXPERIMENT)
    fair, worst = compare("fair")
    queue, apart = compare("queue")
    print(f"T2.3 fair lines: expected within 5 % of G2, measured "
          f"{100 * worst:.1f} %, {fair} of 54 above\n"
          f"     one message after another: up to {100 * apart:.1f} % above, "
          f"{queue} of 54 out of the two bounds")
    sys.exit(fair + queue + compare_pushes() > 0)


main()
