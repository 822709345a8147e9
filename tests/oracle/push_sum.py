"""Push-sum: x and a weight w, P column-stochastic; models are z = x / w."""
import numpy as np

DIRECTED = {"topology": "file-directed"}


def sgp(r):
    """Assran et al., ICML 2019, Alg. 1:
        x <- P (x - eta g(z));  w <- P w;  z = x / w"""
    x, w = r.x0, np.ones(r.n)
    for t, eta in enumerate(r.rate):
        x = r.C[t] @ (x - eta * r.g(x / w[:, None]))
        w = r.C[t] @ w
        yield x / w[:, None], w


def overlap(r):
    """Assran et al., ICML 2019, Alg. 2 (OSGP), tau = 1: what is sent after step
    t is there when step t + 1 has been taken.
        x <- x - eta g(z) + what came;  send P_ji x, keep P_ii x
    The first step comes before the first message."""
    x, w = r.x0, np.ones(r.n)
    way_x, way_w = 0 * x, 0 * w
    for t, eta in enumerate(r.rate):
        x, w = x - eta * r.g(x / w[:, None]) + way_x, w + way_w
        stay = np.diag(np.diag(r.C[t]))
        way_x, way_w = (r.C[t] - stay) @ x, (r.C[t] - stay) @ w
        x, w = stay @ x, stay @ w
        if t + 1 == r.steps:
            x, w = x + way_x, w + way_w
        yield x / w[:, None], w


def running_sums(r):
    """Vaidya et al., 2011: totals S_ij <- S_ij + P_ji x_i are sent, their
    growth is added. All equally fast and nothing lost: what was given after
    step t - 1 comes after step t. Steps are those of z:
        z <- z - eta g(z);  x = w z;  give;  take what was given before
    A last round, without a step, ends the run."""
    x, w = r.x0, np.ones(r.n)
    way_x, way_w = 0 * x, 0 * w
    for t, eta in enumerate(r.rate):
        z = x / w[:, None]
        x = w[:, None] * (z - eta * r.g(z))
        stay = np.diag(np.diag(r.C[0]))
        old_x, old_w = way_x, way_w
        way_x, way_w = (r.C[0] - stay) @ x, (r.C[0] - stay) @ w
        x, w = stay @ x + old_x, stay @ w + old_w
        if t + 1 == r.steps:
            x, w = stay @ x + way_x, stay @ w + way_w
        yield x / w[:, None], w


CASES = [
    {"name": "sgp-sync", "keys": DIRECTED, "rule": sgp},
    {"name": "sgp-sync", "keys": {"topology": "one-peer-exponential"},
     "rule": sgp},
    {"name": "overlap-sgp", "keys": DIRECTED, "rule": overlap},
    {"name": "running-sums", "keys": DIRECTED, "rule": running_sums},
]
