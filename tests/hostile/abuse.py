"""Attacks on the protocol itself: what attacks.py has in its table."""
import asyncio
import dataclasses
import itertools
import os
import struct

import messages as m
from member import ENDS
from messages import Header, Kind

LENGTHS = (0, 1, 4, 65472, 1 << 20, (1 << 31) - 1, 1 << 33, (1 << 63) - 1,
           (1 << 64) - 1)
BURSTS = (0, 1, 65473, 1047552, 1047553, (1 << 31), (1 << 32) - 1)
STRANGERS = 40       # connections of one wave of a flood


async def rapidly(member, seconds, action, pause_s=0.02):
    """`action` on every link until the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end:
        for rank in range(len(member.addresses)):
            if rank == member.rank:
                continue
            try:
                result = action(member, rank)
                if asyncio.iscoroutine(result):
                    await asyncio.wait_for(result, 2)
                elif rank in member.links:
                    writer = member.links[rank].channel.writer
                    await asyncio.wait_for(writer.drain(), 2)
            except ENDS as error:
                member.closed[str(error) or type(error).__name__] += 1
        await asyncio.sleep(pause_s)


def linked(action):
    """For actions that need an open session."""
    def act(member, rank):
        link = member.links.get(rank)
        return action(member, link) if link else None
    act.__doc__ = action.__doc__
    return act


def any_header(member):
    """Each value from where it hurts: small, nearly right, or the largest."""
    dice, at = member.dice, member.number()
    return Header(
        dice.choice(list(Kind)), dice.randrange(5), dice.random() < 0.5,
        dice.choice((0, 0, 1, 2**32 - 1)),
        dice.choice((0, at, at + 1, at + 2, at + 17, member.counter,
                     32 * dice.randrange(2000), 2**53, 2**64 - 1)),
        dice.choice((0, at, at + 1, at + 40, 2**40, 2**64 - 1)), 0,
        dice.choice(((), (), (1,), (8,), (0.5,))))


@linked
def disorder(member, link):
    """A handful of any messages; one in fifty is none at all."""
    for _ in range(20):
        header = any_header(member)
        if member.dice.random() < 0.02:
            link.say(broken(member, header))
        elif header.kind == Kind.MODEL:
            header.payload_bytes = 4 * len(member.x)
            link.send_model(header, m.payload(member.x))
        else:
            if header.kind == Kind.REQUEST:
                header.payload_bytes = 4 * len(member.x)
            link.say(header)


def broken(member, header):
    """Bytes that are nearly a header."""
    data = bytearray(header.packed())
    data[member.dice.randrange(len(data))] = member.dice.randrange(256)
    cut = member.dice.randrange(len(data) + 1)
    return bytes(data[:cut]) + os.urandom(member.dice.randrange(9))


def misshapen(member, link, header):
    """In place of a model one that is longer, shorter, or nothing."""
    size = 4 * len(member.x)
    size = member.dice.choice((0, 1, size - 4, size + 4, size // 2, 2 * size))
    link.send_model(
        dataclasses.replace(header, kind=Kind.MODEL, mine=not header.mine,
                            payload_bytes=size, more=()), bytes(size))


@linked
def wrong_shape(member, link):
    """In a round, in exchanges that nobody began, in a REQUEST."""
    dice = member.dice
    header = Header(Kind.REQUEST, dice.choice((m.SWAP, m.PUSH, m.PULL)), True,
                    0, member.counter + 32, 1, 4 * len(member.x) + 4,
                    dice.choice(((), (0,), (9,), (1, 1), (float("nan"),))))
    if dice.random() < 0.5:
        link.say(header)
    else:
        misshapen(member, link, Header(
            Kind.MODEL, m.ROUND, link.rank < member.rank, 0, member.number(),
            member.number()))


async def oversized(member, rank):
    """One of the many things whose length is announced."""
    dice = member.dice
    link = member.links.get(rank)
    choice = dice.randrange(7)
    if choice < 2 or link is None:
        await large_handshake(member, rank, choice)
    elif choice == 2:
        link.say(Header(Kind.MODEL, m.SWAP, True, 0, 32, 1,
                        dice.choice(LENGTHS)))
    elif choice == 3:
        link.channel.send(struct.pack(
            ">BQQI", m.BURST, link.sent, dice.choice(LENGTHS),
            dice.choice(BURSTS)))
    elif choice == 4:
        link.channel.send(bytes([m.CONTROL]) + bytes(60000))
    elif choice == 5:
        link.say(b"\xc1" + struct.pack(">QI", dice.choice(LENGTHS),
                                       dice.choice(BURSTS)))
        m.send_burst(link.channel, 2**64 - 1, 0, bytes(1 << 18))
    else:
        link.say(b"\xdd\xff\xff\xff\xff" + bytes(7))


async def large_handshake(member, rank, choice):
    """A certificate, or a name, of 60 kB."""
    if choice:
        hello = dataclasses.replace(member.hello, model="x" * 255)
        channel, _ = await member.connect(rank, hello)
    else:
        fat = dataclasses.replace(member.hello)
        identity = type(member.identity).__new__(type(member.identity))
        identity.__dict__.update(member.identity.__dict__,
                                 certificate=bytes(60000))
        channel, _ = await member.connect(rank, fat, identity=identity)
    channel.close()


def replay(member, rank):
    """Old exchanges once more, and sometimes a sealed record twice."""
    link = member.links.get(rank)
    if link is None:
        return
    for kind in (Kind.MODEL, Kind.ACK, Kind.READY):
        for pattern in (m.SWAP, m.ROUND):
            header = Header(kind, pattern, member.dice.random() < 0.5, 0,
                            member.dice.randrange(64), 1)
            if kind == Kind.MODEL:
                header.payload_bytes = 4 * len(member.x)
                link.send_model(header, m.payload(member.x))
            else:
                link.say(header)
    if member.dice.random() < 0.1:
        sender = link.channel.sender
        sealed = sender.seal(m.control(Header(Kind.PROBE)))
        link.channel.frame(sealed)
        link.channel.frame(sealed)


async def squat(member, rank):
    """With our own certificate, in somebody else's name."""
    others = [r for r in range(2 * len(member.addresses)) if r != member.rank]
    hello = dataclasses.replace(member.hello, rank=member.dice.choice(others))
    await speak(member, rank, hello)


