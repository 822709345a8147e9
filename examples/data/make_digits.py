#!/usr/bin/env python3
"""Make the bundled digits: small IDX files from the UCI optical digits.

    usage: make_digits.py [digits.csv.gz] [TARGET]

Input is the CSV that Debian's python3-sklearn ships (64 counts 0..16 and a
label per line, the digits mostly in turn). Of every fifty rows the last ten go
to the test set (t10k-*), the others to the training set, so that both hold all
digits and all writers; counts become bytes 0..255. Same input, same bytes.
"""
import gzip
import pathlib
import struct
import sys

CSV = ("/usr/lib/python3/dist-packages/sklearn/datasets/data/"
       "digits.csv.gz")


def idx(sizes, data):
    """An IDX image of unsigned bytes, gzipped without a time stamp."""
    header = struct.pack(f">BBBB{len(sizes)}I", 0, 0, 8, len(sizes), *sizes)
    return gzip.compress(header + bytes(data), 9, mtime=0)


def main():
    source = sys.argv[1] if len(sys.argv) > 1 else CSV
    target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                          pathlib.Path(__file__).parent / "digits")
    with gzip.open(source, "rt") as file:
        rows = [[int(float(v)) for v in line.split(",")] for line in file]
    parts = {"train": [r for i, r in enumerate(rows) if i % 50 < 40],
             "t10k": [r for i, r in enumerate(rows) if i % 50 >= 40]}
    target.mkdir(parents=True, exist_ok=True)
    for part, chosen in parts.items():
        pixels = [v * 255 // 16 for row in chosen for v in row[:64]]
        labels = [row[64] for row in chosen]
        (target / f"{part}-images-idx3-ubyte.gz").write_bytes(
            idx((len(chosen), 8, 8), pixels))
        (target / f"{part}-labels-idx1-ubyte.gz").write_bytes(
            idx((len(chosen),), labels))
        print(f"{part}: {len(chosen)} images")


if __name__ == "__main__":
    main()
