"""kith plan --search beside grids of 24; see accept_plan_search.sh."""
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

KITH = os.path.abspath(os.environ.get("KITH", "./kith"))
TOP = os.path.abspath(os.environ.get("TOP", "."))
DATASET = os.environ.get("DATASET", "/usr/share/datasets/fashion-mnist")
TEXT = os.environ.get("TEXT", os.path.join(
    TOP, "examples/data/tinyshakespeare.txt"))
TEXT_BYTES = 40000  # its last tenth is the test
WITHIN = .15
# Also four settings with real processes, and so many times slower, for all of
# them share this machine's cores.
LAB = os.environ.get("LAB", "") == "1"
SLOWER = int(os.environ.get("SLOWER", "10"))
# Of eleven seeds of one setting the fastest took 12.0 s and one never came
# there; medians of three were 36 % apart where those of eleven were 6 %.
LABS = int(os.environ.get("LABS", "7"))
# Times of one seed are noise: the search decides by means of two, so does the
# grid.
SEEDS = "2"
# Neither the intervals nor all of the graphs are those that the search tries.
WAITING = {"gossip.every": (1, 3, 5, 10), "gossip.wire": ("float32", "int8"),
           "gossip.topology": ("ring", "torus", "one-peer-exponential")}
MEETING = {"gossip.every": (1, 3, 5, 10),
           "gossip.wire": ("float32", "bfloat16", "int8"),
           "gossip.topology": ("random", "ring")}
GOSSIP = {"dpsgd-atc": "ring", "adpsgd": "random"}
# More than 16 peers: none of their own models is scored on the way.
EXPERIMENTS = {
    "digits": ("accuracy=0.9", """peers: 20
stop: {steps: 150, time: 300ms}
model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: %s, split: iid}
train: {learning_rate: 0.05, momentum: 0.9, batch: 3}
compute: {step: 1ms}
network: {rate: 30Mbit, latency: 500us}
evaluate: 2ms
"""),
    "fashion": ("accuracy=0.75", """peers: 20
stop: {steps: 150, time: 2400ms}
model: {kind: mlp, layers: [784, 16, 10]}
data: {kind: idx, path: %s, split: iid}
train: {learning_rate: 0.05, momentum: 0.9, batch: 8}
compute: {step: 10ms}
network: {rate: 40Mbit, latency: 1ms}
evaluate: 40ms
"""),
    "text": ("loss=2.9", """peers: 20
stop: {steps: 150, time: 3s}
model: {kind: gpt, depth: 1, heads: 2, width: 32, context: 32, vocabulary: %%d}
data: {kind: text, path: %s}
train: {optimiser: adamw, learning_rate: 0.003, batch: 2}
compute: {step: 10ms}
network: {rate: 40Mbit, latency: 1ms}
evaluate: 20ms
"""),
}


