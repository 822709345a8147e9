"""Bugs that accept_same.py must find, each put into a copy of HEAD in ./planted
and built there: what runs must not hang on, made to matter."""
import io
import os
import subprocess
import sys
import tarfile

# name: ((file, was, now), ...); each text stands in its file once.
PLANTED = {
    "race: a step's memory is one for all threads": (
        ("sim/work_pool.c", "pool->lenders[thread]);", "pool->lenders[0]);"),),
    "race: an item's result is read while another thread runs it": (
        ("sim/work_pool.c", "while (job->state != JOB_DONE)",
         "while (job->state == JOB_QUEUED)"),
        ("sim/jobs.c", "    KITH_ASSERT(job->state == JOB_DONE || "
         "job->state == JOB_FREE);\n    check_worker", "    check_worker")),
    "order: equal times as they were put in": (
        ("sim/event_sort.h", "return a->sequence < b->sequence;",
         "return false;"),),
    "order: equal times by address": (
        ("src/base/heap.c", "return a->sequence < b->sequence;",
         "return a < b;"),),
    "order: equal times of all peers by one counter": (
        ("sim/engine.c", "return (uint64_t)by << 40 | "
         "world->peers[by].sequence++;",
         "return world->engine.sequence++ + 0 * (uint64_t)by;"),
        ("sim/engine.c", "(uint64_t)from << 40 | count",
         "world->engine.sequence++ + 0 * ((uint64_t)from + count)")),
    "lookahead: messages leave the outbox a latency late": (
        ("sim/outbox.h", ".sent_ns +\n                     latency_ns;",
         ".sent_ns +\n                     2 * latency_ns;"),
        ("sim/directions.c", "    KITH_ASSERT(arrives_ns >=\n"
         "                sim_time(world)); /* posted late, never too late */\n",
         "    if (arrives_ns < sim_time(world))\n"
         "        arrives_ns = sim_time(world);\n")),
    "lookahead: messages are sent when the outbox lets them go": (
        ("sim/outbox.c", "first->packet, first->sent_ns);",
         "first->packet, sim_time(world));"),),
    "lookahead: what comes behind a merge is told before it": (
        ("sim/aside.c", "aside->count > 0 && !aside->is_first;",
         "aside->count > 2 && !aside->is_first;"),),
    "lookahead: rows do not count what is in the outbox": (
        ("sim/points.c", "    sim_outbox_flush(world);\n", ""),),
}


def must(command, cwd):
    done = subprocess.run(command, cwd=cwd, shell=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"accept_same: failed: {command}\n{done.stdout[-3000:]}")


class Source:
    """A copy, built as this build folder was configured."""

    def __init__(self, top):
        self.source, self.build = map(os.path.abspath,
                                      ("planted/source", "planted/build"))
        options = subprocess.run(["./config.status", "--config"], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        os.makedirs(self.build, exist_ok=True)
        self.refresh(top)
        if not os.path.exists(os.path.join(self.build, "Makefile")):
            must("autoreconf -fi", self.source)
            must(f"'{self.source}/configure' -q {options}", self.build)
        self.make()

    def refresh(self, top):
        """HEAD's files, those that are another's now: make compiles no more."""
        archive = subprocess.run(["git", "-C", top, "archive", "HEAD"],
                                 stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            for member in filter(tarfile.TarInfo.isfile, files):
                path = os.path.join(self.source, member.name)
                text = files.extractfile(member).read()
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        if file.read() == text:
                            continue
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(text)
                os.chmod(path, member.mode)

    def make(self):
        must(f"make -s -j{os.cpu_count()} kith "
             f"$([ ! -e '{os.getcwd()}/kith-mpi.so' ] || echo kith-mpi.so)",
             self.build)

    def changed(self, path, was, now):
        path = os.path.join(self.source, path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.count(was) != 1:
            sys.exit(f"accept_same: {path} has {text.count(was)} times what a "
                     f"bug is planted in, not once: {was}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(was, now))
        return path, text

    def with_bug(self, changes):
        """Undoes it."""
        before = [self.changed(*change) for change in changes]
        self.make()

        def undo():
            for path, text in reversed(before):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        return undo


def main(top, finds, numbers):
    """`finds(builds, numbers)` is the first number that shows the bug."""
    source, passed = Source(top), []
    kith = os.path.join(source.build, "kith")
    for name, changes in PLANTED.items():
        undo = source.with_bug(changes)
        found = finds([kith], numbers)
        undo()
        print(f"planted: {name}: " + (f"found by experiment {found}"
                                      if found else "PASSED"), flush=True)
        if not found:
            passed.append(name)
    print(f"accept_same: {len(PLANTED)} bugs planted, "
          f"{len(PLANTED) - len(passed)} found")
    return 1 if passed else 0
