"""Real `kith peer` processes on loopback, and what is measured of them."""
import array
import glob
import gzip
import json
import math
import os
import re
import signal
import socket
import sqlite3
import subprocess

import messages as m

KITH = os.environ.get("KITH", os.path.join(os.getcwd(), "kith"))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DIGITS = os.path.join(TOP, "examples", "data", "digits")
PEERS = 4
REPORTS = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|"
                     r"runtime error:|assertion|kith: bug", re.I)
MODELS = {
    "consensus": "model: {kind: consensus, dim: 1000}\n",
    "mlp": "model: {kind: mlp, layers: [64, 32, 10]}\n"
           "data: {kind: idx, path: DATA, split: iid}\n"
           "train: {learning_rate: 0.05, momentum: 0.9, batch: 16}\n",
}


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def keys(*words):
    subprocess.run([KITH, "keys", *words], check=True,
                   stdout=subprocess.DEVNULL)


class Cluster:
    """Peers of kith at `ranks`, and one more place, which is ours. They stop
    by `stop`, and hold what comes against `guard`; `more` keys of gossip."""

    def __init__(self, folder, algorithm, place, model, stop, guard="none",
                 peers=PEERS, more=""):
        self.folder, self.place, self.peers = folder, place, peers
        self.ranks = [rank for rank in range(peers) if rank != place]
        self.algorithm, self.guard, self.more = algorithm, guard, more
        os.makedirs(folder)
        ports = free_ports(peers)
        self.addresses = [("127.0.0.1", port) for port in ports]
        authority = os.path.join(folder, "authority")
        keys("new", authority, "--authority")
        for rank in range(peers):
            self.certify(authority, rank)
        self.experiment("experiment.yaml", model, stop, DIGITS)
        self.experiment("liar.yaml", model, stop, "liar")
        self.members()
        self.processes = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def certify(self, authority, rank):
        identity = self.path(f"identity-{rank}")
        keys("new", identity, "--name", f"peer-{rank}")
        keys("certify", authority, os.path.join(identity, "node.request"),
             "--rank", str(rank))
        with open(os.path.join(authority, "ca.pub"), "rb") as source, \
                open(os.path.join(identity, "ca.pub"), "wb") as copy:
            copy.write(source.read())

    def experiment(self, name, model, stop, data):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(f"""name: hostile
seed: 7
peers: {self.peers}
stop: {{{stop}}}
{MODELS[model].replace("DATA", data)}network: {{suite: AESGCM}}
gossip: {{algorithm: {self.algorithm}, every: 2, topology: complete,
         guard: {self.guard}{self.more}}}
compute: {{step: 5ms}}
save: 1s
""")

    def members(self):
        members = ", ".join(f'"{h}:{p}"' for h, p in self.addresses)
        for rank, (host, port) in enumerate(self.addresses):
            name = "liar" if rank == self.place else "experiment"
            with open(self.path(f"peer-{rank}.yaml"), "w",
                      encoding="ascii") as file:
                file.write(f"identity: identity-{rank}\n"
                           f'listen: "{host}:{port}"\n'
                           f"experiment: {name}.yaml\n"
                           f"save: model-{rank}\nrank: {rank}\n"
                           f"members: [{members}]\n")

    def start_liar(self):
        """A kith peer in our place that learns label 9 - y."""
        os.makedirs(self.path("liar"))
        for name in os.listdir(DIGITS):
            with open(os.path.join(DIGITS, name), "rb") as file:
                data = file.read()
            if "labels" in name:
                data = gzip.decompress(data)
                data = gzip.compress(
                    data[:8] + bytes(9 - label for label in data[8:]))
            with open(self.path("liar", name), "wb") as file:
                file.write(data)
        return self.launch(self.place)

    def launch(self, rank):
        with open(self.log(rank), "w", encoding="ascii") as log:
            return subprocess.Popen(
                [KITH, "peer", self.path(f"peer-{rank}.yaml")],
                stdout=log, stderr=log)

    def start(self):
        self.processes = [self.launch(rank) for rank in self.ranks]

    def log(self, rank):
        return self.path(f"log-{rank}")

    def alive(self):
        return [p.poll() is None for p in self.processes]

    def memory_kib(self):
        """Of each process, what is not a page of a file."""
        found = []
        for process in self.processes:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                found += [int(line.split()[1]) for line in file
                          if line.startswith("RssAnon")]
        return found

    def done(self):
        """[steps, exchanges done] of each peer, from its last row."""
        found = []
        for rank in self.ranks:
            paths = glob.glob(self.path(f"model-{rank}", "*-peer-*.db"))
            row = None
            if paths:
                with sqlite3.connect(f"file:{paths[0]}?mode=ro",
                                     uri=True) as database:
                    row = database.execute(
                        "SELECT step, done FROM series "
                        "ORDER BY time_s DESC LIMIT 1").fetchone()
            found.append(row or (0, 0))
        return found

    def lines(self, rank):
        with open(self.log(rank), encoding="utf-8", errors="replace") as file:
            return file.read()

    def saved(self, rank):
        """Name and values of each vector of its last save: safetensors."""
        with open(self.path(f"model-{rank}", "hostile.save"), "rb") as file:
            data = file.read()
        start = 8 + int.from_bytes(data[:8], "little")
        for name, tensor in json.loads(data[8:start]).items():
            if name != "__metadata__" and tensor["dtype"] == "F32":
                first, last = tensor["data_offsets"]
                yield name, m.floats(data[start + first:start + last])

    def is_finite(self, rank):
        return all(all(map(math.isfinite, values))
                   for _, values in self.saved(rank))

    def model(self, rank):
        """What it has saved of its model, as one vector; None: nothing yet."""
        try:
            return array.array("f", (
                value for name, values in self.saved(rank)
                if not name.startswith("optimiser.") for value in values))
        except FileNotFoundError:
            return None

    def accuracy(self, rank):
        """Per cent, from its last lines; NaN: it has not said it."""
        found = re.search(r"^  accuracy +([0-9.]+) %", self.lines(rank), re.M)
        return float(found[1]) if found else math.nan

    def stop(self):
        """The exit codes, once all were asked to end."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        return [self.ended(process) for process in self.processes]

    @staticmethod
    def ended(process):
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def reports(self):
        """Lines of the logs that no peer should ever write."""
        return [f"peer {rank}: {line}" for rank in self.ranks
                for line in self.lines(rank).splitlines()
                if REPORTS.search(line)]
