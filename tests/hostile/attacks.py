"""What a member does that is not honest: TABLE, a name and a line for each.

An attack changes the values that are sent, swallows messages, or has a life of
its own beside the honest member. The formulas of alie, ipm and dissensus are
those of the ClippedGossip code."""
import asyncio
import dataclasses
import math
import statistics
import typing

import abuse
import messages as m
from messages import Header, Kind

NAN, INFINITY = float("nan"), float("inf")
HUGE = 3e38


def sent_alike(value):
    return lambda member, link, x: [value] * len(x)


def times(factor):
    return lambda member, link, x: [factor * v for v in x]


def huge(member, link, x):
    """Finite, of a magnitude that squares to infinity."""
    return [HUGE if k % 2 else -HUGE for k in range(len(x))]


def gauss(member, link, x):
    """Noise ten times as far as models are from zero."""
    spread = 10 * math.sqrt(sum(v * v for v in x) / len(x)) + 1e-3
    return [v + member.dice.gauss(0, spread) for v in x]


def columns(member, x):
    """Coordinate by coordinate what the neighbours sent last."""
    models = [v for v in member.latest.values() if len(v) == len(x)
              and all(map(math.isfinite, v))]
    return list(zip(*(models or [x])))


def deviation(values, mean):
    """As statistics.pstdev, which is exact and takes twenty times as long: a
    round waits for us meanwhile."""
    return math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))


def alie(member, link, x):
    """A little is enough: mean - z deviation, inside the honest spread."""
    n, ours = len(member.addresses), 1
    supporters = n // 2 + 1 - ours
    share = (n - ours - supporters) / (n - ours)
    z = statistics.NormalDist().inv_cdf(share)
    means = [(statistics.fmean(c), c) for c in columns(member, x)]
    return [mean - z * deviation(c, mean) for mean, c in means]


def ipm(member, link, x):
    """Inner product manipulation: against the mean of the honest."""
    return [-0.5 * statistics.fmean(c) for c in columns(member, x)]


def dissensus(member, link, x):
    """Pulls each receiver away from the mean of its neighbours."""
    own = member.latest.get(link.rank, x)
    return [o + 1.5 * (o - statistics.fmean(c))
            for o, c in zip(own, columns(member, x))]


def free_ride(member, link, x):
    """Takes, and gives what it began with."""
    return member.first


def equivocate(member, link, x):
    """To everybody another model."""
    sign = 1 if link.rank % 2 else -1
    return [sign * (v + link.rank + 1) for v in x]


def stale(member, link, x):
    """The first model that ever came from somebody, for ever."""
    member.old = member.old or list(member.latest.values())[:1]
    return member.old[0] if member.old else x


def hold(member, link, header):
    """Accepts, says that it is at it, and never sends anything."""
    if header.kind == Kind.MODEL:
        link.expected = None
    if header.kind in (Kind.REQUEST, Kind.PROBE):
        answer = Kind.REQUEST if header.pattern == m.ROUND else Kind.ACCEPT
        link.say(header.answer(answer))
    return header.kind != Kind.BYE


def shapeless(member, link, header):
    """Answers with a model of another length."""
    if header.kind != Kind.REQUEST:
        return False
    link.say(header.answer(Kind.ACCEPT))
    abuse.misshapen(member, link, header)
    return True


@dataclasses.dataclass
class Attack:
    """One row: `values` are sent in place of x, `hear` may swallow a message,
    `run` lasts for the time it is given; `expect` stands in somebody's log."""
    text: str
    values: typing.Optional[typing.Callable] = None
    hear: typing.Optional[typing.Callable] = None
    run: typing.Optional[typing.Callable] = None
    expect: str = ""

    def vector(self, member, link, x):
        return self.values(member, link, x) if self.values else x

    def hears(self, member, link, header):
        return bool(self.hear and self.hear(member, link, header))

    async def last(self, member, seconds):
        if self.run:
            await self.run(member, seconds)
        else:
            await asyncio.sleep(seconds)


def life(action, pause_s=0.02):
    """An attack that does the same to every link, again and again."""
    async def run(member, seconds):
        await abuse.rapidly(member, seconds, action, pause_s)
    return run


GATED = "gated rank="
TABLE = {
    "nan": Attack("models of NaN", sent_alike(NAN), expect=GATED),
    "inf": Attack("models of infinity", sent_alike(INFINITY), expect=GATED),
    "huge": Attack("models of 3e38", huge, expect=GATED),
    "sign-flip": Attack("its model times -1", times(-1)),
    "scale": Attack("its model times 10", times(10)),
    "gauss": Attack("its model and ten times as much noise", gauss),
    "alie": Attack("mean - z deviation of the others' models", alie),
    "ipm": Attack("-0.5 times the mean of the others' models", ipm),
    "dissensus": Attack("draws everybody away from the mean", dissensus),
    "free-ride": Attack("gives its first model for ever", free_ride),
    "equivocate": Attack("to everybody another model", equivocate),
    "stolen-key": Attack("one key from several addresses",
                         run=life(abuse.second_place, 0.1),
                         expect="refused kind=two_places"),
    "stale-replay": Attack(
        "others' old models; old headers and records again", stale,
        run=life(abuse.replay, 0.1), expect="did not authenticate"),
    "wrong-shape": Attack(
        "models of other lengths, other values in headers", hear=shapeless,
        run=life(abuse.wrong_shape, 0.1), expect="a model of another size"),
    "oversized": Attack(
        "everything larger than it may be", run=life(abuse.oversized, 0.1),
        expect="impossible length"),
    "slot-holding": Attack("accepts and asks for all, sends nothing",
                           hear=hold, run=abuse.hold_on),
    "squatting": Attack("claims another member's rank",
                        run=life(abuse.squat, 0.1),
                        expect="refused kind=member"),
    "floods": Attack("connections, control messages, unasked models",
                     run=abuse.flood, expect="refused kind=preface"),
    "forged-rejoin": Attack("comes back as any incarnation, from any round",
                            run=life(abuse.rejoin, 0.1),
                            expect="incarnation=4294967295"),
    "control": Attack("every message out of order", run=life(abuse.disorder),
                      expect="a control frame that is no message"),
}
# It trains, so it is no affair of a vector's: cluster.py gives the last place
# to a `kith peer` whose labels are turned round.
TRAINED = {"label-flip": "a kith peer that learns label 9 - y"}
