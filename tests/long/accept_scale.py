"""What a simulated event takes among 10^3 to 10^6 peers, and the picture of it.

    python3 accept_scale.py

KITH, OUT are those of accept.py; PEERS (1000,10000,100000,1000000), EVENTS (the
least of each run, 1e7), STEPS (30, at least), RUNS (3; one of 10^6), TOPOLOGY
({topology: random-regular, degree: 16}). Processor time of the whole program,
user and system, which the machine's other work disturbs less than time. Where
a host gives a virtual machine its memory anew, 5 GB of it took 8 to 18 s of the
system's time: of 10 steps of 10^6 peers that is a tenth, and no event's. The
picture goes to OUT/scale.svg; docs/scale.svg is one of them.
"""
import os
import resource
import statistics

from accept import OUT, Table, kith

PEERS = [int(n) for n in
         os.environ.get("PEERS", "1000,10000,100000,1000000").split(",")]
EVENTS = float(os.environ.get("EVENTS", "1e7"))
STEPS = int(os.environ.get("STEPS", "30"))
RUNS = int(os.environ.get("RUNS", "3"))
TOPOLOGY = os.environ.get("TOPOLOGY", "topology: random-regular, degree: 16")
EVENTS_A_STEP = 10  # of a peer, about

FILE = f"""name: scale
seed: 1
peers: 1000
stop: {{steps: 100}}
model: {{kind: quadratic, dim: 16}}
gossip: {{algorithm: adpsgd, every: 1, {TOPOLOGY}}}
train: {{learning_rate: 0.1}}
compute: {{step: 10ms}}
network: {{latency: 1ms}}
evaluate: end
"""


def run(path, peers):
    """Microseconds an event, and events."""
    steps = max(STEPS, round(EVENTS / (EVENTS_A_STEP * peers)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = kith("sim", path, f"peers={peers}", f"stop.steps={steps}",
                  options=("--rows", "none"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = (after.ru_utime + after.ru_stime -
               before.ru_utime - before.ru_stime)
    return 1e6 * seconds / result["events"], result["events"]


def draw(found, path):
    """found: of each number of peers the runs' microseconds."""
    width, height, left, top, right, low = 640, 330, 60, 40, 610, 280
    most = 1.15 * max(max(max(each) for each in found.values()),
                      2 * statistics.median(found[PEERS[0]]))
    place = {n: left + 40 + i * (right - left - 80) / max(1, len(PEERS) - 1)
             for i, n in enumerate(PEERS)}

    def y(value):
        return low - (low - top) * value / most

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="22" font-size="14">Processor time of a '
           f'simulated event, µs: median, least and most</text>']
    tick = 0.5 if most < 5 else 1
    for i in range(int(most / tick) + 1):
        out.append(f'<path d="M{left} {y(i * tick):.1f}H{right}" '
                   f'stroke="#ddd"/><text x="{left - 8}" '
                   f'y="{y(i * tick) + 4:.1f}" text-anchor="end">'
                   f'{i * tick:g}</text>')
    bound = y(2 * statistics.median(found[PEERS[0]]))
    out.append(f'<path d="M{left} {bound:.1f}H{right}" stroke="#c33" '
               f'stroke-dasharray="6 4"/><text x="{left + 4}" '
               f'y="{bound + 14:.1f}" fill="#c33">twice the first</text>')
    line = " ".join(f"{place[n]:.1f},{y(statistics.median(found[n])):.1f}"
                    for n in PEERS)
    out.append(f'<polyline points="{line}" fill="none" stroke="#27c" '
               f'stroke-width="2"/>')
    for n in PEERS:
        each, x = found[n], place[n]
        middle = statistics.median(each)
        out.append(f'<path d="M{x:.1f} {y(min(each)):.1f}V{y(max(each)):.1f}" '
                   f'stroke="#27c"/><circle cx="{x:.1f}" cy="{y(middle):.1f}" '
                   f'r="4" fill="#27c"/><text x="{x:.1f}" '
                   f'y="{y(min(each)) + 18:.1f}" text-anchor="middle">'
                   f'{middle:.2f}</text><text x="{x:.1f}" y="{low + 20}" '
                   f'text-anchor="middle">{n:,}</text>')
    out.append(f'<text x="{(left + right) / 2}" y="{low + 40}" '
               f'text-anchor="middle">peers</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def main():
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "scale.yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(FILE)
    table = Table(f"What an event takes, {TOPOLOGY}")
    found = {}
    for peers in PEERS:
        runs = [run(path, peers)
                for _ in range(RUNS if peers < 1000000 else 1)]
        found[peers] = [each for each, _ in runs]
        table.note(f"{peers} peers, {runs[0][1]:.3g} events",
                   f"{statistics.median(found[peers]):.2f} us "
                   f"[{min(found[peers]):.2f}..{max(found[peers]):.2f}]")
    table.at_most(f"{PEERS[-1]} peers to {PEERS[0]}", 2.0,
                  statistics.median(found[PEERS[-1]]) /
                  statistics.median(found[PEERS[0]]), "{:.2f}")
    picture = os.path.join(OUT, "scale.svg")
    draw(found, picture)
    print(f"picture: {picture}")
    table.end()


if __name__ == "__main__":
    main()
