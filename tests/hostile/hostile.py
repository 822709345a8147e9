"""A hostile member against real kith peers: hostile.py [--help] [ATTACK...].

Two clusters, one of swaps (adpsgd) and one of rounds (dpsgd), each of three
`kith peer` processes and this program in the last or the first place with a
certificate that kith made. First it is honest, and what all hold at the end
must be one model. Then it attacks, by name. Every attack must leave all peers
alive and at work with each other, and their memory bounded; at the end each
exits in order, with finite values in its model, and no log has a report of a
sanitizer or an assertion. With --minutes all attacks come again and again, and
memory must not rise after the first third. With --accuracy each attack then
lasts for a training of its own, one of ten members, beside which the others,
with a guard, must learn what they learn beside an honest one.

KITH names the program under test, OUT a folder for what it writes."""
import argparse
import array
import asyncio
import math
import os
import shutil
import statistics
import sys
import tempfile
import time

import messages as m
from attacks import TABLE, TRAINED
from channel import Identity
from cluster import Cluster
from member import ENDS, Member

HONEST_S, START_S, FIRST = 4, 1.5, 4.0
GOES_ON_S = 20       # in a round nobody waits longer: protocol.md section 3
NEAR = 1e-4
INSTRUMENTED = os.environ.get("KITH_INSTRUMENTED", "no") != "no"
GROWTH_KIB = (384 if INSTRUMENTED else 64) << 10
PLACES = {"adpsgd": 3, "dpsgd": 0}   # in rounds the lower rank decides
HONEST = (("adpsgd", 3), ("dpsgd", 3), ("dpsgd", 0))
PATIENCE_S = 30
ENDED = (0, 130)     # SIGTERM ends a peer in order; docs/operations.md
SAMPLE_S, SAMPLES = 5, 12
WARM_S = 150         # until a run database's cache, 2 MB, has filled
# A sanitizer's allocator keeps what was freed, so there it says little.
RISE, SPARE_KIB = (0.3 if INSTRUMENTED else 0.02), 128
PULLS = 60           # a donor is free for moments only
# Trainings without an attack and with each, for two differ by up to a point;
# points of accuracy.
FINE, EACH, WITHIN = 4, 2, 1.0
# Of these one lies where accuracy is asked: the share that has targets.
TRAINERS = 10
AFTER_S = 3          # who has ended answers on: only we speak then


class Report:
    """One line a check; `missed` counts those that failed."""

    def __init__(self):
        self.missed = 0

    def row(self, ok, *words):
        self.missed += not ok
        print("ok    " if ok else "MISSED", *words, flush=True)


def member_of(cluster):
    return Member(Identity(cluster.path(f"identity-{cluster.place}")),
                  cluster.addresses)


async def join(cluster, x=None):
    """Takes the place that is left; its first model is constant, or `x`."""
    member = member_of(cluster)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            await member.learn(cluster.ranks[0])
            break
        except ENDS:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)
    await member.start(x or array.array("f", [FIRST] * member.hello.dim))
    if cluster.algorithm == "adpsgd":
        member.spawn(member.ask(m.SWAP, 0.02))
    return member


async def pull_all(member):
    """What every peer holds, asked for by the protocol's own means."""
    for rank in range(len(member.addresses)):
        if rank == member.rank:
            continue
        for _ in range(PULLS):
            if rank in member.links and rank not in member.pulled:
                member.ask_once(member.links[rank], m.PULL)
            await asyncio.sleep(0.1)
            if rank in member.pulled:
                break
    return member.pulled


async def honest(report, folder, algorithm, place):
    """A member as it should be: all models become one, the sum stays."""
    cluster = Cluster(os.path.join(folder, f"honest-{algorithm}-{place}"),
                      algorithm, place, "consensus",
                      f"time: {10 * PATIENCE_S}s")
    cluster.start()
    try:
        member = await join(cluster)
        await asyncio.sleep(HONEST_S)
        member.quiet = True
        models = await pull_all(member)
        far = max((abs(a - b) for model in models.values()
                   for a, b in zip(model, member.x)), default=float("inf"))
        done = min(member.done[rank] for rank in cluster.ranks)
        ok = len(models) == len(cluster.ranks) and far < NEAR and done > 9
        report.row(ok, f"{algorithm:7} honest, place {place}: {len(models)} "
                   f"models, at most {far:.1e} from ours; at least {done} "
                   "exchanges with each")
        mean = sum(member.x) / len(member.x)
        await member.stop()
    finally:
        cluster.stop()
    for line in cluster.reports():
        report.row(False, algorithm, line)
    return mean


