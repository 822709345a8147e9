"""CASES random texts of SEED, sealed by each implementation in unit/test_aegis
and by pyaegis: every byte of text and tag must be equal."""
import os
import random
import struct
import subprocess
import sys
import threading

from pyaegis import Aegis256X2

CASES = int(os.environ.get("CASES", "1000000"))
SEED = int(os.environ.get("SEED", "1"))
AD = (0, 1, 8, 31, 32, 33, 64, 100, 256)
TEXT = (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129)


def cases():
    """Lengths around a block, and some of any length up to a record's."""
    dice = random.Random(SEED)
    for number in range(CASES):
        long = dice.randrange(2000 if number % 64 else 65473)
        size = long if number % 4 == 0 else dice.choice(TEXT)
        yield (dice.randbytes(32), dice.randbytes(32),
               dice.randbytes(dice.choice(AD)), dice.randbytes(size))


def feed(pipe):
    for key, nonce, data, text in cases():
        pipe.write(struct.pack("=II", len(data), len(text)) + key + nonce +
                   data + text)
    pipe.close()


def main():
    sealer = subprocess.Popen([sys.argv[1], "seal"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ours = int(sealer.stderr.readline())
    threading.Thread(target=feed, args=(sealer.stdin,), daemon=True).start()
    theirs = Aegis256X2(16)
    for number, (key, nonce, data, text) in enumerate(cases()):
        want = theirs.encrypt(key, nonce, text, data)
        for which in range(ours):
            if sealer.stdout.read(len(want)) != want:
                sys.exit(f"accept_aegis: implementation {which} differs in "
                         f"case {number} of SEED={SEED}: {len(data)} bytes of "
                         f"associated data, {len(text)} of text")
    if sealer.wait() != 0:
        sys.exit(f"accept_aegis: {sys.argv[1]} ended with {sealer.returncode}")
    print(f"accept_aegis: {CASES} cases, {ours} implementations, all equal")


main()
