"""A soak: eight real peers under random faults for MINUTES.

Every five seconds each peer process is asked for its resident memory, its
descriptors and the bytes in the queues of its sockets. Of each, a line is laid
through the samples of every process that lived for two thirds of the run, after
its first third, in which buffers grow to the most that is ever under way: it
must not rise by more than 2 % of its level over the whole run (descriptors,
queues: nor by one, nor by 64 KiB). soak.csv has the samples."""
import os
import random
import subprocess
import sys
import time

from accept import KITH, OUT, TOP, Table

MINUTES = float(os.environ.get("MINUTES", "30"))
SEED = int(os.environ.get("SEED", "1"))
PEERS = 8
SETTLED_S = 20 * MINUTES


def random_faults():
    """Peers 0 to 3 are never killed, so that some processes live throughout."""
    dice = random.Random(SEED)
    at = 5.0
    while at < 60 * MINUTES - 20:
        kind = dice.choice(["crash", "pause", "slow", "partition"])
        span = f"{dice.uniform(0.5, 5):.1f}s"
        cut = dice.randrange(1, PEERS)
        text = {
            "crash": f'crash: "peer({dice.randrange(4, 8)})", restart: {span}',
            "pause": f'for: {span}, pause: "peer({dice.randrange(8)})"',
            "slow": f'for: {span}, slow: "peer({dice.randrange(8)})", by: 4',
            "partition": f'for: {span}, partition: "peer(0..{cut - 1}) <-> '
                         f'peer({cut}..7)"',
        }[kind]
        yield f"  - {{at: {at:.1f}s, {text}}}\n"
        at += dice.uniform(6, 12)


def write():
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "soak.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""name: soak
seed: {SEED}
peers: {PEERS}
stop: {{time: {60 * MINUTES:.0f}s}}
model: {{kind: mlp, layers: [64, 64, 10]}}
data: {{kind: idx, path: {TOP}/examples/data/digits}}
train: {{learning_rate: 0.005, batch: 8}}
gossip: {{algorithm: adpsgd, topology: random}}
network: {{latency: 2ms, jitter: 500us, loss: 0.001}}
compute: {{step: 40ms}}
evaluate: 60s
save: 10s
faults:
""" + "".join(random_faults()) + 'assert:\n  - "finally live"\n')
    return path


def read(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def queues():
    """Bytes queued by socket inode."""
    result = {}
    for name in ("tcp", "tcp6"):
        for line in read(f"/proc/net/{name}").splitlines()[1:]:
            field = line.split()
            sent, received = field[4].split(":")
            result[field[9]] = int(sent, 16) + int(received, 16)
    return result


def sample(pid, queued):
    """Resident KiB, descriptors, KiB in queues; None: it has gone."""
    try:
        if not read(f"/proc/{pid}/comm").startswith("kith peer"):
            return None
        memory = next(int(line.split()[1])
                      for line in read(f"/proc/{pid}/status").splitlines()
                      if line.startswith("VmRSS"))
        links = []
        for name in os.listdir(f"/proc/{pid}/fd"):
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except (OSError, StopIteration):
        return None
    inodes = [link[8:-1] for link in links if link.startswith("socket:[")]
    return (memory, len(links),
            sum(queued.get(inode, 0) for inode in inodes) / 1024)


def rise(times, values):
    """Of the least-squares line, over the whole run; and the mean."""
    n = len(times)
    mean_t, mean_v = sum(times) / n, sum(values) / n
    spread = sum((t - mean_t) ** 2 for t in times)
    slope = sum((t - mean_t) * (v - mean_v)
                for t, v in zip(times, values)) / spread
    return slope * 60 * MINUTES, mean_v


def watch(lab):
    seen = {}  # pid: [(time, sample)]
    began = time.monotonic()
    while lab.poll() is None:
        time.sleep(5)
        children = read(f"/proc/{lab.pid}/task/{lab.pid}/children").split() \
            if os.path.exists(f"/proc/{lab.pid}/task/{lab.pid}") else []
        queued = queues()
        for pid in children:
            values = sample(pid, queued)
            if values is not None:
                seen.setdefault(pid, []).append(
                    (time.monotonic() - began, values))
    return seen


experiment = write()
with open(os.path.join(OUT, "soak.out"), "w", encoding="utf-8") as log:
    process = subprocess.Popen([KITH, "lab", experiment, "--out", OUT],
                               stdout=log, stderr=log)
    history = watch(process)
with open(os.path.join(OUT, "soak.csv"), "w", encoding="utf-8") as file:
    file.write("process,time_s,resident_kib,descriptors,queued_kib\n")
    for pid, rows in history.items():
        for at, values in rows:
            file.write(f"{pid},{at:.0f},{values[0]},{values[1]},"
                       f"{values[2]:.1f}\n")
table = Table(f"Soak, {MINUTES:g} minutes, seed {SEED}")
table.add("kith lab", "status 0", f"status {process.returncode}",
          process.returncode == 0)
LIMITS = (("resident KiB", 0), ("descriptors", 1), ("queued KiB", 64))
lived = {pid: rows for pid, rows in history.items()
         if rows[-1][0] - rows[0][0] > 40 * MINUTES}
table.note("processes", f"{len(lived)} of {len(history)}")
for k, (name, spare) in enumerate(LIMITS):
    worst = (-1e9, 0, 0)
    for rows in lived.values():
        kept = [row for row in rows if row[0] >= rows[0][0] + SETTLED_S]
        grown, level = rise([t for t, _ in kept], [v[k] for _, v in kept])
        worst = max(worst, (grown - 0.02 * level - spare, grown, level))
    table.add(f"{name}: rise over the run, level", "<= 2 %",
              f"{worst[1]:+.1f} {worst[2]:.0f}", worst[0] <= 0)
if not lived:
    sys.exit("soak: no process lived long enough; see soak.out")
table.end()
