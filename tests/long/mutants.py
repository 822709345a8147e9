#!/usr/bin/env python3
"""Mutation testing: are there changes of the protocol's core, of sessions and of
the algorithms that no fast test notices?

    usage: mutants.py TOP [AREA...]     in a build directory; core, session,
                                        algorithm: all three where none is given

HEAD, or KITH_MUTANTS_AT, is built in ./mutants, never in the tree. Mutants are
taken in the order of the commit's hash, or of KITH_MUTANTS_SEED, KITH_MUTANTS
(400) of all areas together. Of each the one object is compiled, and its tests
are linked and run one after another until one fails, first those that are fast
for the mutants of this file and area that they have killed; a test that takes
ten times the CPU time has failed. What was run is kept in mutants/COMMIT.jsonl:
the same command goes on. It stops after KITH_MUTANTS_CPU (7200) seconds of this
run.

KITH_MUTANTS_PART=I/N takes every Nth of them from the Ith on and an Nth of their
number, in a directory of its own; the parts' files, joined as
mutants/COMMIT.jsonl, are then reported by the command without it.

KITH_MUTANTS_AGAIN=FILE.jsonl tries the survivors of another run alone; they are
found by file, line as it was and as it is then, and the nearest number.

A mutant that the compiler makes the same code of is none. Those that change no
behaviour are argued one by one in mutants_equivalent.txt.
"""
import functools
import json
import os
import re
import resource
import subprocess
import sys
import time

import mutants_find

TOP = os.path.abspath(sys.argv[1])
AREAS = {"core": "src/protocol/core", "session": "src/protocol/session",
         "algorithm": "src/gossip/algorithm"}
# Tests of an area; of a file alone, before those.
TESTS = {
    "core": "test_node test_node_round test_node_directed test_node_given "
            "test_node_pull test_node_turns test_overlap test_theory "
            "test_sim_golden test_known_runs test_shares test_guard_rounds "
            "test_swarm_healed "
            "test_taxonomy_mass test_taxonomy_churn test_sim_conservation "
            "test_suspects test_node_buckets test_lies test_recovery "
            "test_swarm_pairs test_swarm_cycles "
            "property/test_node_rounds property/test_node_liars "
            "property/test_node_fuzz property/test_node_chaos",
    "session": "test_certificate test_session_known test_session "
               "test_session_refusals "
               "test_session_spoiled test_session_provider "
               "test_session_threads test_hello test_suite test_keys "
               "test_keys_trust "
               "test_noise test_member test_aegis test_wycheproof test_aead",
    "algorithm": "test_known_runs test_rules test_rules_rounds "
                 "test_rules_outer test_acid "
                 "test_theory test_replicas test_running_sums test_epidemic "
                 "test_shares test_taxonomy_equal test_taxonomy_consensus "
                 "test_taxonomy_noise test_taxonomy_choco "
                 "test_taxonomy_clipped test_taxonomy_bias test_buffers "
                 "test_sim_conservation test_worker test_worker_adopt "
                 "integration/test_docs_algorithms.sh",
}
OWN = {
    r"gtop_k|feedback": "test_gtop_k test_gtop_k_message test_gtop_k_learns "
                        "test_gs_sgd_message",
    r"gs_sgd|sketching": "test_gs_sgd test_gs_sgd_message test_gs_sgd_learns",
    r"eager|loco|slowmo|gasloc|outer|updates": "test_statistics",
    r"buckets": "test_buckets test_sync_sgd_buckets",
    r"mask|replicas|feedback|outer|updates": "test_device_algorithms",
    r"sync_sgd|collective": "test_sync_sgd test_rules",
    r"two_level": "test_two_level test_two_level_message test_two_level_runs",
    r"sparse_loco": "test_sparse_loco test_sparse_loco_rules",
    r"update_": "test_update_log test_update_sets test_update_sets_rules",
    r"mask|sparta": "test_taxonomy_noise test_rules_outer",
    r"gosgd|push_sum": "test_shares test_running_sums test_taxonomy_mass",
    r"aead|aegis": "test_aegis test_aegis_wiped test_aead test_wycheproof",
    r"certificate|crl|trust": "test_certificate test_keys test_keys_trust",
    r"suite": "test_suite test_session_provider",
}
WORK = os.path.abspath("mutants")
SOURCE, BUILD = os.path.join(WORK, "source"), os.path.join(WORK, "build")
MARKER = os.path.join(WORK, "mutating")  # which file is not as it was
SLOWEST = 20  # seconds of CPU of a test on its own: others are left out


