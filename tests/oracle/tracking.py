"""Methods without a bias on unlike data, and those over public copies."""
import numpy as np

from averaging import ER


def d2(r):
    """Tang et al., ICML 2018, Alg. 1, over (W + I) / 2:
        x(1) = W (x(0) - eta g(0))
        x(t+1) = W (2 x(t) - x(t-1) - eta g(t) + eta g(t-1))"""
    W, eta = r.W[0], r.rate[0]
    old, x = r.x0, W @ (r.x0 - eta * r.g(r.x0))
    yield x
    for _ in range(1, r.steps):
        old, x = x, W @ (2 * x - old - eta * (r.g(x) - r.g(old)))
        yield x


def extra(r):
    """Shi et al., SIAM J. Optimization 2015, (2.13):
        x(1) = W x(0) - eta g(0)
        x(t+2) = (I + W) x(t+1) - (I + W)/2 x(t) - eta (g(t+1) - g(t))"""
    W, eta, eye = r.W[0], r.rate[0], np.eye(r.n)
    old, x = r.x0, W @ r.x0 - eta * r.g(r.x0)
    yield x
    for _ in range(1, r.steps):
        old, x = x, ((eye + W) @ x - (eye + W) / 2 @ old
                     - eta * (r.g(x) - r.g(old)))
        yield x


def gradient_tracking(r, R, C):
    """x(t+1) = R (x(t) - eta y(t));  y(t+1) = C y(t) + g(t+1) - g(t), y(0) =
    g(0). Di Lorenzo and Scutari (NEXT), IEEE TSIPN 2016, with linear
    surrogates, where R = C = W; Pu et al., 2018, Alg. 1 (Push-Pull) on directed
    graphs."""
    x, y = r.x0, r.g(r.x0)
    for t, eta in enumerate(r.rate):
        old, x = x, R[t] @ (x - eta * y)
        y = C[t] @ y + r.g(x) - r.g(old)
        yield x


def gt(r):
    return gradient_tracking(r, r.W, r.W)


def push_pull(r):
    return gradient_tracking(r, r.W, r.C)


def beer(r):
    """Zhao et al., NeurIPS 2022, Alg. 1, C the identity:
        x+ = x + gamma (W - I) H - eta V       H+ = H + C(x+ - H)
        V+ = V + gamma (W - I) G + g+ - g      G+ = G + C(V+ - G)
    V(0) = g(0); H(0) = x(0), one for all, as the copies here begin."""
    L, gamma = r.W[0] - np.eye(r.n), r.keys["consensus"]
    x, V, H, G = r.x0, r.g(r.x0), r.x0, np.zeros_like(r.x0)
    G = G + (V - G)
    first = True
    for eta in r.rate:
        if not first:
            V = V + gamma * L @ G + r.g(x) - r.g(old)
            G = G + (V - G)
        old, first = x, False
        x = x + gamma * L @ H - eta * V
        H = H + (x - H)
        yield x


def largest(v, k):
    """The k largest of each row by size."""
    q = np.zeros_like(v)
    for i, row in enumerate(v):
        at = np.argsort(-abs(row), kind="stable")[:k]
        q[i, at] = row[at]
    return q


def choco(r):
    """Koloskova et al., ICML 2019, Alg. 2:
        y = x - eta g(x);  q = Q(y - xh);  xh <- xh + q
        x <- y + gamma (W - I) xh
    xh(0) = x(0), one for all, where the paper has 0."""
    L, gamma = r.W[0] - np.eye(r.n), r.keys["consensus"]
    k = r.keys.get("density")
    x, xh = r.x0, r.x0
    for eta in r.rate:
        y = x - eta * r.g(x)
        q = y - xh if k is None else largest(y - xh, round(k * y.shape[1]))
        xh = xh + q
        x = y + gamma * L @ xh
        yield x


def relay(r):
    """RelaySGD, Vogels et al., NeurIPS 2021, Alg. 1, on a tree, one x(0):
        y = x - eta g(x)
        m_ij = y_i + sum_(k != j) m_ki(before);  c_ij = 1 + sum c_ki(before)
        x_i = (y_i + sum_j m_ji + (n - 1 - sum_j c_ji) x(0)) / n"""
    near = [[j for j in range(r.n) if j != i and r.W[0][i, j] > 0]
            for i in range(r.n)]
    x = r.x0
    m = {(i, j): 0 * x[0] for i in range(r.n) for j in near[i]}
    c = {edge: 0 for edge in m}
    for eta in r.rate:
        y = x - eta * r.g(x)
        m, c = ({(i, j): y[i] + sum(m[k, i] for k in near[i] if k != j)
                 for i, j in m},
                {(i, j): 1 + sum(c[k, i] for k in near[i] if k != j)
                 for i, j in c})
        x = np.array([
            (y[i] + sum(m[j, i] for j in near[i])
             + (r.n - 1 - sum(c[j, i] for j in near[i])) * r.x0[i]) / r.n
            for i in range(r.n)])
        yield x


CASES = [
    {"name": "d2", "keys": ER, "rule": d2},
    {"name": "extra", "keys": ER, "rule": extra},
    {"name": "gt", "keys": ER, "rule": gt},
    {"name": "push-pull", "keys": {"topology": "file-directed"},
     "rule": push_pull},
    {"name": "beer", "keys": dict(ER, consensus=0.3), "apart": 0,
     "rule": beer},
    {"name": "choco", "keys": dict(ER, consensus=0.5), "apart": 0,
     "rule": choco},
    {"name": "choco", "apart": 0, "rule": choco,
     "keys": dict(ER, consensus=0.2, compressor="top-k", density=0.4)},
    {"name": "relaysgd", "keys": {"topology": "binary-tree"}, "apart": 0,
     "rule": relay},
]
