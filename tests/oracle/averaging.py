"""Averaging models over a graph, and all-reduces.

W(t) is (n, n), rows sum to 1; eta the learning rate; g(x) all gradients."""
import numpy as np

ER = {"topology": "erdos-renyi"}


def local(r):
    x = r.x0
    for eta in r.rate:
        x = x - eta * r.g(x)
        yield x


def adapt_then_combine(r):
    """Lian et al., NIPS 2017, in the order of Sayed, 2014, sec. 7; with H > 1
    Stich, ICLR 2019 / Li et al. (LD-SGD), 2019:
        H times x <- x - eta g(x);   x <- W(t) x
    Gossip-PGA (Chen et al., ICML 2021, Alg. 1), MATCHA (Wang et al., 2019),
    Moshpit (Ryabinin et al., NeurIPS 2021) and Epidemic Learning (de Vos et
    al., NeurIPS 2023) are this with their own W(t)."""
    x = r.x0
    for t, eta in enumerate(r.rate):
        x = x - eta * r.g(x)
        if r.round_after(t) is not None:
            x = r.W[r.round_after(t)] @ x
        yield x


def check_pga(r):
    """W(t) = J where (t + 1) mod H_g = 0."""
    J = np.ones((r.n, r.n)) / r.n
    for t in range(r.keys["period"] - 1, r.steps, r.keys["period"]):
        assert abs(r.W[t] - J).max() < 1e-12
    return adapt_then_combine(r)


def check_groups(r):
    """Every W(t) is a projection: means of groups."""
    for W in r.W:
        assert abs(W @ W - W).max() < 1e-12 and abs(W - W.T).max() < 1e-12
    return adapt_then_combine(r)


def check_epidemic(r):
    """The plain mean of what came and one's own."""
    for W in r.W:
        heard = (W > 0).astype(float)
        assert abs(W - heard / heard.sum(axis=1)[:, None]).max() < 1e-12
    return adapt_then_combine(r)


def check_laplacian(r):
    """MATCHA: W(t) = I - a sum_m B_m L_m, symmetric, with one a."""
    off = np.array([W - np.diag(np.diag(W)) for W in r.W])
    a = off.max()
    assert (np.isclose(off, 0) | np.isclose(off, a)).all()
    assert abs(off - off.transpose(0, 2, 1)).max() < 1e-15
    return adapt_then_combine(r)


def combine_while_adapting(r):
    """D-PSGD (Lian et al., NIPS 2017, Alg. 1) and GossipGraD (Daily et al.,
    2018, sec. 5):  x(t+1) = W(t) x(t) - eta g(x(t))
    The first round begins after the first step, which all take from x(0) as it
    is: its W is I. The last round ends after the last step."""
    x = r.x0
    for t, eta in enumerate(r.rate):
        mixed = r.W[t - 1] @ x if t > 0 else x
        x = mixed - eta * r.g(x)
        yield r.W[t] @ x if t + 1 == r.steps else x


def swift(r):
    """Bornstein et al., ICLR 2023, Alg. 1, all equally fast: of each neighbour
    the newest model that came, that of its step before.
        y(t) = x(t) - eta g(x(t))
        x_i(t+1) = W_ii y_i(t) + sum_j W_ij y_j(t-1);  x(1) = y(0)
    Nothing has come after the first step. A last round, without a step, ends
    the run."""
    W = r.W[-1]
    stay = np.diag(np.diag(W))
    x, before = r.x0, None
    for t, eta in enumerate(r.rate):
        y = x - eta * r.g(x)
        x = y if before is None else stay @ y + (W - stay) @ before
        before = y
        last = t + 1 == r.steps
        yield stay @ x + (W - stay) @ y if last else x


def clipped(r):
    """He et al., 2022, Alg. 1:  x_i <- y_i + sum_j W_ij clip(y_j - y_i, tau),
    clip(v, tau) = v min(1, tau / |v|). radius 0: tau is the distance of the
    second-farthest neighbour, as in the paper's code."""
    x = r.x0
    for t, eta in enumerate(r.rate):
        y = x - eta * r.g(x)
        x = y.copy()
        for i in range(r.n):
            near = [j for j in range(r.n) if j != i and r.W[t][i, j] > 0]
            far = sorted(np.linalg.norm(y[j] - y[i]) for j in near)
            tau = r.keys["radius"] or far[-2 if len(far) > 1 else -1]
            for j in near:
                v = y[j] - y[i]
                x[i] += r.W[t][i, j] * v * min(1, tau / np.linalg.norm(v))
        yield x


def mean_of_models(r):
    """All-reduce of models after a step: x_i <- mean_j (x_j - eta g_j(x_j)).
    Under plain SGD and one start that is x - eta mean g: synchronous SGD."""
    x = r.x0
    for eta in r.rate:
        y = x - eta * r.g(x)
        x = np.tile(y.mean(axis=0), (r.n, 1))
        yield x


def mean_of_gradients(r):
    """Das et al., 2016: x <- x - eta mean_j g_j(x), one x for all."""
    x = r.x0
    for eta in r.rate:
        x = x - eta * r.g(x).mean(axis=0)
        yield x


CASES = [
    {"name": "local", "keys": {}, "rule": local},
    {"name": "dpsgd-atc", "keys": ER, "rule": adapt_then_combine},
    {"name": "dpsgd-atc", "keys": {"topology": "star"},
     "rule": adapt_then_combine},
    {"name": "local-sgd", "keys": dict(ER, every=4),
     "rule": adapt_then_combine},
    {"name": "gossip-pga", "keys": {"graph": "ring", "period": 4},
     "rule": check_pga},
    {"name": "matcha", "keys": {"budget": 0.5}, "rule": check_laplacian},
    {"name": "moshpit", "keys": {"degree": 2, "every": 2},
     "rule": check_groups},
    {"name": "epidemic", "keys": {"degree": 2}, "rule": check_epidemic},
    {"name": "epidemic-oracle", "keys": {"degree": 4, "every": 2},
     "rule": check_epidemic},
    {"name": "dpsgd", "keys": ER, "rule": combine_while_adapting},
    {"name": "gossipgrad", "keys": {}, "rule": combine_while_adapting},
    {"name": "swift", "keys": ER, "rule": swift},
    {"name": "clipped", "keys": dict(ER, radius=0.5), "rule": clipped},
    {"name": "clipped", "keys": dict(ER, radius=0), "rule": clipped},
    {"name": "allreduce-ring", "keys": {}, "rule": mean_of_models},
    {"name": "allreduce-tree", "keys": {}, "rule": mean_of_models},
    {"name": "allreduce-doubling", "keys": {}, "rule": mean_of_models},
    {"name": "sync-sgd", "keys": {}, "apart": 0, "rule": mean_of_gradients},
]
