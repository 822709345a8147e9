"""Momentum of what all did together, and outer steps over local runs."""
import numpy as np

from averaging import ER, mean_of_gradients
from tracking import largest

COMPLETE = {"topology": "complete"}


def quasi_global(r, nesterov=False):
    """QG-DSGDm, Lin et al., ICML 2021, Alg. 1, mh(0) = 0:
        m = beta mh + g;  y = x - eta m  (Nesterov: eta (g + beta m))
        x+ = W y;  mh <- mu mh + (1 - mu) (x - x+) / eta"""
    beta, mu = r.keys["momentum"], r.keys["decay"]
    x, mh = r.x0, 0 * r.x0
    for t, eta in enumerate(r.rate):
        m = beta * mh + r.g(x)
        step = r.g(x) + beta * m if nesterov else m
        old, x = x, r.W[t] @ (x - eta * step)
        mh = mu * mh + (1 - mu) * (old - x) / eta
        yield x


def quasi_global_nesterov(r):
    return quasi_global(r, nesterov=True)


def quasi_global_adam(r):
    """QG-Adam, Lin et al., ICML 2021, and its code: d = (x - x+) / |x - x+|
        u = (b1 m + g) / (sqrt(b2 v + (1 - b2) g^2) + 1e-8)
        x+ = W (x - eta u);  m <- b1 m + (1 - b1) d;  v <- b2 v + (1 - b2) d^2
    """
    b1, b2 = r.keys["momentum"], r.keys["decay"]
    x, m, v = r.x0, 0 * r.x0, 0 * r.x0
    for t, eta in enumerate(r.rate):
        g = r.g(x)
        u = (b1 * m + g) / (np.sqrt(b2 * v + (1 - b2) * g ** 2) + 1e-8)
        old, x = x, r.W[t] @ (x - eta * u)
        d = (old - x) / np.linalg.norm(old - x, axis=1)[:, None]
        m, v = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d ** 2
        yield x


def rounds(r, outer_step):
    """H own steps, then outer_step(round, x) gives where the next begin."""
    x = r.x0
    for t, eta in enumerate(r.rate):
        x = x - eta * r.g(x)
        if r.round_after(t) is not None:
            x = outer_step(r.round_after(t), x)
        yield x


def slowmo(r):
    """Wang et al., ICLR 2020, Alg. 1, gamma the inner rate, W for the mean:
        u <- beta u + (x_0 - W x_tau) / gamma;  x <- x_0 - alpha gamma u"""
    beta, alpha, gamma = r.keys["momentum"], r.keys["rate"], r.rate[0]
    begin, u = r.x0, 0 * r.x0

    def step(k, x):
        nonlocal begin, u
        u = beta * u + (begin - r.W[k] @ x) / gamma
        begin = begin - alpha * gamma * u
        return begin
    return rounds(r, step)


def diloco(r):
    """Douillard et al., 2023, Alg. 1, Nesterov's outer step:
        D = theta - W theta_i;  m <- mu m + D;  theta <- theta - a (D + mu m)"""
    mu, alpha = r.keys["momentum"], r.keys["rate"]
    theta, m = r.x0, 0 * r.x0

    def step(k, x):
        nonlocal theta, m
        D = theta - r.W[k] @ x
        m = mu * m + D
        theta = theta - alpha * (D + mu * m)
        return theta
    return rounds(r, step)


def sparta_diloco(r):
    """Beton et al. (SPARTA), 2025, with DiLoCo. share 1, so that the mask is
    all: W in every round, DiLoCo's outer step in every K-th."""
    mu, alpha, K = (r.keys[k] for k in ("momentum", "rate", "outer_every"))
    theta, m = r.x0, 0 * r.x0

    def step(k, x):
        nonlocal theta, m
        x = r.W[k] @ x
        if (k + 1) % K != 0:
            return x
        D = theta - x
        m = mu * m + D
        theta = theta - alpha * (D + mu * m)
        return theta
    return rounds(r, step)


