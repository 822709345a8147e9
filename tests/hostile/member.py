"""A member of a cluster, as docs/protocol.md section 3 describes it.

It trains nothing: its model is a vector that it averages with others by swaps,
in mutual rounds on a complete graph, and gives away in pulls. An attack
(attacks.py) changes what it sends, or takes over altogether."""
import asyncio
import collections
import random
import struct

from cryptography.exceptions import InvalidTag

import messages as m
from channel import Channel, ProtocolError
from exchanges import Exchanges
from messages import Header, Kind
from rounds import Rounds

DIAL_S = 0.2
ENDS = (ProtocolError, ConnectionError, OSError, asyncio.TimeoutError,
        asyncio.IncompleteReadError, InvalidTag, struct.error, IndexError)


class Link:
    """An open session: whose it is, and the transfers on it."""

    def __init__(self, channel, hello, dialled):
        self.channel, self.rank = channel, hello.rank
        self.dialled = dialled
        self.born = asyncio.get_running_loop().time()
        self.hello = hello
        self.sent, self.held = 0, False
        self.expected = None
        self.parts = bytearray()
        self.swaps = {}

    def say(self, message):
        self.channel.send(m.control(message))

    def send_model(self, header, payload):
        self.say(header)
        m.send_payload(self.channel, self.sent, payload)
        self.sent += 1


class Member(Exchanges, Rounds):
    """Honest. `values(link, x)` and `hear` are what attacks replace."""

    def __init__(self, identity, addresses, suite=1):
        self.identity, self.addresses = identity, addresses
        self.suite, self.rank = suite, identity.rank
        self.links, self.open, self.tasks = {}, [], set()
        self.hello = m.Hello()
        self.x = None
        self.attack = None
        self.server = None
        self.counter = 0
        self.asked, self.quiet = None, False
        self.round, self.early = None, collections.defaultdict(dict)
        self.committed = collections.deque(maxlen=64)
        self.pulled = {}
        self.done = collections.Counter()   # by rank of the other
        self.closed = collections.Counter()
        self.latest = {}                    # last model of each neighbour
        self.first, self.old = None, []
        self.sent_round = None
        self.dice = random.Random(self.rank)

    # Connections.

    async def connect(self, rank, hello, source=None, identity=None):
        host, port = self.addresses[rank]
        reader, writer = await asyncio.open_connection(
            host, port, local_addr=(source, 0) if source else None)
        channel = Channel(reader, writer)
        try:
            await channel.initiate(identity or self.identity, self.suite)
            channel.send(hello.packed())
            return channel, m.hello(await channel.receive())
        except ENDS:
            channel.close()
            raise

    async def learn(self, rank):
        """As a visitor, what the cluster's experiment is."""
        channel, theirs = await self.connect(rank, m.Hello())
        channel.close()
        self.hello = m.Hello(theirs.experiment, theirs.dim, 0, self.rank, 0,
                             theirs.model)

    async def start(self, x):
        self.x, self.first = x, x[:]
        host, port = self.addresses[self.rank]
        self.server = await asyncio.start_server(self.accept, host, port)
        self.spawn(self.keep_dialling())

    def spawn(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def keep_dialling(self):
        while True:
            for rank in range(len(self.addresses)):
                if rank != self.rank and rank not in self.links:
                    try:
                        await self.dial(rank)
                    except ENDS as error:
                        self.closed[str(error)] += 1
            await asyncio.sleep(DIAL_S)

    async def dial(self, rank):
        channel, theirs = await self.connect(rank, self.hello)
        self.spawn(self.serve(Link(channel, theirs, True)))

    def accept(self, reader, writer):
        self.spawn(self.answer(Channel(reader, writer)))

    async def answer(self, channel):
        try:
            await channel.respond(self.identity, self.suite)
            channel.send(self.hello.packed())
            theirs = m.hello(await channel.receive())
            await self.serve(Link(channel, theirs, False))
        except ENDS as error:
            self.closed[str(error)] += 1
            channel.close()

    def settle(self, rank):
        """Of two connections that of the lower rank's dial is used."""
        links = [link for link in self.open if link.rank == rank]
        links.sort(key=lambda link: link.dialled != (self.rank < rank))
        self.links.pop(rank, None)
        if links:
            self.links[rank] = links[0]

    async def serve(self, link):
        """Reads a session to its end."""
        self.open.append(link)
        self.settle(link.rank)
        try:
            link.say(Header(Kind.PROBE, m.ROUND, self.rank < link.rank,
                            counter=self.number(), step=self.number()))
            if self.round and link.rank not in self.round.models:
                self.send_round(link)
            while await self.read(link):
                pass
        except ENDS as error:
            self.closed[str(error) or type(error).__name__] += 1
        self.open.remove(link)
        self.settle(link.rank)
        link.channel.close()

    async def read(self, link):
        data = await link.channel.receive(600)
        if data[0] == m.BURST:
            await self.burst(link, data)
        elif data[0] == m.REFUSED:
            raise ProtocolError("refused: " + m.NOTICES[data[1]])
        elif data[0] == m.CONTROL and data[1] & 0xf0 == 0x90:
            self.control(link, m.header(data[1:]))
        return data[0] != m.FIN

    async def burst(self, link, data):
        transfer, _, payload = await m.receive_burst(link.channel, data)
        if transfer == 2**64 - 1 or link.expected is None:
            return
        link.parts += payload
        if len(link.parts) == link.expected.payload_bytes:
            values = m.floats(bytes(link.parts))
            self.latest[link.rank] = values
            header, link.expected = link.expected, None
            self.received(link, header, values)

    def control(self, link, header):
        if header.kind == Kind.MODEL:
            link.expected, link.parts = header, bytearray()
        if self.attack and self.attack.hears(self, link, header):
            return
        if header.pattern == m.ROUND:
            self.hear_round(link, header)
        else:
            self.hear_exchange(link, header)

    def received(self, link, header, values):
        if header.pattern == m.ROUND:
            self.round_model(link, header, values)
        elif header.pattern == m.PULL:
            self.pulled[link.rank] = values
            link.say(Header(Kind.ACK, m.PULL, True, header.incarnation,
                            header.counter))
        else:
            self.swap_model(link, header, values)

    def values(self, link, x):
        """What is sent in place of x."""
        return self.attack.vector(self, link, x) if self.attack else x

    async def stop(self):
        for link in list(self.links.values()):
            try:
                link.channel.send(bytes([m.FIN]))
            except ENDS:
                pass
            link.channel.close()
        if self.server:
            self.server.close()
        while self.tasks:
            for task in list(self.tasks):
                task.cancel()
            # A wait that ends at that very moment forgets it was cancelled.
            await asyncio.wait(list(self.tasks), timeout=1)
