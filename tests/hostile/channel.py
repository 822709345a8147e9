"""The channel of docs/protocol.md section 1: preface, Noise XX, records.

Written from that page alone, with Python's hashes and python3-cryptography's
X25519 and AEADs, so that two independent programs agree on it."""
import asyncio
import base64
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey, X25519PublicKey)
from cryptography.hazmat.primitives.ciphers.aead import (
    AESGCM, ChaCha20Poly1305)
from cryptography.hazmat.primitives.serialization import (
    Encoding, PublicFormat)

VERSION = 3
SUITES = {1: ("AESGCM", AESGCM, "big"),
          2: ("ChaChaPoly", ChaCha20Poly1305, "little")}
HASH_BYTES = 64
TAG_BYTES = 16
RECORD_BYTES = 65535
REKEY_RECORDS = 1 << 16
RANK_FIELD = 11
WAIT_S = 10


class ProtocolError(Exception):
    """The other end did what the page does not allow, or it closed."""


def raw_public(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def fields(certificate):
    """Of a canonical TLV: {tag: value}."""
    found, at = {}, 0
    while at < len(certificate):
        tag, length = certificate[at], certificate[at + 1]
        found[tag] = certificate[at + 2:at + 2 + length]
        at += 2 + length
    return found


class Identity:
    """An identity folder that `kith keys` made: node.key, node.crt."""

    def __init__(self, folder):
        key, certificate = {}, {}
        for name, into in (("node.key", key), ("node.crt", certificate)):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                for line in file:
                    word, _, value = line.strip().partition(": ")
                    into[word] = value
        self.secret = X25519PrivateKey.from_private_bytes(
            base64.b64decode(key["secret"]))
        self.certificate = base64.b64decode(certificate["certificate"])
        tags = fields(self.certificate)
        self.cluster = tags[2]
        self.rank = int.from_bytes(tags[RANK_FIELD], "big")


class Cipher:
    """A key, its counter, and after how many records it is replaced."""

    def __init__(self, suite, key):
        _, self.aead, self.order = SUITES[suite]
        self.key, self.counter, self.used = key, 0, 0
        self.engine = self.aead(key)

    def nonce(self, counter):
        return bytes(4) + counter.to_bytes(8, self.order)

    def seal(self, plain, extra=b""):
        sealed = self.engine.encrypt(self.nonce(self.counter), plain, extra)
        self.counter += 1
        self.used += 1
        return sealed

    def open(self, sealed, extra=b""):
        plain = self.engine.decrypt(self.nonce(self.counter), sealed, extra)
        self.counter += 1
        self.used += 1
        return plain

    def rekey(self):
        """Noise section 4.2; the counter goes on."""
        self.key = self.engine.encrypt(self.nonce(2**64 - 1), bytes(32),
                                       b"")[:32]
        self.engine, self.used = self.aead(self.key), 0

    def make_room(self, records):
        if self.used + records > REKEY_RECORDS:
            self.rekey()


def hkdf(chaining, material):
    """Noise's HKDF with two outputs."""
    secret = hmac.digest(chaining, material, "blake2b")
    first = hmac.digest(secret, b"\1", "blake2b")
    return first, hmac.digest(secret, first + b"\2", "blake2b")


class Symmetric:
    """Noise's SymmetricState: chaining key, transcript hash, cipher."""

    def __init__(self, suite, prologue):
        name = f"Noise_XX_25519_{SUITES[suite][0]}_BLAKE2b".encode()
        self.suite, self.cipher = suite, None
        self.hash = self.chaining = name.ljust(HASH_BYTES, b"\0")
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = hashlib.blake2b(self.hash + data).digest()

    def mix_key(self, secret, public):
        shared = secret.exchange(X25519PublicKey.from_public_bytes(public))
        self.chaining, key = hkdf(self.chaining, shared)
        self.cipher = Cipher(self.suite, key[:32])

    def write(self, plain):
        sealed = self.cipher.seal(plain, self.hash) if self.cipher else plain
        self.mix_hash(sealed)
        return sealed

    def read(self, sealed):
        plain = self.cipher.open(sealed, self.hash) if self.cipher else sealed
        self.mix_hash(sealed)
        return plain

    def split(self):
        return [Cipher(self.suite, key[:32])
                for key in hkdf(self.chaining, b"")]


def preface(suite, version=VERSION):
    return b"kith" + bytes([version, suite, 0, 0])


class Channel:
    """One session over one connection. `theirs` is the other's certificate."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.sender = self.receiver = None
        self.theirs = b""

    async def exactly(self, size, wait_s=WAIT_S):
        try:
            return await asyncio.wait_for(self.reader.readexactly(size),
                                          wait_s)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ProtocolError("closed by the other end") from error

    async def framed(self, wait_s=WAIT_S):
        size = int.from_bytes(await self.exactly(2, wait_s), "big")
        return await self.exactly(size)

    def put(self, data):
        if self.writer.is_closing():
            raise ProtocolError("closed by the other end")
        self.writer.write(data)

    def frame(self, data):
        self.put(len(data).to_bytes(2, "big") + data)

    async def initiate(self, identity, suite=1):
        """Our side of a handshake that we began."""
        state = Symmetric(suite, preface(suite) + identity.cluster)
        ephemeral = X25519PrivateKey.generate()
        state.mix_hash(raw_public(ephemeral))
        self.put(preface(suite) + raw_public(ephemeral) + state.write(b""))
        if await self.exactly(8) != preface(suite):
            raise ProtocolError("another preface")
        message = await self.framed()
        self.read_second(state, ephemeral, message)
        first = state.write(raw_public(identity.secret))
        state.mix_key(identity.secret, message[:32])
        self.frame(first + state.write(identity.certificate))
        self.sender, self.receiver = state.split()

    def read_second(self, state, ephemeral, message):
        state.mix_hash(message[:32])
        state.mix_key(ephemeral, message[:32])
        static = state.read(message[32:80])
        state.mix_key(ephemeral, static)
        self.theirs = state.read(message[80:])

    async def respond(self, identity, suite=1):
        """Our side of a handshake that the other end began."""
        state = Symmetric(suite, preface(suite) + identity.cluster)
        if await self.exactly(8) != preface(suite):
            raise ProtocolError("another preface")
        remote = await self.exactly(32)
        state.mix_hash(remote)
        state.read(b"")
        ephemeral = X25519PrivateKey.generate()
        state.mix_hash(raw_public(ephemeral))
        state.mix_key(ephemeral, remote)
        sealed = state.write(raw_public(identity.secret))
        state.mix_key(identity.secret, remote)
        self.put(preface(suite))
        self.frame(raw_public(ephemeral) + sealed +
                   state.write(identity.certificate))
        message = await self.framed()
        static = state.read(message[:48])
        state.mix_key(ephemeral, static)
        self.theirs = state.read(message[48:])
        self.receiver, self.sender = state.split()

    def send(self, plain, records=1):
        """A record; what announces more of them may change the key."""
        self.sender.make_room(1)
        self.frame(self.sender.seal(plain))
        if records > 1:
            self.sender.make_room(records - 1)

    async def receive(self, wait_s=WAIT_S):
        self.receiver.make_room(1)
        return self.receiver.open(await self.framed(wait_s))

    def rank(self):
        return int.from_bytes(fields(self.theirs)[RANK_FIELD], "big")

    def close(self):
        self.writer.close()