def run(command, limit=None, cpu=None):
    """True where it ended with 0 in time."""
    def limits():
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(os.path.join(WORK, "last.log"), "wb") as log:
        process = subprocess.Popen(
            command, cwd=BUILD, shell=isinstance(command, str), stdout=log,
            stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=limits, env=dict(os.environ, srcdir=SOURCE,
                                        KITH_INSTRUMENTED="no"))
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return False


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_path(name):
    return f"tests/{name}" if "/" in name else f"tests/unit/{name}"


def target_of(test):
    """What make builds for it: a script runs the program."""
    return "kith" if test.endswith(".sh") else test


def command_of(test):
    return ["sh", os.path.join(SOURCE, test)] if test.endswith(".sh") else \
        [f"./{test}"]


@functools.lru_cache(None)
def tests_of(area, path):
    """Names, without order. Of an algorithm those that speak of it or go through
    all; of what several share, every one."""
    base = os.path.basename(path)[:-2]
    own = [names for pattern, names in OWN.items() if re.search(pattern, base)]
    names = TESTS[area].split()
    if '.name = "' in open(os.path.join(SOURCE, path)).read():
        word = re.compile(rf"\b{base.replace('_', '-')}\b(?!-)|"
                          r"\bkith_algorithms\b")
        names = [test for test in names if test.endswith(".sh") or word.search(
            open(os.path.join(SOURCE, f"{test_path(test)}.c")).read())]
    return list(dict.fromkeys(" ".join(own + names).split()))


def must(command):
    if not run(command):
        log = open(os.path.join(WORK, "last.log"), errors="replace").read()
        sys.exit(f"mutants: failed: {command}\n{log[-3000:]}")


def restore(commit):
    """The file that was mutated when the run before was killed, as new, so that
    make compiles it again."""
    if os.path.exists(MARKER):
        path = open(MARKER).read()
        was = subprocess.run(["git", "-C", TOP, "show", f"{commit}:{path}"],
                             check=True, stdout=subprocess.PIPE).stdout
        with open(os.path.join(SOURCE, path), "wb") as out:
            out.write(was)
        os.remove(MARKER)


def prepare(commit, areas):
    """A copy of HEAD, built; what each test takes in it."""
    stamp = os.path.join(WORK, "built")
    if not os.path.exists(stamp) or open(stamp).read() != commit:
        subprocess.run(["rm", "-rf", SOURCE, BUILD], check=True)
        os.makedirs(SOURCE)
        os.makedirs(BUILD)
        must(f"git -C '{TOP}' archive {commit} | tar x -C '{SOURCE}'")
        must(f"cd '{SOURCE}' && autoreconf -fi")
        must(f"'{SOURCE}/configure' -q --with-cuda=no CFLAGS='-O1'")
    else:
        restore(commit)
    wanted = {test_path(name) for area in areas
              for path in sources(area) for name in tests_of(area, path)}
    for at in sorted(wanted):
        must(f"make -s -j{os.cpu_count()} {target_of(at)}")
    open(stamp, "w").write(commit)
    return measure(os.path.join(WORK, f"{commit[:12]}.tests"), wanted)


def measure(path, wanted):
    """CPU seconds of each test that passes and is fast, however long that takes
    beside other work; kept, since limits follow from them."""
    took = json.load(open(path)) if os.path.exists(path) else {}
    for at in sorted(wanted - set(took)):
        before = cpu_seconds()
        passed = run(command_of(at), limit=60 * SLOWEST, cpu=SLOWEST)
        took[at] = cpu_seconds() - before if passed else None
    json.dump(took, open(path, "w"))
    return {at: took[at] for at in wanted if took[at] is not None}


def sources(area):
    folder = AREAS[area]
    return [f"{folder}/{name}" for name in sorted(os.listdir(
        os.path.join(SOURCE, folder))) if name.endswith(".c")]


