"""What a loop of Python's gets wrong, and what it is told. mistakes.py PEER.yaml
LONELY.yaml SIMULATED.yaml: LONELY waits for a member that never comes."""

import copy
import os
import subprocess
import sys
import threading
import time
import warnings

import kith
import numpy
from kith.vectors import Vectors

try:
    import torch
except ImportError:
    torch = None

FILE, LONELY, SIMULATED = sys.argv[1:4]
warnings.simplefilter("always")


def told(wanted, call, *kinds):
    """call() raises one of `kinds`, kith.Error unless told, and says so."""
    try:
        call()
    except kinds or (kith.Error,) as error:
        print(f"  {type(error).__name__}: {error}")
        assert wanted in str(error), (wanted, error)
    else:
        raise AssertionError(f"nothing was said of {wanted!r}")


def peer(model=None, file=FILE, **options):
    model = [numpy.zeros(1000, "f")] if model is None else model
    return kith.Peer(model, file, **{"start": "own", **options})


# What is no model, or lies where it cannot be read in place.
for model, name in ((None, "NoneType"), ("model", "str"), (7, "int"),
                    (kith.Peer, "type")):
    told(f"the model: found {name}; allowed: a module",
         lambda model=model: kith.Peer(model, FILE), TypeError)
told("numpy.ascontiguousarray()",
     lambda: peer(numpy.asfortranarray(numpy.ones((2, 3), "f"))), TypeError)
still = numpy.zeros(3, "f")
still.flags.writeable = False
told("read-only; numpy.array()", lambda: peer(still), TypeError)

# Options, before anything is opened.
told("timeout: None", lambda: peer(timeout=None), ValueError)
told("log: found str", lambda: peer(log="train.log"), TypeError)

# A report in per cent is refused, and the peer goes on.
with peer() as own:
    told("accuracy: 87.5; allowed: a share",
         lambda: own.report(0.3, 87.5), ValueError)
    own.report(0.3, float("nan"))
    assert own.step(0.5) and own.stats["steps"] == 1
    told("stays in its process", lambda: copy.deepcopy(own), TypeError)
told("this peer is closed", lambda: own.step(0.5))


# A step that would count twice.
class Optimiser:
    """PyTorch's hooks behind a step."""

    def __init__(self):
        self.hooks = []

    def register_step_post_hook(self, hook):
        self.hooks.append(hook)
        return self

    def remove(self):
        self.hooks.pop()

    def step(self):
        for hook in self.hooks:
            hook(self, (), {})


with peer() as own:
    one, other = Optimiser(), Optimiser()
    attached = own.attach(one)
    told("a step would count twice; of several", lambda: own.attach(other))
    told("leave one of the two out", lambda: own.step(0.5))
    one.step()
    assert own.stats["steps"] == 1 and not other.hooks
    attached.remove()
    one.step()
    own.step(0.5)
    own.attach(other)
    other.step()
    assert own.stats["steps"] == 3

# Memory that is not what it was is not read.
grown = numpy.zeros(8, "f")
taken = Vectors([grown])
taken.check()
grown.resize(1 << 20, refcheck=False)
told("[0] lies elsewhere", taken.check)
if torch is not None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    taken = Vectors(net)
    net.load_state_dict(copy.deepcopy(net.state_dict()))
    taken.check()
    net[0].bias = torch.nn.Parameter(torch.zeros(3))
    told("0.bias lies elsewhere", taken.check)
    taken = Vectors(net)
    net[1].running_mean = net[1].running_mean + 1
    told("1.running_mean lies elsewhere", taken.check)
    assert len(Vectors(net, "0.weight")) == 3  # it, mean and variance


# Steps that change nothing of what peers average: said once, and not of a loop
# that does change it, be it now and then.
def warned(step):
    x = numpy.zeros((40, 1000), "f")
    with warnings.catch_warnings(record=True) as found, peer(x) as own:
        warnings.simplefilter("always")
        for i in range(100):
            step(x, i)
            own.step(0.5)
    return [str(one.message) for one in found]


def now_and_then(x, i):
    if i % 20 == 19:
        x[-1] += 1e-6


