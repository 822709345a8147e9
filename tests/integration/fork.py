"""A loop with four forked workers: fork.py PEER.yaml SECRET.

SECRET is the peer's, each byte xor 0x5a, in hexadecimal digits: its plain bytes
are looked for in memory, where this program must not put them itself.

Each worker looks for what the child of a fork must not have, prints a line and
sleeps, as one that waits for work; the parent steps until it is killed.
"""

import os
import re
import sys
import time

import numpy as np

import kith
from kith._library import lib

file, hidden = sys.argv[1], bytes.fromhex(sys.argv[2])
HIDE = bytes(i ^ 0x5a for i in range(256))


def secrets_here():
    """How often the secret stands in this process's memory."""
    count = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb",
                                             buffering=0) as memory:
        for line in maps:
            low, high, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if access.startswith("rw"):
                part = bytearray(int(high, 16) - int(low, 16))
                memory.seek(int(low, 16))
                try:
                    memory.readinto(part)
                except OSError:  # a guard page
                    continue
                count += part.translate(HIDE).count(hidden)
                part[:] = bytes(len(part))  # no copy of it stays
    return count


def sockets_here():
    links = [os.readlink(f"/proc/self/fd/{fd}")
             for fd in os.listdir("/proc/self/fd") if
             os.path.lexists(f"/proc/self/fd/{fd}")]
    return sum(link.startswith(("socket:", "anon_inode:[eventpoll]"))
               for link in links)


def said(call):
    try:
        call()
        return "nothing"
    except kith.Error as error:
        return str(error)


def worker(peer, handle):
    error = kith.peer.ctypes.create_string_buffer(1024)
    line = (f"worker {os.getpid()} sockets {sockets_here()} "
            f"secrets {secrets_here()} step {lib().kith_step(handle, 0.0, 0)} "
            f"close {lib().kith_close(handle, error, 1024)} "
            f"{error.value.decode()} | {said(peer.step)}\n")
    os.write(1, line.encode())  # one call: five processes share this output
    time.sleep(100)
    os._exit(0)


x = np.zeros(100000, np.float32)
peer = kith.Peer(x, file, log=lambda line: print(line, file=sys.stderr))
while peer.stats["items"] < 20:
    peer.step(0.0)
    time.sleep(0.001)
print("parent", os.getpid(), "sockets", sockets_here(), "secrets",
      secrets_here(), flush=True)
for _ in range(4):
    if os.fork() == 0:
        worker(peer, peer._peer)
before = peer.stats["items"]
while peer.stats["items"] < before + 20:
    peer.step(0.0)
    time.sleep(0.001)
print("goes on", flush=True)
while True:
    peer.step(0.0)
    time.sleep(0.001)