def commands(newer, target):
    """What make would run to bring `target` up to date."""
    listed = subprocess.run(
        ["make", "-n", "V=1", "-W", newer, target], cwd=BUILD, text=True,
        stdout=subprocess.PIPE, check=True).stdout
    return "set -e\n" + re.sub(r"^make\[.*|^echo .*$", "", listed, flags=re.M)


class Mutated:
    """A source file of the copy with one line changed; as old as it was when it
    is restored, or make would compile it again."""

    def __init__(self, mutant):
        self.path = os.path.join(SOURCE, mutant["file"])
        self.was = open(self.path).read()
        self.times = os.stat(self.path)
        lines = self.was.split("\n")
        lines[mutant["line"] - 1] = mutant["text"]
        self.now = "\n".join(lines)

    def __enter__(self):
        open(self.path, "w").write(self.now)

    def __exit__(self, *_):
        open(self.path, "w").write(self.was)
        os.utime(self.path, ns=(self.times.st_atime_ns, self.times.st_mtime_ns))


def object_of(area, path):
    name = os.path.basename(path)[:-2]
    folder = os.path.join(BUILD, os.path.dirname(path))
    for entry in sorted(os.listdir(folder)):
        if re.fullmatch(rf"libkith_\w+-{name}\.o", entry):
            return os.path.join(folder, entry)
    return None


def archive_of(made):
    """libX.a of libX_a-NAME.o, which is there."""
    name = re.sub(r"_a-.*$", ".a", os.path.basename(made))
    assert os.path.exists(os.path.join(BUILD, name)), name
    return name


def promise(done, area, path, test):
    """How many like it the test has killed: those of the file count most."""
    return 1 + sum((10 if mutant["file"] == path else 1)
                   for mutant in done if mutant["test"] == test and
                   mutant["file"].startswith(AREAS[area]))


def try_one(area, mutant, order, scripts):
    """(outcome, test): killed, survived, same (code), broken (no C); order:
    (seconds, test)."""
    path = mutant["file"]
    made = object_of(area, path)
    if path not in scripts:
        scripts[path] = commands(os.path.join(SOURCE, path),
                                 os.path.relpath(made, BUILD))
    before = open(made, "rb").read()
    with open(MARKER, "w") as marker:
        marker.write(path)
    with Mutated(mutant):
        compiled = run(scripts[path], limit=120)
    after = open(made, "rb").read()
    try:
        if not compiled:
            return "broken", None
        if after == before:
            return "same", None
        must(["ar", "r", archive_of(made), made])
        for seconds, test in order:
            target = target_of(test)
            if target not in scripts:
                scripts[target] = commands(archive_of(made), target)
            must(scripts[target])
            if not run(command_of(test), limit=60 * SLOWEST,
                       cpu=int(10 * seconds) + 2):
                return "killed", test
        return "survived", None
    finally:
        open(made, "wb").write(before)
        must(["ar", "r", archive_of(made), made])
        os.remove(MARKER)


def equivalents():
    """{(file, was, now): why} of mutants_equivalent.txt."""
    argued = {}
    where = os.path.join(TOP, "tests/long/mutants_equivalent.txt")
    for block in open(where).read().split("\n\n"):
        lines = [line for line in block.split("\n")
                 if line and not line.startswith("#")]
        if len(lines) >= 4:
            argued[tuple(line.strip() for line in lines[:3])] = " ".join(
                line.strip() for line in lines[3:])
    return argued


