"""Goal: the line of progress fits the terminal, whatever its width.

Method: a simulation behind pseudo-terminals of 40, 80 and 120 columns; every
line that it rewrites is shorter. The program is argv[1], the experiment argv[2],
a folder argv[3].
"""
import fcntl
import os
import pty
import re
import struct
import sys
import termios

kith, experiment, folder = sys.argv[1:]
missed = 0
for columns in (40, 80, 120):
    pid, terminal = pty.fork()
    if pid == 0:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(2, termios.TIOCSWINSZ, size)
        os.execv(kith, [kith, "lab", experiment, "--out", folder])
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    lines = re.findall(rb"\r\x1b\[K([^\r\n]*)", text)
    longest = max((len(line.decode()) for line in lines), default=0)
    print(f"{columns} columns: expected below, measured {longest} in "
          f"{len(lines)} lines, exit {status}")
    missed += status != 0 or not lines or longest >= columns
sys.exit(missed > 0)