def work(cluster, member):
    """Steps of each, and exchanges that the others had without us: of a swap
    its initiator counts, of an edge in a round the lower rank."""
    rows = cluster.done()
    ours = sum(member.done.values()) if member and member.rank else 0
    return [r[0] for r in rows], sum(r[1] for r in rows) - ours


class Trial:
    """Attacks on one cluster, one after another."""

    def __init__(self, report, cluster, options):
        self.report, self.cluster = report, cluster
        self.seconds, self.lasting = options.seconds, options.minutes > 0
        self.member, self.level, self.samples = None, None, {}

    def seen(self, name):
        """Has a log what the attack is to leave there?"""
        return name not in TABLE or any(
            TABLE[name].expect in self.cluster.lines(rank)
            for rank in self.cluster.ranks)

    async def judge(self, name, before):
        """A peer may wait for us, but not for ever: see GOES_ON_S. On a busy
        machine its log may be late, too."""
        loop = asyncio.get_running_loop()
        end = loop.time() + GOES_ON_S
        steps = done = 0
        while all(self.cluster.alive()) and loop.time() < end:
            after = work(self.cluster, self.member)
            steps = min(b - a for a, b in zip(before[0], after[0]))
            done = after[1] - before[1]
            if steps > 0 and done > 0 and self.seen(name):
                break
            await asyncio.sleep(0.2)
        memory = self.cluster.memory_kib() if all(self.cluster.alive()) \
            else [1 << 40]
        self.level = self.level or max(memory)
        seen = self.seen(name)
        ok = all(self.cluster.alive()) and steps > 0 and done > 0 and \
            seen and max(memory) < self.level + GROWTH_KIB
        self.report.row(ok, f"{self.cluster.algorithm:7} {name:13} steps "
                        f"{steps:5d}  exchanges of others {done:5d}  "
                        f"memory {max(memory) >> 10:4d} MiB"
                        + ("" if seen else f"; no log has it: "
                           f"{TABLE[name].expect}"))

    async def attack(self, name):
        before = work(self.cluster, self.member)
        self.member.attack = TABLE[name]
        await TABLE[name].last(self.member, self.seconds)
        await self.judge(name, before)
        self.member.attack = None

    async def label_flip(self):
        """A real trainer in our place, before we take it."""
        trainer = self.cluster.start_liar()
        await asyncio.sleep(START_S)
        before = work(self.cluster, None)
        await asyncio.sleep(self.seconds)
        await self.judge("label-flip", before)
        trainer.terminate()
        self.cluster.ended(trainer)

    async def begin(self, names):
        self.cluster.start()
        if "label-flip" in names:
            await self.label_flip()
        self.member = await join(self.cluster)
        self.member.spawn(self.sample())
        await asyncio.sleep(START_S)

    async def all(self, names):
        for name in names:
            if name in TABLE:
                await self.attack(name)

    async def sample(self):
        """Memory of each peer, every few seconds."""
        began = time.monotonic()
        while all(self.cluster.alive()):
            now = time.monotonic() - began
            for rank, kib in zip(self.cluster.ranks,
                                 self.cluster.memory_kib()):
                self.samples.setdefault(rank, []).append((now, kib))
            await asyncio.sleep(SAMPLE_S)

    def flat(self, rank):
        """A line through what was sampled after the first third."""
        rows = self.samples[rank]
        kept = [row for row in rows if row[0] > max(rows[-1][0] / 3, WARM_S)]
        if len(kept) < SAMPLES:
            print(f"       {self.cluster.algorithm:7} peer {rank}: too short "
                  f"to say whether memory is flat after {WARM_S} s")
            return
        times, levels = zip(*kept)
        slope = statistics.linear_regression(times, levels).slope
        rise = slope * (times[-1] - times[0])
        level = statistics.fmean(levels)
        self.report.row(rise < RISE * level + SPARE_KIB,
                        f"{self.cluster.algorithm:7} peer {rank}: memory "
                        f"{rise:+.0f} of {level:.0f} KiB from "
                        f"{times[0]:.0f} to {times[-1]:.0f} s")

    async def end(self):
        if self.member:
            await self.member.stop()
        for rank in self.samples if self.lasting else ():
            self.flat(rank)
        for rank, status in zip(self.cluster.ranks, self.cluster.stop()):
            self.report.row(status in ENDED and
                            "wall time" in self.cluster.lines(rank) and
                            self.cluster.is_finite(rank),
                            f"{self.cluster.algorithm:7} peer {rank}: "
                            f"exit status {status}, a finite model")
        for line in self.cluster.reports():
            self.report.row(False, self.cluster.algorithm, line)


