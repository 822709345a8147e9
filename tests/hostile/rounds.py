"""Mutual rounds on a complete graph, docs/protocol.md section 3."""
import asyncio

import messages as m
from exchanges import average
from messages import Header, Kind

SKIPPED = 16         # rounds for which somebody may still wait
ROUND_S = 1.0        # then what is missing is left out


class Round:
    """One round: our snapshot, what came, and which edges are decided."""

    def __init__(self, number, sent):
        self.number, self.sent = number, sent
        self.models, self.ready, self.told = {}, set(), set()
        self.committed, self.dropped = set(), set()


class Rounds:
    """What a Member knows of rounds: it follows those of its neighbours."""

    def number(self):
        return self.round.number if self.round else 0

    def tell(self, link, kind, number):
        link.say(Header(kind, m.ROUND, self.rank < link.rank, 0, number,
                        self.number()))

    def skip(self, number):
        """Says so to those who may wait for us in rounds that we leave out."""
        if self.round is None:
            return
        for missed in range(max(self.number() + 1, number - SKIPPED), number):
            for link in self.links.values():
                self.tell(link, Kind.ABORT, missed)

    def open_round(self, number):
        self.close_round()
        self.skip(number)
        self.round = Round(number, self.x[:])
        self.round.models = self.early.pop(number, {})
        for past in [n for n in self.early if n < number]:
            del self.early[past]
        self.sent_round = asyncio.get_running_loop().time()
        for link in list(self.links.values()):
            self.send_round(link)
            self.advance(link)

    def send_round(self, link):
        number = self.round.number
        link.send_model(
            Header(Kind.MODEL, m.ROUND, self.rank < link.rank, 0, number,
                   number, 4 * len(self.x)),
            m.payload(self.values(link, self.round.sent)))

    def close_round(self):
        """What is not committed by now is left out at both ends."""
        at = self.round
        if at is None or at.number in (n for n, _ in self.committed):
            return
        for rank in at.committed:
            average(self.x, 1 / len(self.addresses), at.models[rank], at.sent)
            self.done[rank] += 1
        self.committed.append((at.number, at.committed))
        for rank, link in self.links.items():
            if rank not in at.committed | at.dropped and self.rank < rank:
                self.tell(link, Kind.ABORT, at.number)

    def round_model(self, link, header, values):
        if self.round is None or header.counter > self.number():
            self.early[header.counter][link.rank] = values
            if self.may_open(header.counter):
                self.open_round(header.counter)
        elif header.counter == self.number():
            self.round.models[link.rank] = values
            self.advance(link)

    def may_open(self, number):
        """The round at hand is decided, lapsed, or left behind."""
        at = self.round
        if at is None or number > at.number + 1:
            return True
        late = asyncio.get_running_loop().time() > self.sent_round + ROUND_S
        return late or not self.links.keys() - at.committed - at.dropped

    def advance(self, link):
        at = self.round
        if link.rank not in at.models or link.rank in at.committed:
            return
        if self.rank > link.rank and link.rank not in at.told:
            at.told.add(link.rank)
            self.tell(link, Kind.READY, at.number)
        elif self.rank < link.rank and link.rank in at.ready:
            self.tell(link, Kind.ACK, at.number)
            self.decide(link.rank, at.committed)

    def decide(self, rank, into):
        into.add(rank)
        following = self.number() + 1
        if following in self.early and self.may_open(following):
            self.open_round(following)

    def hear_round(self, link, header):
        at, here = self.round, header.counter == self.number()
        if at is None or header.kind == Kind.MODEL:
            return
        if header.kind == Kind.READY and here:
            at.ready.add(link.rank)
            self.advance(link)
        elif header.kind == Kind.ACK and here and link.rank in at.told:
            self.decide(link.rank, at.committed)
        elif header.kind == Kind.ABORT and here:
            self.decide(link.rank, at.dropped)
        elif header.kind in (Kind.READY, Kind.PROBE) and \
                self.rank < link.rank:
            known = dict(self.committed).get(header.counter, ())
            self.tell(link, Kind.ACK if link.rank in known else Kind.ABORT,
                      header.counter)
