"""Peers that nothing paces: the demo's eight on this machine's cores, with
exchanges every second step and without any, in turns.

    python3 accept_unpaced.py

KITH, OUT and DATASET are those of accept.py; ROUNDS (3), STEPS (9000) of each
peer, WIRE (bfloat16), SAME_HOST (tcp; shared-memory, which asks for more).
Nothing else should run: who waits for a core exchanges
with whom it would not.
"""
import os
import resource
import statistics

from accept import DEMO, Table, kith, need_dataset

ROUNDS = int(os.environ.get("ROUNDS", "3"))
STEPS = int(os.environ.get("STEPS", "9000"))
WIRE = os.environ.get("WIRE", "bfloat16")
SAME_HOST = os.environ.get("SAME_HOST", "tcp")
RATE, SHARE = 0.42 if SAME_HOST == "tcp" else 0.65, 0.80
ALONE = ("compute.step=0s", f"stop={{steps: {STEPS}}}", "assert=[]",
         "evaluate=end", "gossip.algorithm=local")
TOGETHER = ALONE[:-1] + ("gossip.every=2", f"gossip.wire={WIRE}",
                         f"network.same_host={SAME_HOST}")


def run(settings):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = kith("lab", DEMO, *settings)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.unlink(result["database"])
    result["cpu_ms"] = 1e3 * (after.ru_utime + after.ru_stime -
                              before.ru_utime - before.ru_stime) / (
                                  result["steps"])
    return result


def main():
    need_dataset()
    table = Table(f"Unpaced, 8 peers of the demo on {os.cpu_count()} cores, "
                  f"{WIRE}, {SAME_HOST}, {ROUNDS} pairs of runs in turns")
    pairs = [(run(ALONE), run(TOGETHER)) for _ in range(ROUNDS)]
    ratios = [with_them["steps"] / with_them["wall_s"] /
              (alone["steps"] / alone["wall_s"]) for alone, with_them in pairs]
    shares = [with_them["exchanges"]["done"] / (with_them["steps"] / 2)
              for _, with_them in pairs]
    table.note("CPU time of a step, alone and with exchanges", " ".join(
        f"{statistics.median(run['cpu_ms'] for run in runs):.2f} ms"
        for runs in zip(*pairs)))
    table.note("least and most of the rates", f"{min(ratios):.3f} "
               f"{max(ratios):.3f}")
    table.at_least("rate of steps, of that alone", RATE,
                   statistics.median(ratios), "{:.3f}")
    table.at_least("exchanges of triggers", SHARE, statistics.median(shares),
                   "{:.3f}")
    table.end()


if __name__ == "__main__":
    main()
