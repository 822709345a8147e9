"""Random experiments of both kinds of methods, for accept_same.py: what `kith
swarm --random` draws, with what it does not draw put on top of it (packed
formats, compressors, guards, models that learn from data, hosts, classes, zones,
latency by place, churn, lies, central methods), and shorter.

An experiment is a text and the options that go with it. Additions that the rules
refuse are left out, in the order in which they stand here, so that each has its
chance beside any other.
"""
import random
import re
import subprocess

TOP_KEY = re.compile(r"^(\w+):")
SHORTEST_MS = 400
STEPS = 3000  # of all peers, about
FAULTS_END_MS = 3000  # swarm_draw.c: from 1 ms to this and 40 steps
COMPRESSORS = ("top-k", "random-k", "sign", "qsgd", "int8", "top-k-2bit")
GUARDS = ("clip", "balance", "cs+", "trimmed-mean", "median",
          "geometric-median", "krum", "nnm", "ubar")
LIES = ("flip", "scale", "gauss", "alie", "ipm", "dissensus", "stale",
        "free-ride", "nan", "ride", "ascent")
CENTRAL = (
    "exchange: naive", "exchange: tree", "exchange: scatter-reduce",
    "exchange: doubling", "exchange: ring", "servers: 2",
    "servers: 2, placement: workers", "proxies: 2", "trigger: async",
    "trigger: async, servers: 2, replicas: 3", "trigger: ssp, staleness: 2",
    "trigger: essp, staleness: 2", "trigger: value-bound, bound: 0.05",
    "trigger: backup, backup: 1", "trigger: quorum, backup: 1",
    "method: sparknet, exchange: ring, every: 3",
    "method: sparknet, every: 2", "method: easgd, every: 3, alpha: 0.1",
    "method: treeeasgd, degree: 2, alpha: 0.2, up: 3, down: 2",
    "method: mpca-sgd, exchange: tree, every: 2, alpha: 0.1",
    "method: vertical, micro_batches: 2", "method: vertical, in_flight: 2")


class Draft:
    """An experiment as its top keys, in order, each with its lines."""

    def __init__(self, text):
        self.parts = {}
        for line in text.splitlines():
            match = TOP_KEY.match(line)
            if match:
                self.parts[match.group(1)] = line
            elif self.parts and not line.startswith("#"):
                self.parts[list(self.parts)[-1]] += "\n" + line

    def text(self):
        return "\n".join(self.parts.values()) + "\n"

    def put(self, key, value):
        self.parts[key] = f"{key}: {value}"

    def number(self, key, inner=""):
        return int(re.search(rf"{inner}.*?(\d+)", self.parts[key]).group(1))

    def within(self, key, words):
        """More of a mapping in one line; what it had by these names goes."""
        for name in re.findall(r"(\w+):", words):
            self.without(key, name)
        inside = re.sub(rf"^{key}: \{{|\}}$", "",
                        self.parts.get(key, f"{key}: {{}}"))
        self.put(key, "{" + ", ".join(filter(None, (inside, words))) + "}")

    def without(self, key, name):
        if key in self.parts:
            part = re.sub(rf"\b{name}: [^,}}]+(, )?", "", self.parts[key])
            self.parts[key] = re.sub(r", \}$", "}", part)

    def fault(self, words):
        inside = re.sub(r"^faults: \[|\]$", "", self.parts["faults"])
        self.put("faults", "[" + ",\n  ".join(filter(None, (inside, words)))
                 + "]")

    def check(self, words):
        """An assertion less."""
        inside = re.findall(r'"[^"]+"', self.parts["assert"])
        self.put("assert", "[" + ", ".join(
            one for one in inside if words not in one) + "]")

    def end_ms(self):
        return self.number("stop", "time")