def kith(*words):
    done = subprocess.run([KITH, *words], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"kith {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def data(name):
    """Where it lies, or None; of a text also its different characters."""
    if name == "digits":
        return os.path.join(TOP, "examples/data/digits"), None
    if name == "fashion":
        return (DATASET, None) if os.path.isdir(DATASET) else (None, None)
    if not os.path.exists(TEXT):
        return None, None
    with open(TEXT, encoding="utf-8") as whole:
        text = whole.read(TEXT_BYTES)
    with open("text.txt", "w", encoding="utf-8") as part:
        part.write(text)
    return os.path.abspath("text.txt"), len(set(text))


def slower(text):
    """The same network with all times SLOWER-fold, for real processes."""
    text = re.sub(r"(\d+)(us|ms|s)\b",
                  lambda m: f"{SLOWER * int(m[1])}{m[2]}", text)
    return re.sub(r"(\d+)Mbit",
                  lambda m: f"{1000 * int(m[1]) // SLOWER}kbit", text)


def reached(database, target):
    """When the averaged model was there first, or None."""
    key, value = target.split("=")
    column, order = {"accuracy": ("accuracy", ">="),
                     "loss": ("test_loss", "<=")}[key]
    base = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return base.execute(
            f"SELECT min(time_s) FROM series WHERE peer IS NULL "
            f"AND {column} {order} ?", (float(value),)).fetchone()[0]
    finally:
        base.close()


def in_the_lab(name, target, settings):
    """Of real processes: the first setting's time over the best one's."""
    each = [[] for _ in settings]
    # In turn, for the machine drifts.
    for seed in range(1, LABS + 1):
        for found, (_, sets) in zip(each, settings):
            run = kith("lab", f"{name}-lab.yaml", "--json", "--seed",
                       str(seed), *sets)
            # A run that never comes there takes longer than any.
            found.append(reached(run["database"], target) or float("inf"))
    times = [statistics.median(found) for found in each]
    for found, median, (label, _) in zip(each, times, settings):
        print(f"  lab, {label}: {median:.3g} s "
              f"({', '.join(f'{s:.3g}' for s in sorted(found))})", flush=True)
    ratio = times[0] / min(times)
    print(f"  lab: the recommended {ratio - 1:+.1%} of the best of "
          f"{len(times)}", flush=True)
    return ratio


def words_of(label):
    """--set KEY=VALUE of a cell's label, KEY=VALUE, KEY=VALUE."""
    return [word for setting in re.split(r",\s*(?=gossip\.)", label)
            for word in ("--set", setting)]


def compare(name, algorithm, target, text):
    """The recommended's time to the target over the best of the grid, and of
    four settings in the lab."""
    path = f"{name}.yaml"
    gossip = (f"gossip: {{algorithm: {algorithm}, every: 2, "
              f"topology: {GOSSIP[algorithm]}}}\n")
    with open(f"{name}-lab.yaml", "w", encoding="utf-8") as out:
        out.write(f"name: {name}\nseed: 1\n{slower(text)}{gossip}")
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"name: {name}\nseed: 1\n{text}{gossip}")
    begun = time.monotonic()
    plan = kith("plan", path, "--search", "time", "--target", target, "--json")
    took = time.monotonic() - begun
    axes = MEETING if algorithm == "adpsgd" else WAITING
    sweeps = [word for key, values in axes.items() for word in
              ("--sweep", f"{key}={','.join(map(str, values))}")]
    grid = kith("sim", path, "--rows", "none", "--target", target, "--json",
                "--seeds", SEEDS, *sweeps)
    times = sorted((cell["time_to_target_s"]["mean"], cell["label"])
                   for cell in grid["cells"]
                   if cell["time_to_target_s"]["count"] == int(SEEDS))
    assert len(grid["cells"]) == 24
    # By kith sim with the grid's seeds, as the grid was.
    sets = [word for key, value in plan["settings"].items()
            for word in ("--set", f"{key}={value}")]
    cells = kith("sim", path, "--rows", "none", "--target", target, "--json",
                 "--seeds", SEEDS, *sets)["cells"]
    found = cells[0]["time_to_target_s"]["mean"]
    ratio = found / times[0][0]
    own = plan["own"]["time_s"]
    states = [entry["state"] for entry in plan["candidates"]]
    print(f"{name}, {algorithm}, to {target}: {ratio - 1:+.1%} of the best\n"
          f"  grid: best {times[0][0]:.4g} s ({times[0][1]}), "
          f"{sum(t <= times[0][0] * (1 + WITHIN) for t, _ in times)} within "
          f"15 %, median {times[len(times) // 2][0]:.4g} s, "
          f"{24 - len(times)} never\n"
          f"  recommended: {found:.4g} s ({plan['settings']}), predicted "
          f"{plan['time_s']:.4g} +- {plan['error']:.2g} s; the file's own "
          f"{'never' if own is None else f'{own:.4g} s'}\n"
          f"  search: {plan['runs']} runs of {len(states)} settings, "
          f"{states.count('skipped')} skipped, {took:.1f} s", flush=True)
    if not LAB:
        return ratio
    return max(ratio, in_the_lab(name, target, [
        ("recommended", sets), ("the grid's best", words_of(times[0][1])),
        ("its median", words_of(times[len(times) // 2][1])),
        ("the file's own", [])]))


def main():
    wanted = sys.argv[1:] or list(EXPERIMENTS)
    worst = 0
    os.chdir(os.environ.get("OUT") or tempfile.mkdtemp())
    for name in wanted:
        target, text = EXPERIMENTS[name]
        where, characters = data(name)
        if where is None:
            print(f"{name}: skipped: no data")
            continue
        text = text % f'"{where}"'
        if characters:
            text = text % characters
        for algorithm in GOSSIP:
            worst = max(worst, compare(name, algorithm, target, text))
    if worst == 0:
        sys.exit(77)
    if worst > 1 + WITHIN:
        sys.exit(f"a recommended setting is {worst - 1:+.1%} of the best")


if __name__ == "__main__":
    main()
