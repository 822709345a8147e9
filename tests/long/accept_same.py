"""One run, however it is carried out: see accept_same.sh.

    accept_same.py SOURCE OUT [NUMBER...]

KITH_SEED (2026) and KITH_RUNS (300) say which experiments; NUMBERs take their
place. KITH_BUILDS are programs of other compilers, comma-separated. `--planted`
in place of a number: no planted bug may pass, PLANTED below.

Ways are rows of the orthogonal array L9 of threads, ranks, build and queue: any
two levels of any two of them meet in one of its nine ways. The first is what all
are compared with; each experiment has three of the others, by turns.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

import accept_same_draw
import accept_same_planted

TOP = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
import ranks  # noqa: E402

KITH = os.path.abspath(os.environ.get("KITH", "./kith"))
BUILDS = [KITH] + [path for path in
                   os.environ.get("KITH_BUILDS", "").split(",") if path]
SEED = int(os.environ.get("KITH_SEED", "2026"))
RUNS = int(os.environ.get("KITH_RUNS", "300"))
# Databases are read once: a disk that others keep busy took most of the time.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LIMIT = 300  # seconds of a run
DIGITS = os.path.join(TOP, "examples", "data", "digits")
NINE = ((0, 0, 0, 0), (0, 1, 1, 1), (0, 2, 2, 2), (1, 0, 1, 2), (1, 1, 2, 0),
        (1, 2, 0, 1), (2, 0, 2, 1), (2, 1, 0, 2), (2, 2, 1, 0))
APART = (0, 1, 3)
REFUSED = re.compile(r"not divided among|ranks and \d+ peers")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_btl": "self,vader",
       "OMPI_MCA_mpi_yield_when_idle": "1",  # cores may have other work
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
HAS_MPI = shutil.which("mpirun") and os.path.exists(
    os.path.join(os.path.dirname(KITH), "kith-mpi.so"))


class Way:
    """How a run is carried out."""

    def __init__(self, row, builds):
        self.threads, self.ranks = (1, 2, 4)[row[0]], (1, 2, 3)[row[1]]
        self.build = builds[row[2] % len(builds)]
        self.queue = "heap" if row[3] else "calendar"
        self.more = []
        if not HAS_MPI:
            self.ranks = 1

    def command(self, path, out, options):
        started = ["mpirun", "-n", str(self.ranks)] if self.ranks > 1 else []
        return started + [self.build, "sim", path, "--json", "--out", out,
                          "--threads", str(self.threads), "--queue", self.queue,
                          *options, *self.more]

    def name(self):
        return (f"{os.path.relpath(self.build)}, {self.ranks} ranks of "
                f"{self.threads} threads, {self.queue} {' '.join(self.more)}")


class Ended:
    """What came of a run: its status and lines, or what it said."""

    def __init__(self, command, out):
        subprocess.run(["rm", "-rf", out], check=True)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT,
                env=dict(os.environ, LC_ALL="C", **MPI),
                stdin=subprocess.DEVNULL, check=False)
            self.status, self.error = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            self.status, self.error = 124, f"not over after {LIMIT} s"
        self.lines, self.summary = [], {}
        if self.status in (0, 1) and done.stdout:
            self.summary = json.loads(done.stdout)
            self.lines = list(ranks.outcome(self.summary))

    def refused_ranks(self):
        return self.status not in (0, 1) and REFUSED.search(self.error)


def of_any_build(line):
    """A line without what another compiler may round otherwise."""
    if line.startswith("build ") or "'build'" in line:
        return ""
    return line


def differences(first, other, strict):
    """Of two runs, what to show of the first few."""
    if first.status != other.status:
        said = other.error.strip().splitlines()[:2]
        return [f"status {other.status}, not {first.status}: {said}"]
    if not strict:  # sealed bytes in place of sizes: the run, not its rows
        keys = ("trace_hash", "events", "bytes", "exchanges", "virtual_s")
        return [f"{key}: {other.summary.get(key)}, not {first.summary.get(key)}"
                for key in keys
                if first.summary.get(key) != other.summary.get(key)]
    a, b = (list(filter(None, map(of_any_build, run.lines)))
            for run in (first, other))
    if len(a) != len(b):
        return [f"{len(b)} lines, not {len(a)}"] + [
            f"+ {line}" for line in sorted(set(b) - set(a))[:2]] + [
            f"- {line}" for line in sorted(set(a) - set(b))[:2]]
    return [f"- {x}\n    + {y}" for x, y in zip(a, b) if x != y][:3]


class Check:
    """Experiments, one after another, and what was counted of them."""

    def __init__(self, out, builds):
        self.out, self.builds, self.counts = out, builds, Counter()
        self.shown = []  # differences
        os.makedirs(out, exist_ok=True)
        self.runs = tempfile.TemporaryDirectory(dir=MEMORY)
        for name, text in accept_same_draw.FILES.items():
            with open(os.path.join(out, name), "w", encoding="utf-8") as file:
                file.write(text)

    def draw(self, number):
        """Path, options and the first run of an experiment."""
        path = os.path.join(self.out, f"{number}.yaml")
        text, claims = accept_same_draw.swarm_text(KITH, SEED, number, path)
        tried = {}

        def is_taken(words, options):
            with open(path, "w", encoding="utf-8") as file:
                file.write(words)
            way = Way(NINE[0], self.builds)
            tried["run"] = Ended(way.command(path, self.path("0"), options),
                                 self.path("0"))
            tried["text"] = words
            return tried["run"].status not in (2, 3)
        words, options, additions = accept_same_draw.drawn(
            SEED, number, text, claims, DIGITS, is_taken)
        if tried["text"] != words:
            is_taken(words, options)
        self.counts.update(f"+ {name}" for name in additions)
        match = re.search(r"algorithm: ([\w-]+)", words) or \
            re.search(r"central: \{([^,}]*)", words)
        self.counts[f"m {match.group(1)}"] += 1
        return path, options, tried["run"]

    def path(self, name):
        return os.path.join(self.runs.name, name)

    def ways(self, number):
        ways = [Way(NINE[1 + (number + at) % 8], self.builds) for at in APART]
        if number % 3 == 0:
            ways.append(Way(NINE[0], self.builds))
            ways[-1].more = ["--wire", "full"]
        return ways

    def experiment(self, number):
        """True where all ways came to one run."""
        path, options, first = self.draw(number)
        self.counts["experiments"] += 1
        same, ranks_most = True, 3
        if first.status not in (0, 1):
            same = self.differs(number, path, options, Way(NINE[0], self.builds),
                                [f"status {first.status}: "
                                 f"{first.error.strip()[-300:]}"])
        for way in self.ways(number):
            wanted, run = way.ranks, None
            way.ranks = min(wanted, ranks_most)
            while run is None or way.ranks > 1 and run.refused_ranks():
                if run is not None:
                    two = re.search("ranks and 2 peers", run.error)
                    ranks_most = way.ranks = 2 if two else 1
                run = Ended(way.command(path, self.path("1"), options),
                            self.path("1"))
            self.counts["refused by ranks"] += way.ranks == 1 and wanted > 1
            if way.more and run.status not in (0, 1) and first.status in (0, 1):
                self.counts["refused sealed"] += 1
                continue
            self.counts["runs"] += 1
            for what in (f"{way.threads} threads", f"{way.ranks} ranks",
                         way.queue, os.path.relpath(way.build),
                         *way.more[:1]):
                self.counts[f"w {what}"] += 1
            found = differences(first, run, not way.more)
            if found:
                same = self.differs(number, path, options, way, found)
        if same:
            os.remove(path)
        return same

    def differs(self, number, path, options, way, found):
        self.counts["differences"] += 1
        self.shown += [line for line in found
                       if not line.startswith("status 124")]
        print(f"accept_same: experiment {number} differs: {way.name()}")
        for line in found:
            print(f"    {line[:700]}")
        print("    run:", " ".join(way.command(path, "/tmp", options)))
        script = os.path.relpath(os.path.join(TOP, "tests/long/accept_same.sh"))
        print(f"    repeat with: KITH_SEED={SEED} sh {script} {number}",
              flush=True)
        return False


def report(check, seconds):
    counts = check.counts
    for mark, title in (("w ", "runs"), ("+ ", "experiments with"),
                        ("m ", "methods")):
        print(f"{title}:", ", ".join(
            f"{key[2:]} {counts[key]}" for key in sorted(counts)
            if key.startswith(mark)))
    print(f"accept_same: {counts['experiments']} experiments, {counts['runs']} "
          f"runs beside the first of each in {seconds:.0f} s, "
          f"{counts['refused by ranks']} of them in one process as ranks do not "
          f"divide them, {counts['refused sealed']} not sealed; "
          f"{counts['differences']} differ")


def main():
    out, words = os.path.abspath(sys.argv[2]), sys.argv[3:]
    if words == ["--planted"]:
        def finds(builds, numbers):
            """The first number at which a program of this build differs;
            that it took too long, beside other work, shows nothing."""
            check = Check(out, builds)
            return next((number for number in numbers
                         if not check.experiment(number) and check.shown), None)
        return accept_same_planted.main(TOP, finds, range(1, RUNS + 1))
    check, began = Check(out, BUILDS), time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for number in map(int, words or range(1, RUNS + 1)):
            check.experiment(number)
            if number % 20 == 0:
                print(f"  {number}: {time.monotonic() - began:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("accept_same: stopped")
    report(check, time.monotonic() - began)
    return 1 if check.counts["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