said = warned(lambda x, _: x - 1)
print(" ", said)
assert "w -= ..., and not w = w - ..." in said[0], said
# Nor has it exchanged anything, which close() says of either.
assert len(said) == 2 and "rank 0 trained alone: of " in said[1], said
assert warned(now_and_then) == said[1:]

# A share that an earlier start has done.
for expected in [], ["the share of steps was done before"]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        own = peer(x := numpy.zeros(9, "f"), FILE.replace("at-once", "short"),
                   start="auto")
    assert [str(one.message)[:34] for one in found] == expected, found
    while not own.over:
        x += 1
        own.step(0.5)
    own.close()

# A save of the file's that fails: nobody has given a log, the loop warns, and
# close(), whose own fails too, raises.
FOLDER = os.path.join(os.path.dirname(FILE), "often")
own = peer(x := numpy.zeros(9, "f"), FILE.replace("at-once", "often"))
os.rename(FOLDER, FOLDER + ".away")
with open(FOLDER, "w", encoding="utf-8"), \
        warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    while not found:
        x += 1
        own.step(0.5)
        time.sleep(0.01)
print(" ", found[0].message)
assert "kith could not save: save-failed" in str(found[0].message), found
assert found[0].filename == __file__
told("save", own.close)

# A model that has diverged: stats have it, the save before stays, and close()
# says so.
x = numpy.zeros(1000, "f")
own = peer(x)
own.save("before.save")
assert own.stats["finite"]
x[7] = numpy.nan
told("not finite", lambda: own.save("before.save"))
assert not own.stats["finite"]
own.step(0.5)
told("writing the final save", own.close)
with peer(x, load="before.save"):
    assert (x == 0).all()

# A member that never comes: Peer() says so where it may wait so long; one of
# less patience warns, and its next step raises it. What was saved before stays.
with peer(numpy.ones(1000, "f")) as own:
    own.step(0.5)
SAVE = os.path.join(os.path.dirname(LONELY), "model", "pair.save")
with open(SAVE, "rb") as file:
    saved = file.read()
told("has nobody to exchange with", lambda: peer(file=LONELY, timeout=60))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    own = peer(file=LONELY, timeout=1)
assert "has waited 1 s" in str(found[0].message), found
while own.late:
    try:
        own.step(0.5)
    except kith.Error as error:
        assert "has nobody to exchange with" in str(error), error
        break
told("this peer is closed", lambda: own.step(0.5))
with open(SAVE, "rb") as file:
    assert file.read() == saved

# Members of another model: both say what differs, when `wait:` has ended.
heard = []
other = threading.Thread(target=lambda: heard.append(told(
    "model size differs: peer has 1000 parameters, we have 999",
    lambda: peer(numpy.zeros(999, "f"), LONELY.replace("/0/", "/1/"),
                 timeout=60))))
other.start()
told("model size differs: peer has 999 parameters, we have 1000",
     lambda: peer(file=LONELY, timeout=60))
other.join()
assert heard == [None]


# The simulator.
class Trainer:
    def __init__(self, rank):
        self.params = [numpy.zeros(9, "f")]

    def step(self):
        self.params[0] += 1


def simulate(make=Trainer, **options):
    return kith.simulate(make, SIMULATED, folder=None, **options)


same = Trainer(0)
told("each make_trainer(rank) has its own", lambda: simulate(lambda _: same))
told("the model: found NoneType", lambda: simulate(lambda _: None), TypeError)
told("accuracy: 87; allowed: a share",
     lambda: simulate(evaluate=lambda values: (0.3, 87)), ValueError)
assert simulate(evaluate=lambda values: [0.3, 0.87])["accuracy"]["mean"] == 0.87
assert simulate(settings="stop.steps=7")["steps"] == 28

# No library, and another one.
for path in "/nowhere/libkith.so.0", "libm.so.6":
    said = subprocess.run(
        [sys.executable, "-c", "import kith; kith.version()"], text=True,
        env={**os.environ, "KITH_LIBRARY": path}, capture_output=True,
        check=False).stderr.splitlines()[-1]
    print(" ", said)
    assert said.startswith("kith.Error: loading libkith: "), said
    assert path in said and "KITH_LIBRARY" in said, said
