"""Exchanges of two, docs/protocol.md section 3: swaps both ways, pulls."""
import asyncio

import messages as m
from channel import ProtocolError
from messages import Header, Kind

REPLIES = 4          # swaps answered at a time
FEW = 4              # neighbours: their swaps weigh more
ANSWER_S = 2.0       # then what we began is given up


def average(into, weight, received, sent):
    for k, (r, s) in enumerate(zip(received, sent)):
        into[k] += weight * (r - s)


class Exchanges:
    """What a Member knows of swaps and pulls."""

    def under_way(self):
        waiting = [s for link in self.links.values()
                   for s in link.swaps.values() if not s["merged"]]
        return len(waiting)

    def hear_exchange(self, link, header):
        swap = link.swaps.get(header.exchange())
        if header.kind == Kind.REQUEST:
            self.requested(link, header)
        elif header.kind == Kind.ACCEPT and swap:
            swap["overlap"] = header.more[0] if header.more else 1
            if not swap["gave"]:
                self.give(link, header, swap, header.more)
        elif header.kind == Kind.PROBE:
            self.probed(link, header, swap)
        elif header.kind == Kind.ABORT:
            self.abort(link, header, swap)
        elif header.kind == Kind.ACK and swap:
            self.acknowledged(link, header, swap)
        elif header.kind in (Kind.BUSY, Kind.ABORTED) and swap:
            self.forget(link, header)

    def requested(self, link, header):
        if header.pattern == m.PULL:
            link.say(header.answer(Kind.ACCEPT))
            link.send_model(
                Header(Kind.MODEL, m.PULL, False, header.incarnation,
                       header.counter, header.step, 4 * len(self.x)),
                m.payload(self.values(link, self.x)))
        elif header.pattern != m.SWAP or self.under_way() >= REPLIES:
            link.say(header.answer(Kind.BUSY))
        else:
            overlap = max(1 + self.under_way(), *header.more, 1)
            swap = link.swaps[header.exchange()] = self.swap(overlap)
            link.say(Header(Kind.ACCEPT, m.SWAP, False, header.incarnation,
                            header.counter, header.step, 0, (overlap,)))
            self.give(link, header, swap, ())

    def swap(self, overlap):
        return {"sent": self.x[:], "overlap": overlap, "merged": False,
                "gave": False, "theirs": None}

    def give(self, link, header, swap, more):
        swap["gave"] = True
        link.send_model(
            Header(Kind.MODEL, m.SWAP, not header.mine, header.incarnation,
                   header.counter, header.step, 4 * len(self.x), more),
            m.payload(self.values(link, swap["sent"])))

    def swap_model(self, link, header, values):
        swap = link.swaps.get(header.exchange())
        if swap is None:
            return
        swap["theirs"] = values
        if header.mine:
            self.merge(swap)
            link.say(header.answer(Kind.ACK))

    def merge(self, swap):
        """All others are neighbours: section 3 asks how many."""
        few = len(self.addresses) - 1 <= FEW
        swap["weight"] = min(0.5, (0.7 if few else 0.5) / swap["overlap"])
        average(self.x, swap["weight"], swap["theirs"], swap["sent"])
        swap["merged"] = True

    def acknowledged(self, link, header, swap):
        if not header.mine and swap["theirs"]:
            self.merge(swap)
            link.say(header.answer(Kind.ACK))
        self.done[link.rank] += 1
        self.forget(link, header)

    def forget(self, link, header):
        link.swaps.pop(header.exchange(), None)
        if self.asked and self.asked[:2] == (link.rank, header.counter):
            self.asked = None

    def probed(self, link, header, swap):
        if header.mine and swap:
            link.say(header.answer(Kind.ACK if swap["merged"]
                                   else Kind.ACCEPT))
        elif not header.mine:
            link.say(header.answer(Kind.ABORT if swap else Kind.ACK))
        else:
            link.say(header.answer(Kind.ABORTED))

    def abort(self, link, header, swap):
        if swap and swap["merged"]:
            average(self.x, -swap["weight"], swap["theirs"], swap["sent"])
        self.forget(link, header)
        link.say(header.answer(Kind.ABORTED))

    async def ask(self, pattern, every_s):
        """Begins an exchange with somebody, again and again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(every_s)
            if self.asked and self.asked[2] < loop.time() - ANSWER_S:
                self.asked = None
            if not self.links or self.asked or self.quiet:
                continue
            try:
                self.ask_once(self.dice.choice(list(self.links.values())),
                              pattern)
            except ProtocolError as error:
                self.closed[str(error)] += 1

    def ask_once(self, link, pattern):
        self.counter += 32
        more = (1 + self.under_way(),) if pattern == m.SWAP else ()
        header = Header(Kind.REQUEST, pattern, True,
                        self.hello.incarnation, self.counter, self.counter,
                        4 * len(self.x), more)
        if pattern == m.SWAP:
            self.asked = (link.rank, self.counter,
                          asyncio.get_running_loop().time())
            link.swaps[(m.SWAP, False, *header.exchange()[2:])] = \
                self.swap(more[0])
        link.say(header)