def report(done):
    """Killed and survived by file; the exit status."""
    argued, files, survivors = equivalents(), {}, []
    for mutant in done:
        count = files.setdefault(mutant["file"], {"killed": 0, "survived": 0,
                                                  "equivalent": 0})
        if mutant["outcome"] == "survived" and (
                mutant["file"], mutant["was"], mutant["now"]) in argued:
            count["equivalent"] += 1
        elif mutant["outcome"] in count:
            count[mutant["outcome"]] += 1
            if mutant["outcome"] == "survived":
                survivors.append(mutant)
    for path in sorted(files):
        count = files[path]
        print(f"{path:48} killed {count['killed']:3}, survived "
              f"{count['survived']:2}, equivalent {count['equivalent']:2}")
    for mutant in survivors:
        print(f"survived {mutant['file']}:{mutant['line']}\n"
              f"    {mutant['was']}\n    {mutant['now']}")
    killed = sum(count["killed"] for count in files.values())
    counted = killed + len(survivors)
    share = 100 * killed / counted if counted else 0
    print(f"mutants: {counted} that change something, {killed} killed "
          f"({share:.1f} %), {len(survivors)} survived; "
          f"{sum(count['equivalent'] for count in files.values())} argued to "
          f"be equivalent, "
          f"{sum(m['outcome'] == 'same' for m in done)} of the same code, "
          f"{sum(m['outcome'] == 'broken' for m in done)} no C")
    return 0 if share >= 85 else 1


def nearest(found, wanted):
    """Of what is found, (rank, area, mutant), the one that `wanted` was."""
    alike = [entry for entry in found if all(
        entry[2][key] == wanted[key] for key in ("file", "was", "now"))]
    return min(alike, default=None, key=lambda entry: abs(
        entry[2]["line"] - wanted["line"]))


def again(found, path):
    """The survivors of another run; the number of those that are gone."""
    survivors = [mutant for mutant in map(json.loads, open(path))
                 if mutant["outcome"] == "survived"]
    met = [nearest(found, mutant) for mutant in survivors]
    print(f"{len(survivors)} survivors of {path}, {met.count(None)} of lines "
          f"that are gone")
    return [entry for entry in met if entry is not None]


def main():
    areas = sys.argv[2:] or list(AREAS)
    wanted = int(os.environ.get("KITH_MUTANTS", "400"))
    budget = float(os.environ.get("KITH_MUTANTS_CPU", "7200"))
    at = os.environ.get("KITH_MUTANTS_AT", "HEAD")
    older = os.environ.get("KITH_MUTANTS_AGAIN")
    seed = os.environ.get("KITH_MUTANTS_SEED")
    part, parts = map(int, os.environ.get("KITH_MUTANTS_PART", "0/1").split("/"))
    wanted //= parts
    commit = subprocess.run(["git", "-C", TOP, "rev-parse", at], text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    if not commit:
        print("mutants: skipped: not a git checkout", file=sys.stderr)
        return 77
    os.makedirs(BUILD, exist_ok=True)
    took, scripts = prepare(commit, areas), {}
    budget += cpu_seconds()
    state = os.path.join(WORK, commit[:12] + (
        "-again" if older else f"-{seed}" if seed else "") + ".jsonl")
    done = [json.loads(line) for line in open(state)] \
        if os.path.exists(state) else []
    seen = {(m["file"], m["line"], m["now"]) for m in done}
    found = sorted(
        (mutants_find.rank(mutant, seed or commit), area, mutant)
        for area in areas for path in sources(area)
        for mutant in mutants_find.find(
            path, open(os.path.join(SOURCE, path)).read()))
    print(f"{len(found)} mutants in {', '.join(areas)}; {len(took)} tests, "
          f"{sum(took.values()):.0f} s", flush=True)
    found = (again(found, older) if older else found)[part::parts]
    for _, area, mutant in found:
        counted = sum(m["outcome"] in ("killed", "survived") for m in done)
        if counted >= wanted or cpu_seconds() > budget:
            break
        if (mutant["file"], mutant["line"], mutant["now"]) in seen or \
                object_of(area, mutant["file"]) is None:
            continue
        begun = time.monotonic()
        path = mutant["file"]
        order = sorted(
            (took[test], test) for test in map(test_path, tests_of(area, path))
            if test in took)
        order.sort(key=lambda entry: entry[0] / promise(
            done, area, path, entry[1]))
        outcome, test = try_one(area, mutant, order, scripts)
        del mutant["text"]
        mutant.update(outcome=outcome, test=test,
                      seconds=round(time.monotonic() - begun, 2))
        done.append(mutant)
        with open(state, "a") as out:
            out.write(json.dumps(mutant) + "\n")
    return report(done)


if __name__ == "__main__":
    sys.exit(main())