def shortened(draft, rng):
    """Faults scaled to a shorter run: at twice the time of the last one there
    is some to heal."""
    step = draft.number("compute", "step")
    peers = draft.number("peers")
    end = max(SHORTEST_MS, min(draft.end_ms(), STEPS * step // peers))
    scale = min(1, end / 1.5 / (FAULTS_END_MS + 40 * step))
    draft.put("stop", f"{{time: {end}ms}}")
    draft.parts["faults"] = re.sub(
        r"\b(at|for|restart): (\d+)ms", lambda match:
        f"{match[1]}: {max(1, int(int(match[2]) * scale))}ms",
        draft.parts["faults"])
    if rng.random() < 0.9:  # ranks do not divide it, nor sealed bytes
        draft.check("conserved")
    if rng.random() < 0.7:
        draft.without("network", "wire")


# What is put on top: each with its chance, in this order. `rng` is its own.

def add_central(draft, rng):
    draft.put("central", "{" + rng.choice(CENTRAL) + "}")
    draft.parts.pop("gossip")
    draft.check("conserved")
    draft.without("network", "wire")
    slow = re.findall(r"\{[^{}]*\bslow: [^{}]*\}", draft.parts["faults"])
    draft.put("faults", "[" + ",\n  ".join(slow) + "]")
    draft.put("model", "{kind: quadratic, dim: 40}")


def add_digits(draft, rng):
    """A model that learns; what the swarm draws has values without data."""
    draft.put("model", "{kind: mlp, layers: [64, 12, 10]}")
    draft.put("data", f"{{kind: idx, path: DIGITS, split: "
                      f"{rng.choice(('iid', 'dirichlet(0.3)', 'classes(2)'))}}}")
    optimiser = rng.choice(("sgd", "sgd", "adam", "adamw", "lars"))
    momentum = ", momentum: 0.9" if optimiser in ("sgd", "lars") else ""
    rate = 0.05 if optimiser == "sgd" else 0.003
    draft.put("train", f"{{learning_rate: {rate}, batch: {rng.choice((4, 8))}, "
                       f"optimiser: {optimiser}{momentum}}}")


def add_quadratic(draft, rng):
    dim = rng.choice((40, 300, 4096))
    draft.put("model", f"{{kind: quadratic, dim: {dim}, apart: 0.5}}")
    draft.put("train", "{learning_rate: 0.05}")


def add_many(draft, rng):
    """More peers than the swarm's, for fewer steps."""
    before, peers = draft.number("peers"), rng.choice((30, 48, 70))
    if before < peers:
        draft.put("peers", peers)
        draft.put("stop", f"{{time: {max(SHORTEST_MS, draft.end_ms() // 2)}ms}}")


def add_lockstep(draft, rng):
    """Equal times: no jitter, whole milliseconds."""
    latency = rng.choice((0, 0, draft.number("compute", "step")))
    draft.within("network", f"latency: {latency}ms, jitter: 0ms")
    draft.without("network", "loss")
    draft.put("compute", f"\n  step: {draft.number('compute', 'step')}ms")


def add_wire(draft, rng):
    wire = rng.choice(("bfloat16", "int8", "moniqua8", "moniqua4"))
    share = ", wire_share: 0.5" if wire.startswith("m") and rng.random() < 0.3 \
        else ""
    draft.within("gossip", f"wire: {wire}{share}")


def add_compressor(draft, rng):
    kind = rng.choice(COMPRESSORS)
    share = ", density: 0.2" if "-k" in kind else ""
    draft.within("gossip", f"compressor: {kind}{share}")


def add_guard(draft, rng):
    draft.within("gossip", f"guard: {rng.choice(GUARDS)}")


def add_lie(draft, rng):
    end = draft.end_ms()
    draft.fault(f'{{at: {end // 8}ms, for: {end // 4}ms, '
                f'hostile: "n(1)", kind: {rng.choice(LIES)}}}')


def add_huge(draft, _):
    end = draft.end_ms()
    draft.fault(f'{{at: {end // 6}ms, for: {end // 6}ms, huge: "n(1)", '
                f'by: 1e19}}')


def add_gossip_key(draft, rng):
    draft.within("gossip", rng.choice((
        "chance: 0.6", "exchanges: 1", "exchanges: 2", "retries: 1",
        "deadline: never", "weights: optimal", "buckets: 3, urgent: 2",
        f"deadline: {4 * draft.number('compute', 'step')}ms")))


def add_churn(draft, rng):
    end = draft.end_ms()
    day = rng.choice(("", "", f", diurnal: {end // 2}ms",
                      f", diurnal: {end // 2}ms, phase: zones"))
    draft.fault(f'{{at: {end // 10}ms, for: {end // 2}ms, '
                f'churn: "all - peer(0)", up: {end // 6}ms, '
                f'down: {end // 20}ms, shape: 0.6{day}}}')


def add_join(draft, _):
    end = draft.end_ms()
    draft.fault(f'{{at: "uniform({end // 8}ms, {end // 4}ms)", join: 30%}}')


def add_trace(draft, _):
    draft.fault('{at: 10ms, churn: "all - peer(0)", trace: nodes.csv, '
                f'speed: {20000 / draft.end_ms():.3f}}}')


def add_hosts(draft, rng):
    draft.put("hosts", f"{{cores: {rng.choice((1, 2, 3))}, "
                       f"peers: {rng.choice((0, 3, 5))}" + rng.choice((
                           "}", ", message: 200us, merge: 1GB, wire: 500MB}",
                           ", handover: 300us, wake: 100us, slice: 1ms, "
                           "message: 100us}")))


def add_lines(draft, rng):
    draft.within("network", rng.choice((
        "rate: 2Mbit", "up: 1Mbit, down: 20Mbit", "rate: 100Mbit",
        "down: 3Mbit")))


def add_classes(draft, _):
    draft.put("classes", "[{peers: 30%, up: 2Mbit, latency: 12ms, speed: 0.5}, "
                         "{peers: n(1), down: 1Mbit, speed: 3}]")


def add_fair(draft, rng):
    draft.within("network", "sharing: fair, rate: 3Mbit")
    if rng.random() < 0.5:
        draft.within("network", rng.choice((
            "zones: 2, zone_rate: 1Mbit", "zones: 2, zone_uplink: 2Mbit",
            "zones: 2, zone_rates: rates.csv")))


def add_place(draft, rng):
    draft.without("network", "latency")
    draft.without("network", "jitter")
    draft.within("network", rng.choice((
        "matrix: regions.csv", "coordinates: hosts.txt",
        "matrix: regions.csv, matrix_p90: regions90.csv")))


def add_compute(draft, rng):
    draft.parts["compute"] += "\n  " + rng.choice((
        "merge: 300us", "merge: 2ms", "speeds: lognormal(0.5)",
        "speeds: pareto(3)", "spread: exponential"))


def add_evaluate(draft, rng):
    draft.put("evaluate", rng.choice((
        f"{max(2, draft.end_ms() // 9)}ms", "20 steps", "end", "full")))


def add_steps(draft, _):
    """Beside the time: who waits for good would never be there."""
    step = draft.number("compute", "step")
    draft.within("stop", f"steps: {max(4, draft.end_ms() // step // 2)}")


def add_drop(draft, _):
    draft.within("network", "drop_push: 0.1")


def add_sealed(draft, _):
    draft.within("network", "wire: full")


def add_calm(draft, rng):
    """Nothing breaks, and much is of one time: merges run beside events."""
    draft.put("faults", "[]")
    draft.put("assert", "[]")
    if rng.random() < 0.7:
        draft.without("network", "loss")
        draft.without("network", "wire")
        draft.within("network", f"latency: {rng.choice((1, 2, 5))}ms, "
                                "jitter: 0ms")
        draft.put("compute", f"\n  step: {draft.number('compute', 'step')}ms")


ADDITIONS = (
    (0.15, add_central), (0.4, add_digits), (0.5, add_quadratic),
    (0.15, add_many),
    (0.25, add_lockstep), (0.3, add_wire), (0.5, add_compressor),
    (0.3, add_guard), (0.2, add_lie), (0.1, add_huge), (0.3, add_gossip_key),
    (0.15, add_churn), (0.15, add_join), (0.1, add_trace), (0.25, add_hosts),
    (0.25, add_lines), (0.25, add_classes), (0.2, add_fair),
    (0.2, add_place), (0.4, add_compute), (0.5, add_evaluate),
    (0.2, add_steps), (0.15, add_drop), (0.08, add_sealed),
    (0.3, add_calm))
FILES = {
    "regions.csv": "to,a,b,c\na,4,20,31\nb,25,2,12\nc,30,16,6\n",
    "regions90.csv": "to,a,b,c\na,6,30,40\nb,29,5,20\nc,38,20,7\n",
    "rates.csv": "to,a,b\na,3,1\nb,0.5,\n",
    "hosts.txt": "0 1.5 2.0 h 1.0\n1 9.0 -4.0 h 0.5\n2 -7.5 3.0 h 2.0\n"
                 "3 0.0 11.0 h 0.25\n",
    "nodes.csv": "0,add,a\n0,add,b\n0,add,c\n2000,remove,b\n4500,remove,a\n"
                 "6000,add,d\n9000,remove,c\n9500,add,e\n",
}


def swarm_text(kith, seed, number, path):
    """What kith swarm --random draws, and who is dishonest in it."""
    subprocess.run([kith, "swarm", "--random", "--seed", str(seed), "--run",
                    str(number), "--keep", path], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=120, check=False)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    claims = re.search(r"--dishonest (\S+)", text)
    return text, claims.group(1) if claims else None


def drawn(seed, number, text, claims, digits, is_taken):
    """(text, options, names of additions) of an experiment; is_taken(text,
    options) says whether its rules allow it."""
    def rng_of(name):
        return random.Random(f"{seed} {number} {name}")
    rng, options = rng_of("options"), []
    if claims and rng.random() < 0.5:
        options += ["--dishonest", claims]
    if rng.random() < 0.3:
        options += ["--rows", rng.choice(("sampled", "none"))]
    chosen = [add for chance, add in ADDITIONS if rng.random() < chance]
    base = Draft(text)
    shortened(base, rng)

    def written(additions):
        draft = Draft(base.text())
        for add in additions:
            add(draft, rng_of(add.__name__))
        return draft.text().replace("DIGITS", digits)
    taken = []
    if is_taken(written(chosen), options):
        taken = chosen
    else:
        for add in chosen:
            try:
                words = written(taken + [add])
            except (AttributeError, KeyError):  # a part that is gone
                continue
            if is_taken(words, options):
                taken.append(add)
    return written(taken), options, [add.__name__[4:] for add in taken]
