"""Unpaced peers on this machine's cores, predicted from two labs of two peers.

    python3 accept_hosts.py

What a step, a message and a byte take of a core is found from labs of two peers
with a small and a large model, with and without exchanges (`hosts:`); then labs
with other peers, models, intervals and methods are predicted by kith sim and
run. KITH, OUT are those of accept.py; STEPS (2000), WITHIN (0.10). Nothing else
should run.
"""
import os
import statistics
import tempfile

from accept import OUT, TOP, Table, kith, mean, rows, summary

STEPS = int(os.environ.get("STEPS", "2000"))
WITHIN = float(os.environ.get("WITHIN", "0.10"))
CORES = os.cpu_count()
SIZES = {"small": 32, "large": 1024}  # the hidden layer

FILE = f"""name: hosts
seed: 3
peers: 2
stop: {{steps: {STEPS}}}
model: {{kind: mlp, layers: [64, 32, 10]}}
data: {{kind: idx, path: {TOP}/examples/data/digits, split: iid}}
train: {{learning_rate: 0.05, batch: 16}}
gossip: {{algorithm: adpsgd, every: 2, topology: random}}
evaluate: end
"""


def size(hidden):
    return f"model.layers=[64, {hidden}, 10]"


def lab(path, *settings):
    result = kith("lab", path, *settings)
    result["train_s"] = mean(s for s, in rows(
        result, "SELECT max(time_s) FROM series WHERE peer IS NOT NULL "
        "GROUP BY peer"))
    for kind in "train", "aead", "socket", "other":
        result[kind] = summary(result, f"cpu.{kind}_s")
    result["spoken"] = result["aead"] + result["socket"] + result["other"]
    return result


def messages(path, *settings):
    """Messages of an attempt, and bytes of a message, by the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        result = kith("sim", path, "compute.step=1ms", "stop.steps=200",
                      *settings, options=("--trace", trace))
        with open(trace, encoding="utf-8") as lines:
            count = sum(" < " in line for line in lines)
        attempts = summary(result, "exchanges.attempts")
        return count / attempts, result["bytes"]["sent"] / count


def calibrate(path, table):
    found = {}
    for name, hidden in SIZES.items():
        alone = lab(path, size(hidden), "gossip={algorithm: local}")
        longer = lab(path, size(hidden), "gossip={algorithm: local}",
                     f"stop.steps={3 * STEPS}")
        together = lab(path, size(hidden))
        each, _ = messages(path, size(hidden))
        ends = 2 * each * summary(together, "exchanges.attempts")
        found[name] = {
            # With a core for each: handing it over is part of a step.
            "step": (longer["train_s"] - alone["train_s"]) / (2 * STEPS),
            "end": (together["spoken"] - alone["spoken"]) / ends,
            "bytes": 2 * together["bytes"]["sent"] / ends,
        }
    small, large = found["small"], found["large"]
    byte = max(0.0, (large["end"] - small["end"]) /
               (large["bytes"] - small["bytes"]))
    message = small["end"] - byte * small["bytes"]
    table.note("a message takes", f"{1e6 * message:.1f} us and "
               f"{1e9 * byte:.3f} ns a byte, at each end")
    for name, one in found.items():
        table.note(f"a step of the {name} model", f"{1e6 * one['step']:.0f} us")
    return found, message, byte


def predict(path, cost, *settings):
    found, message, byte = cost
    name = settings[0]
    hosts = (f"hosts={{cores: {CORES}, message: {int(1e9 * message)}ns, "
             f"wire: {8 / byte / 1e9 if byte > 0 else 1e6:.6f}Gbit}}")
    return kith("sim", path, size(SIZES[name]), *settings[1:], hosts,
                f"compute.step={int(1e9 * found[name]['step'])}ns",
                "network.latency=20us")["virtual_s"]


def main():
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "hosts.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(FILE)
    table = Table(f"Unpaced peers on {CORES} cores, {STEPS} steps: wall time, "
                  f"predicted and measured")
    cost = calibrate(path, table)
    asked = [(name, f"peers={peers}", *more)
             for name in SIZES for peers in (2, 4, 8)
             for more in ((), ("gossip.every=8",))]
    asked += [("small", "peers=4", "gossip.algorithm=dpsgd",
               "gossip.topology=ring"),
              ("large", "peers=8", "gossip.algorithm=diloco",
               "gossip.every=20", "gossip.topology=complete")]
    for settings in asked:
        runs = [lab(path, size(SIZES[settings[0]]), *settings[1:])["train_s"]
                for _ in range(3)]
        measured = statistics.median(runs)
        predicted = predict(path, cost, *settings)
        table.note(f"{' '.join(settings)}: predicted, measured "
                   f"[{min(runs):.3f}..{max(runs):.3f}]",
                   f"{predicted:.3f} s, {measured:.3f} s")
        table.at_most("  apart", WITHIN, abs(predicted / measured - 1),
                      "{:.3f}")
    table.end()


if __name__ == "__main__":
    main()
