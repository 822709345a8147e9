#!/bin/sh
# Goal: real peers have the data set from each other (T4.5): the origin is read
# once for all of them, not at all by a second run; every sample of every epoch
# comes out of memory; a byte that changed on a disk is refused and had
# elsewhere; a full disk is said, and the run goes on; a home that is killed in
# the middle costs the others reads of the origin, and they start; an origin
# that is not the manifest's ends the run by name.
# Method: 3 MB of images in pieces of 256 KiB, labs of four peers with a folder
# each, then three `kith peer` on a slow link, one of which is killed.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"

mkdir "$scratch/origin"
python3 - "$scratch/origin" <<'PY'
import random, struct, sys
draw = random.Random(1)
for name, rows in ("train", 3600), ("t10k", 400):
    path = f"{sys.argv[1]}/{name}-"
    labels = bytes(draw.randrange(10) for _ in range(rows))
    pixels = draw.randbytes(784 * rows)
    with open(path + "images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 0x803, rows, 28, 28) + pixels)
    with open(path + "labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 0x801, rows) + labels)
PY
expect 0 list manifest --json "$scratch/origin" "$scratch/data.manifest"
pieces=$(json pieces)
[ "$pieces" -eq 12 ] || fail "$pieces pieces of the data, not 12"
expect 2 list manifest "$scratch/origin"

# in_pieces PEERS STOP [YAML...]
in_pieces() {
    experiment "$1" 30 | sed "s|^stop: .*|stop: {$2}|; s|layers: .64|layers: [784|
        s|^data: .*|data: {kind: idx, path: $scratch/origin, split: iid, manifest: $scratch/data.manifest, cache: $scratch/cache}|"
    shift 2
    [ $# -eq 0 ] || printf '%s\n' "$@"
}
in_pieces 4 "epochs: 2" >"$scratch/digits.yaml"

# counts WHAT ORIGIN PEERS DISK REFUSED: of the last run's summary.
counts() {
    found="$(json pieces origin) $(json pieces peers) $(json pieces disk) $(json pieces refused)"
    echo "$1: pieces from origin, peers, disk, refused: expected $2 $3 $4 $5, measured $found"
    [ "$found" = "$2 $3 $4 $5" ] || fail "$1: wrong counts"
    [ "$(json pieces count)" = "$pieces" ] || fail "$1: wrong number of pieces"
}

lab 0 "$scratch/digits.yaml"
counts "first run" "$pieces" $((3 * pieces)) 0 0
read -r memory mapped <<EOF
$(sql "$(json database)" "SELECT max(value) FILTER (WHERE key = 'data_memory'),
    max(value) FILTER (WHERE key = 'data_mapped') FROM summary" 2>/dev/null)
EOF
echo "first run, two epochs: samples out of memory: expected $(json samples), measured $memory; of mapped files: $mapped"
[ "$memory" = "$(json samples)" ] && [ "$mapped" = 0 ] || fail "not all of it"

lab 0 "$scratch/digits.yaml"
counts "second run" 0 0 $((4 * pieces)) 0

# A byte of peer 2's copy of piece 5, whose home is peer 1.
python3 - "$scratch"/cache/2/*-5 <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(1000)
    byte = file.read(1)[0]
    file.seek(1000)
    file.write(bytes([byte ^ 1]))
PY
lab 0 "$scratch/digits.yaml"
counts "a byte changed" 0 1 $((4 * pieces - 1)) 1
lab 0 "$scratch/digits.yaml"
counts "and was mended" 0 0 $((4 * pieces)) 0

# A disk for a third of one peer's data, which all four share.
mkdir "$scratch/small"
if mount -t tmpfs -o size=1m,mode=0777 kith-test "$scratch/small" 2>/dev/null; then
    trap 'umount -l "$scratch/small"; rm -rf "$scratch"' EXIT
    lab 0 --log --set data.cache="$scratch/small" "$scratch/digits.yaml"
    counts "full disk" "$pieces" $((3 * pieces)) 0 0
    echo "full disk: pieces that it did not take: $(json pieces unkept)"
    [ "$(json pieces unkept)" -gt 0 ] || fail "full disk: nothing is said"
    grep -q "data-unkept pieces=.* folder=.*full" "$scratch/err" ||
        fail "full disk: no line of the log says so"
    none_left "full disk"
fi

# ---- a home that is killed in the middle

make_cluster 3 "experiment: pieces.yaml"
for rank in 0 1 2; do
    in_pieces 3 "steps: 50" "network: {rate: 10Mbit}" |
        sed "s/^name: .*/name: pieces/; s|/cache}|/cache-peer}|" \
            >"$scratch/$rank/pieces.yaml"
done
start_peer 0 && first=$pid
start_peer 1 && killed=$pid
start_peer 2 && third=$pid
until_line 0 "$first" "connected rank=1"
until_line 2 "$third" "connected rank=1"
kill -9 "$killed"
until_line 0 "$first" "data pieces=$pieces"
until_line 2 "$third" "data pieces=$pieces"
until_line 0 "$first" "finished step=50"
until_line 2 "$third" "finished step=50"
grep -h "data pieces=" "$scratch/0/err" "$scratch/2/err"
kill -TERM "$first" "$third"
for pid in $first $third; do
    wait "$pid" || fail "a peer that was left: exit $?"
done
grep -q "pieces of the data *$pieces: " "$scratch/0/out" ||
    fail "peer 0: no counts in its summary"

# ---- an origin that is other data

rm -r "$scratch/cache"
printf 'x' | dd of="$scratch/origin/train-images-idx3-ubyte" bs=1 seek=500 \
    conv=notrunc 2>/dev/null
lab 3 "$scratch/digits.yaml"
one_line "another origin" "not what the manifest says; look at the origin"
none_left "the runs"
finish