async def second_place(member, rank):
    """Somewhere else on this machine: another process with our key."""
    if rank in member.links:
        hello = dataclasses.replace(member.hello, instance=os.urandom(4))
        source = f"127.0.0.{member.dice.randrange(2, 9)}"
        await speak(member, rank, hello, source)


async def speak(member, rank, hello, source=None):
    """Joins a second time, and goes on as if it had been let in."""
    channel, _ = await member.connect(rank, hello, source)
    try:
        for _ in range(5):
            channel.send(m.control(Header(Kind.PROBE, m.ROUND, False, 0,
                                          member.number(), member.number())))
        await channel.receive(0.1)
    finally:
        channel.close()


INCARNATIONS = itertools.cycle((2**32 - 1, 0, 1, 2, 7))


async def rejoin(member, rank):
    """As an incarnation of its choice, in a round of its choice."""
    dice = member.dice
    number = dice.choice((0, member.number() + 1000, 2**40, 2**63))
    # In turn: a draw may leave one out for as long as the attack lasts.
    hello = dataclasses.replace(member.hello, incarnation=next(INCARNATIONS))
    channel, _ = await member.connect(rank, hello)
    for kind in (Kind.PROBE, Kind.BYE, Kind.READY, Kind.REQUEST, Kind.PROBE):
        channel.send(m.control(Header(
            kind, m.ROUND, member.rank < rank, hello.incarnation, number,
            number)))
    for k in range(8):
        channel.send(m.control(Header(
            Kind.REQUEST, m.PULL, True, hello.incarnation, 32 * k, number,
            4 * len(member.x))))
    try:
        for _ in range(4):
            await channel.receive(0.1)
    finally:
        channel.close()


@linked
def ask_for_everything(member, link):
    """Requests of every pattern, none gone on with; and a model's header."""
    if not link.held:
        link.held = True
        link.say(Header(Kind.MODEL, m.ROUND, member.rank < link.rank, 0,
                        member.number() + 1, member.number() + 1,
                        4 * len(member.x)))
    for pattern in (m.SWAP, m.PUSH, m.PULL):
        member.counter += 32
        more = (1,) if pattern == m.SWAP else ()
        link.say(Header(Kind.REQUEST, pattern, True,
                        member.hello.incarnation, member.counter,
                        member.number(), 4 * len(member.x), more))


async def hold_on(member, seconds):
    """Slots and transfers, until the links are given up at the end."""
    await rapidly(member, seconds, ask_for_everything)
    for link in list(member.links.values()):
        link.channel.close()


async def flood(member, seconds):
    """Strangers, and a member that never stops talking."""
    strangers = asyncio.ensure_future(strange(member, seconds))
    try:
        await rapidly(member, seconds, chatter, 0.005)
    finally:
        await strangers


@linked
def chatter(member, link):
    """Probes, questions and models that nobody asked for."""
    for k in range(50):
        link.say(Header(Kind.PROBE, member.dice.randrange(1, 5), True, 0,
                        32 * k, 1))
    for _ in range(3):
        link.send_model(Header(Kind.MODEL, m.SWAP, True, 0, 32 * 77, 1,
                               4 * len(member.x)), m.payload(member.x))


async def strange(member, seconds):
    """Waves of connections: silent, half a preface, nonsense, a good start."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    targets = [address for rank, address in enumerate(member.addresses)
               if rank != member.rank]
    starts = (b"", b"kith", os.urandom(64), b"kith\2\1\0\0" + os.urandom(32),
              b"kith\1\1\0\0" + os.urandom(32))
    while loop.time() < end:
        wave = await asyncio.gather(
            *(asyncio.open_connection(*targets[k % len(targets)])
              for k in range(STRANGERS)), return_exceptions=True)
        writers = [pair[1] for pair in wave if isinstance(pair, tuple)]
        for writer in writers:
            writer.write(member.dice.choice(starts))
        await asyncio.sleep(0.2)
        for writer in writers:
            writer.close()
