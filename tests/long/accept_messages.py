"""Messages of the simulator beside SimGrid's: see accept_messages.sh."""
import os
import statistics
import subprocess
import tempfile
from resource import RUSAGE_CHILDREN, getrusage

from accept import KITH, TOP, Table

PEERS = int(os.environ.get("PEERS", "10000"))
RUNS = int(os.environ.get("RUNS", "3"))
STEPS, ROUNDS = 30, 10
GOSSIP = """name: messages
seed: 1
peers: {peers}
stop: {{steps: {steps}}}
model: {{kind: none}}
gossip: {{algorithm: adpsgd, topology: random-regular, degree: 8}}
compute: {{step: 1s, spread: exponential}}
network: {{latency: {latency}us}}
evaluate: end
"""
# Of SimGrid's links, two a path, in s: few messages are under way at a time, or
# many, for which it takes far longer. LV08 makes 13.01 times of it.
LATENCIES = (50e-6, 5e-3)
# Stacks of 32 KiB, or 10,000 actors take more memory than they need.
SIMGRID = ["--cfg=contexts/stack-size:32", "--log=root.thresh:error"]


def seconds(command):
    """Processor time, and what was said."""
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime -
            before.ru_stime, done.stdout)


def count_messages(command, trace):
    subprocess.run([*command, "--trace", trace], check=True,
                   capture_output=True)
    with open(trace, encoding="utf-8") as file:
        count = sum(" < " in line for line in file)
    os.remove(trace)
    return count


def compare(table, folder, program, latency):
    path = os.path.join(folder, "messages.yaml")
    there = 2 * 13.01 * latency
    with open(path, "w", encoding="utf-8") as file:
        file.write(GOSSIP.format(peers=PEERS, steps=STEPS,
                                 latency=round(1e6 * there)))
    ours = [KITH, "sim", path, "--rows", "none", "--out", folder]
    count = count_messages(ours, os.path.join(folder, "trace"))
    rates = {"kith sim": [], "SimGrid": []}
    for _ in range(RUNS):
        rates["kith sim"].append(count / seconds(ours)[0])
        took, said = seconds([program, str(PEERS), str(ROUNDS), str(latency),
                              *SIMGRID])
        came = int(said.split()[1])
        assert came > PEERS * ROUNDS * 0.9, said
        rates["SimGrid"].append(came / took)
    for name, values in rates.items():
        table.note(f"{1e3 * there:.1f} ms: {name}, messages a second "
                   f"[{min(values):.0f}..{max(values):.0f}]",
                   f"{statistics.median(values):.0f}")
    table.at_least(f"{1e3 * there:.1f} ms: kith sim / SimGrid", 50,
                   statistics.median(rates["kith sim"]) /
                   statistics.median(rates["SimGrid"]), "{:.1f}")


def main():
    table = Table(f"{PEERS} peers beside SimGrid's LV08")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "messages_simgrid")
        source = os.path.join(TOP, "tests/long/messages_simgrid.cpp")
        subprocess.run(["c++", "-O2", "-std=c++17", "-o", program, source,
                        "-lsimgrid"], check=True)
        for latency in LATENCIES:
            compare(table, folder, program, latency)
    table.end()


if __name__ == "__main__":
    main()
