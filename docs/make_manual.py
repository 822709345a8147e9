#!/usr/bin/env python3
"""Writes the keys of an experiment file into the manual, as the loader has them.

    usage: make_manual.py KITH <docs/kith.1 >NEW
"""
import json
import re
import subprocess
import sys

BEGIN, END = '.\\" keys\n', '.\\" end of keys\n'


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[0] in ".'" else text


def entry(key):
    text = key["summary"]
    # Numbers, times and lists say what they are; names have to be told.
    if not re.match(r"(an?|1 to) ", key["allowed"]) and "see kith list" not in text:
        text += ": " + key["allowed"]
    return f".TP 24\n.B {escaped(key['name'])}\n{escaped(text)}\n"


def main():
    keys = json.loads(subprocess.run(
        [sys.argv[1], "list", "keys", "--json"], check=True,
        capture_output=True).stdout)["keys"]
    manual = sys.stdin.read()
    before, rest = manual.split(BEGIN)
    after = rest.split(END)[1]
    sys.stdout.write(before + BEGIN + "".join(map(entry, keys)) + END + after)


if __name__ == "__main__":
    main()