def noloco(r):
    """Kolehmainen et al., 2025, a, b, c of its code; means over the pair:
        D = theta - f;  d <- a d + b mean(D) + c (mean(f) - f);  f <- f + d"""
    a, b, c = (r.keys[k] for k in ("momentum", "rate", "consensus"))
    f, d = r.x0, 0 * r.x0

    def step(k, x):
        nonlocal f, d
        d = a * d + b * r.W[k] @ (x - f) + c * (r.W[k] @ f - f)
        f = f + d
        return f
    return rounds(r, step)


def gasloc(r):
    """Cagnasso et al., 2026: L = I - W
        y = theta + alpha (theta' - theta)
        theta+ = y - a L y + c (y - y_before), y_before = theta(0) at first"""
    alpha, a, c = (r.keys[k] for k in ("rate", "consensus", "momentum"))
    theta, before = r.x0, r.x0

    def step(k, x):
        nonlocal theta, before
        y = theta + alpha * (x - theta)
        theta = y - a * (y - r.W[k] @ y) + c * (y - before)
        before = y
        return theta
    return rounds(r, step)


def eager(r):
    """Kale et al., 2025, Alg. 2: D_i = theta_i - x_i
        D = D_i / n + sum_(j != i) D_j / n of the round before
        m <- mu m + D;  theta_i <- theta_i - alpha (D + mu m)"""
    mu, alpha = r.keys["momentum"], r.keys["rate"]
    theta, m, others = r.x0, 0 * r.x0, 0 * r.x0

    def step(_, x):
        nonlocal theta, m, others
        own = theta - x
        D = own / r.n + others
        others = (own.sum(axis=0) - own) / r.n
        m = mu * m + D
        theta = theta - alpha * (D + mu * m)
        return theta
    return rounds(r, step)


def streaming(r):
    """Streaming DiLoCo, Douillard et al., 2025, Alg. 2: fragment p = k mod P in
    round k, merged tau = 1 step after it was sent; at the end at once.
        D = theta_p - mean x_p;  m_p <- mu m_p + D
        theta_p <- theta_p - alpha (D + mu m_p)
        x_p <- a x_p + (1 - a) theta_p"""
    mu, alpha, a = (r.keys[k] for k in ("momentum", "rate", "blend"))
    parts = np.array_split(np.arange(r.x0.shape[1]), r.keys["fragments"])
    x, theta, m = r.x0, r.x0.copy(), 0 * r.x0
    sent = None

    def merge(x, k, sent):
        p = parts[k % len(parts)]
        D = theta[:, p] - r.W[k] @ sent[:, p]
        m[:, p] = mu * m[:, p] + D
        theta[:, p] -= alpha * (D + mu * m[:, p])
        x = x.copy()
        x[:, p] = a * x[:, p] + (1 - a) * theta[:, p]
        return x

    for t, eta in enumerate(r.rate):
        x = x - eta * r.g(x)
        if sent is not None:
            x = merge(x, *sent)
            sent = None
        if r.round_after(t) is not None:
            sent = r.round_after(t), x
        yield merge(x, *sent) if sent and t + 1 == r.steps else x


def sparse_loco(r):
    """SparseLoCo, Sarfi et al., 2025, Alg. 1, Q the k largest:
        e = b e + phi - x_i;  q = Q(e);  e <- e - q;  phi <- phi - a mean q"""
    alpha, b = r.keys["rate"], r.keys["decay"]
    k = round(r.keys["density"] * r.x0.shape[1])
    phi, e = r.x0, 0 * r.x0

    def step(_, x):
        nonlocal phi, e
        v = b * e + phi - x
        q = largest(v, k)
        e = v - q
        phi = phi - alpha * q.mean(axis=0)
        return phi
    return rounds(r, step)


