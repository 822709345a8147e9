"""The `kith` program that a wheel carries: `kith`, or `python3 -m kith`."""

import os
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "bin", "kith")
    if not os.path.exists(program):
        sys.exit(f"kith: {program} is not there: this is the source tree, and "
                 "the program is build/kith; a wheel has both")
    os.execv(program, ["kith", *sys.argv[1:]])


if __name__ == "__main__":
    main()