async def attacks(report, options, algorithm, names):
    lasting = 60 * options.minutes
    seconds = 3600 + lasting + 2 * len(names) * options.seconds
    cluster = Cluster(os.path.join(options.out, algorithm), algorithm,
                      PLACES[algorithm], "mlp", f"time: {seconds:.0f}s")
    trial = Trial(report, cluster, options)
    end = time.monotonic() + lasting
    try:
        await trial.begin(names)
        await trial.all(names)
        while time.monotonic() < end:
            await trial.all(names)
    finally:
        await trial.end()


async def spend(member, name, seconds):
    if name in TABLE:
        member.attack = TABLE[name]
        await TABLE[name].last(member, seconds)
    else:
        await asyncio.sleep(seconds)


async def learned(options, algorithm, name, which=""):
    """What the honest peers' accuracy is where this attack lasts."""
    place = TRAINERS - 1 if algorithm == "adpsgd" else 0
    cluster = Cluster(os.path.join(options.out, f"{algorithm}-{name}{which}"),
                      algorithm, place, "mlp", f"epochs: {options.epochs}",
                      "clip", TRAINERS,
                      f", deadline: {options.deadline}"
                      if options.deadline and algorithm == "dpsgd" else "")
    cluster.start()
    member = trainer = None
    try:
        if name == "label-flip":
            trainer = cluster.start_liar()
        while trainer is None and member is None and all(cluster.alive()):
            model = cluster.model(cluster.ranks[0])
            if model:
                member = await join(cluster, model)
            await asyncio.sleep(0.1)
        while not all("finished step=" in cluster.lines(rank)
                      for rank in cluster.ranks) and all(cluster.alive()):
            await spend(member, name, 1)
        await spend(member, name, AFTER_S)
        if member:
            await member.stop()
    finally:
        cluster.stop()
        if trainer:
            trainer.terminate()
            cluster.ended(trainer)
    return [cluster.accuracy(rank) for rank in cluster.ranks]


async def accuracy(report, options, algorithm, names):
    """Attack by attack, held against trainings without any, by their means."""
    fine = [statistics.fmean(await learned(options, algorithm, f"none-{k}"))
            for k in range(FINE)]
    least = statistics.fmean(fine) - WITHIN
    for name in names:
        found = [await learned(options, algorithm, name, f"-{k}")
                 for k in range(EACH)]
        means = [statistics.fmean(one) for one in found]
        report.row(statistics.fmean(means) >= least,
                   f"{algorithm:7} {name:13} accuracy",
                   *(f"{mean:.2f}" for mean in means),
                   f"the worst peer {min(min(one) for one in found):.2f}, "
                   f"without it {min(fine):.2f} to {max(fine):.2f}")


async def run(options):
    report = Report()
    names = options.attack or [*TRAINED, *TABLE]
    means = await asyncio.gather(*(honest(report, options.out, *row)
                                   for row in HONEST))
    report.row(abs(means[0] - means[1]) < NEAR,
               f"the mean of all models: {means[0]:.6f} by swaps, "
               f"{means[1]:.6f} by rounds")
    await asyncio.gather(*(attacks(report, options, a, names)
                           for a in PLACES))
    if options.accuracy:
        await asyncio.gather(*(accuracy(report, options, a, names)
                               for a in PLACES))
    return report.missed


def arguments():
    lines = [f"  {name:13} {text}" for name, text in TRAINED.items()]
    lines += [f"  {name:13} {row.text}" for name, row in TABLE.items()]
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="attacks:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attack", nargs="*", metavar="ATTACK")
    parser.add_argument("--seconds", type=float, default=2,
                        help="of each attack")
    parser.add_argument("--minutes", type=float, default=0,
                        help="again and again for so long")
    parser.add_argument("--accuracy", action="store_true",
                        help="of honest peers, beside each attack")
    parser.add_argument("--epochs", type=int, default=150,
                        help="of each training for --accuracy")
    parser.add_argument("--deadline", metavar="TIME",
                        help="gossip.deadline of trainings with rounds")
    options = parser.parse_args()
    for name in options.attack:
        if name not in TABLE and name not in TRAINED:
            parser.error(f"no attack {name}; see --help")
    return options


def main():
    options = arguments()
    kept = os.environ.get("OUT")
    options.out = kept or tempfile.mkdtemp(prefix="kith-hostile.")
    os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=16")
    try:
        return asyncio.run(run(options))
    finally:
        if not kept:
            shutil.rmtree(options.out, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