def tree_of_lists(lists, k):
    """gTopKAllReduce: along a binomial tree L <- the k largest of L + L_child.
    A list is {index: (value, whose values are in it)}."""
    lists, n, span = list(lists), len(lists), 1
    while span < n:
        for parent in range(0, n - span, 2 * span):
            both = dict(lists[parent])
            for i, (value, whose) in lists[parent + span].items():
                v, w = both.get(i, (0, set()))
                both[i] = (v + value, w | whose)
            kept = sorted(both, key=lambda i: (-abs(both[i][0]), i))[:k]
            lists[parent] = {i: both[i] for i in kept}
        span *= 2
    return lists[0]


def gtop_k(r):
    """gTop-k S-SGD, Shi et al., ICDCS 2019, Alg. 4, of differences:
        v_i = e_i + phi - x_i;  G = gTopKAllReduce(top_k(v));  phi -= a G / n
        e_i = v_i less what of it is in G
    The paper takes what is at an index of G to be in it, and so loses what a
    merge dropped; here it stays with its owner."""
    alpha, d = r.keys["rate"], r.x0.shape[1]
    k = round(r.keys["share"] * d)
    phi, e = r.x0, 0 * r.x0

    def step(_, x):
        nonlocal phi, e
        v = e + phi - x
        top = [{i: (row[i], {peer}) for i in np.argsort(-abs(row))[:k]}
               for peer, row in enumerate(v)]
        G, e = tree_of_lists(top, k), v.copy()
        phi = phi.copy()
        for i, (value, whose) in G.items():
            phi[:, i] -= alpha * value / r.n
            e[list(whose), i] = 0
        return phi
    return rounds(r, step)


CASES = [
    {"name": "qg-dsgdm", "keys": dict(ER, momentum=0.9, decay=0.8),
     "rule": quasi_global},
    {"name": "qg-dsgdm-n", "keys": dict(ER, momentum=0.7, decay=0.9),
     "rule": quasi_global_nesterov},
    {"name": "qg-adam", "keys": dict(ER, momentum=0.9, decay=0.99),
     "rule": quasi_global_adam},
    {"name": "slowmo", "keys": dict(ER, every=4, momentum=0.5, rate=0.9),
     "rule": slowmo},
    {"name": "diloco", "keys": dict(COMPLETE, every=5, momentum=0.6, rate=0.7),
     "rule": diloco},
    {"name": "diloco", "keys": dict(ER, every=3, momentum=0.6, rate=0.7),
     "rule": diloco},
    {"name": "sparta-diloco", "rule": sparta_diloco,
     "keys": dict(COMPLETE, every=2, momentum=0.6, rate=0.7, share=1,
                  outer_every=5)},
    {"name": "noloco", "rule": noloco,
     "keys": {"topology": "random-matching", "every": 3, "momentum": 0.5,
              "rate": 0.7, "consensus": 0.7}},
    {"name": "gasloc", "rule": gasloc,
     "keys": dict(ER, every=3, rate=0.7, consensus=0.8, momentum=0.3)},
    {"name": "eager", "keys": {"every": 3, "momentum": 0.6, "rate": 0.7},
     "rule": eager},
    {"name": "streaming", "rule": streaming,
     "keys": dict(COMPLETE, every=3, momentum=0.6, rate=0.7, fragments=1,
                  blend=0.5)},
    {"name": "streaming", "rule": streaming,
     "keys": dict(COMPLETE, every=2, momentum=0.6, rate=0.7, fragments=5,
                  blend=0.3)},
    {"name": "sparse-loco", "rule": sparse_loco, "apart": 0,
     "keys": {"every": 3, "rate": 0.8, "decay": 0.9, "share": 0.2,
              "compressor": "top-k", "density": 0.4}},
    {"name": "gtop-k", "rule": gtop_k, "apart": 0,
     "keys": {"every": 2, "rate": 0.9, "share": 0.4}},
    {"name": "two-level", "rule": mean_of_gradients, "apart": 0,
     "keys": {"regions": 1, "share": 1}},
]
