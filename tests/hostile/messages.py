"""What travels in records: docs/protocol.md sections 1 (HELLO, frames) and 2.

msgpack is written and read here in the few forms that headers use, so that
wrong ones can be made as easily as right ones."""
import array
import dataclasses
import enum
import os
import struct
import sys
import time

import channel

HELLO, CONTROL, BURST, FIN, REFUSED = 1, 2, 3, 4, 5
HELLO_HEAD = ">B8sQIII4sB"
BULK_BYTES = 65472
BURST_BYTES = 16 * BULK_BYTES
VISITOR = 2**32 - 1
NONE, SWAP, PUSH, ROUND, PULL = range(5)


class Kind(enum.IntEnum):
    """Of a message, as it stands on the wire."""
    REQUEST = 0
    ACCEPT = 1
    BUSY = 2
    MODEL = 3
    READY = 4
    ACK = 5
    ABORT = 6
    ABORTED = 7
    PROBE = 8
    BYE = 9


NOTICES = ("", "revoked", "expired", "other rank", "other key", "no train",
           "quota", "rank taken", "elsewhere", "too often", "no room",
           "breaks the protocol")


def pack(value):
    """msgpack of None, bool, int, float, bytes (as they are), list."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, int):
        return pack_integer(value)
    head = (bytes([0x90 + len(value)]) if len(value) < 16
            else b"\xdc" + struct.pack(">H", len(value)))
    return head + b"".join(map(pack, value))


def pack_integer(value):
    """The shortest form, as msgpack asks for."""
    if -32 <= value < 0:
        return struct.pack(">b", value)
    if value < 0:
        return b"\xd3" + struct.pack(">q", value)
    if value < 128:
        return bytes([value])
    for code, form, bits in ((b"\xcc", ">B", 8), (b"\xcd", ">H", 16),
                             (b"\xce", ">I", 32), (b"\xcf", ">Q", 64)):
        if value < 1 << bits:
            return code + struct.pack(form, value)
    raise ValueError(value)


def unpack(data):
    """The value of one msgpack array of plain values."""
    if not data or data[0] & 0xf0 != 0x90:
        raise channel.ProtocolError("a header that is no short array")
    values, at = [], 1
    for _ in range(data[0] & 15):
        value, at = unpack_one(data, at)
        values.append(value)
    return values


FORMS = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I",
         0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}


def unpack_one(data, at):
    code = data[at]
    if code < 0x80:
        return code, at + 1
    if code >= 0xe0:
        return code - 256, at + 1
    if code in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[code], at + 1
    form = FORMS[code]
    end = at + 1 + struct.calcsize(form)
    return struct.unpack(form, data[at + 1:end])[0], end


@dataclasses.dataclass
class Header:
    """One message; `more` is what follows the seven values of each."""
    kind: int
    pattern: int = SWAP
    mine: bool = False
    incarnation: int = 0
    counter: int = 0
    step: int = 0
    payload_bytes: int = 0
    more: tuple = ()

    def packed(self):
        return pack([int(self.kind), self.pattern, self.mine,
                     self.incarnation, self.counter, self.step,
                     self.payload_bytes, *self.more])

    def exchange(self):
        return self.pattern, self.mine, self.incarnation, self.counter

    def answer(self, kind, **changes):
        """To the other end: what was theirs is not mine."""
        return dataclasses.replace(
            self, kind=kind, mine=not self.mine, payload_bytes=0, more=(),
            **changes)


def header(data):
    values = unpack(data)
    if len(values) < 7:
        raise channel.ProtocolError("a header that is too short")
    return Header(Kind(values[0]), values[1], bool(values[2]), *values[3:7],
                  more=tuple(values[7:]))


@dataclasses.dataclass
class Hello:
    """What each side says first."""
    experiment: bytes = bytes(8)
    dim: int = 0
    incarnation: int = 0
    rank: int = VISITOR
    clock: int = 0
    model: str = ""
    instance: bytes = dataclasses.field(
        default_factory=lambda: os.urandom(4))

    def packed(self):
        name = self.model.encode()
        return struct.pack(HELLO_HEAD, HELLO, self.experiment, self.dim,
                           self.incarnation, self.rank,
                           (self.clock or int(time.time())) % 2**32,
                           self.instance, len(name)) + name


def hello(data):
    """Of a record; a notice in its place is an error that says it."""
    if data[:1] == bytes([REFUSED]):
        raise channel.ProtocolError("refused: " + NOTICES[data[1]])
    kind, experiment, dim, incarnation, rank, clock, instance, size = \
        struct.unpack_from(HELLO_HEAD, data)
    if kind != HELLO or len(data) != struct.calcsize(HELLO_HEAD) + size:
        raise channel.ProtocolError("the first record is no HELLO")
    return Hello(experiment, dim, incarnation, rank, clock,
                 data[struct.calcsize(HELLO_HEAD):].decode(), instance)


def control(message):
    """The plain text of a control record."""
    body = message if isinstance(message, bytes) else message.packed()
    return bytes([CONTROL]) + body


def send_burst(link, transfer, offset, payload):
    """Announced, then raw records."""
    records = -(-len(payload) // BULK_BYTES)
    link.send(struct.pack(">BQQI", BURST, transfer, offset, len(payload)),
              1 + records)
    for at in range(0, len(payload), BULK_BYTES):
        link.send(payload[at:at + BULK_BYTES])


def send_payload(link, transfer, payload):
    for at in range(0, len(payload), BURST_BYTES):
        send_burst(link, transfer, at, payload[at:at + BURST_BYTES])


async def receive_burst(link, announcement):
    """(transfer, offset, payload) of one that was announced."""
    _, transfer, offset, length = struct.unpack(">BQQI", announcement)
    records = -(-length // BULK_BYTES)
    link.receiver.make_room(records)
    parts = [await link.receive() for _ in range(records)]
    return transfer, offset, b"".join(parts)


def floats(payload):
    """A vector, whatever the byte order of this machine."""
    values = array.array("f")
    values.frombytes(payload)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def payload(values):
    values = array.array("f", values)
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
