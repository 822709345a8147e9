#!/bin/sh
# Goal: what a user can get wrong is one clear line and a documented exit code.
# Method: kith train and sim with broken files, data and folders.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# refuses EXPECTED PATTERN ARGUMENTS...
refuses() {
    expected=$1 pattern=$2
    shift 2
    timeout 60 "$kith" "$@" --out "$scratch" >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || fail "kith $*: exit $status, not $expected"
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || fail "kith $*: not one line"
    grep -q -- "$pattern" "$scratch/err" || {
        fail "kith $*: does not say $pattern"
        cat "$scratch/err" >&2
    }
    [ -s "$scratch/json" ] && fail "kith $*: printed on standard output"
}

# refuses_kind EXPECTED PATH COMMAND...: PATH is named, and what it is.
refuses_kind() {
    expected=$1 path=$2
    shift 2
    timeout 20 "$kith" "$@" >"$scratch/json" 2>"$scratch/err"
    status=$?
    [ "$status" -eq "$expected" ] || fail "kith $*: exit $status, not $expected"
    one_line "kith $*" "$path.*not a plain file"
}

file=$scratch/digits.yaml
experiment 3 40 "compute: {step: 1ms}" >"$file"

# 3: the experiment.
refuses 3 "No such file" train "$scratch/none.yaml"
refuses 3 "cannot read" train "$scratch"
for command in train sim; do
    refuses 3 'found "0"; allowed: a whole number from 1' \
        "$command" "$file" --set peers=0
    refuses 3 'found "-5Mbit"; allowed: unlimited, or a rate' \
        "$command" "$file" --set network.rate=-5Mbit
    refuses 3 'did you mean "algorithm"' \
        "$command" "$file" --set gossip.algoritm=dpsgd
    refuses 3 "needs a graph or a schedule of rounds" \
        "$command" "$file" --set gossip.algorithm=dpsgd
    refuses 3 "found 63 inputs and 10 outputs" \
        "$command" "$file" --set "model.layers=[63, 10]"
done
# What a hint is worth: an empty list is one, whole numbers have an end, units a
# name; letters that changed places are found, and another word is no typing error.
refuses 3 "model.layers: found an empty list; allowed" sim "$file" \
    --set "model.layers=[]"
refuses 3 "allowed: a whole number from 0 to 18446744073709551615" sim "$file" \
    --set seed=18446744073709551616
for key in network.latency compute.step; do
    refuses 3 "1.66 m.*1.5ms for milliseconds, 3s, 2m or 1.5min" sim "$file" \
        --set "$key=1.66 m"
done
refuses 3 'did you mean "adpsgd"' sim "$file" --set gossip.algorithm=adspgd
refuses 3 'found "tpu"; allowed: auto' sim "$file" --set train.backend=tpu
grep -q "did you mean" "$scratch/err" && fail "tpu is no cpu"
# A byte order mark is none of the text.
for kind in digits peer; do
    printf '\357\273\277' >"$scratch/bom-$kind.yaml"
done
cat "$file" >>"$scratch/bom-digits.yaml"
timeout 60 "$kith" sim "$scratch/bom-digits.yaml" --out "$scratch/bom" \
    >"$scratch/json" 2>"$scratch/err" || fail "a byte order mark: $(cat "$scratch/err")"
printf 'identity: none\nrank: 0\nexperiment: bom-digits.yaml\nmembers: ["a:1"]\n' \
    >>"$scratch/bom-peer.yaml"
timeout 60 "$kith" doctor "$scratch/bom-peer.yaml" >"$scratch/json" \
    2>"$scratch/err"
one_line "a peer file with a byte order mark" "members: found 1; allowed: 3"
sed 's/^gossip:/gosip:/' "$file" >"$scratch/typo.yaml"
refuses 3 'typo.yaml:8: .*did you mean "gossip"' sim "$scratch/typo.yaml"
refuses 3 "predicted end" sim "$file" \
    --set 'faults=[{at: 9s, crash: "n(1)"}]'
refuses 3 "cost of a step" sim "$file" --set compute.step=0s \
    --set stop.time=1s

# 2 to 5: what is no plain file is not waited for.
mkfifo "$scratch/fifo"
for path in "$scratch/fifo" "$scratch" /dev/zero; do
    for command in train sim lab peer; do
        refuses_kind 3 "$path" "$command" "$path"
    done
    refuses_kind 3 "$path" eval "$path"
    refuses_kind 3 "$path" sample "$path"
    refuses_kind 3 "$path" export "$path" --out "$scratch/x.safetensors"
    refuses_kind 3 "$path" train --resume "$path"
    refuses_kind 3 "$path" train "$file" --init "$path"
    refuses_kind 4 "$path" train "$top/examples/shakespeare.yaml" \
        --set "data.path=$path"
    refuses_kind 4 "$path" report "$path"
done
mkfifo "$scratch/fifo.db"
mkdir "$scratch/fifo.saves"
refuses_kind 3 "$scratch/fifo.db" lab --resume "$scratch/fifo.db"
refuses_kind 5 "$scratch" train "$file" --save "$scratch"
timeout 20 "$kith" sim "$file" --out "$scratch/one" >/dev/null 2>&1
database=$(find "$scratch/one" -name '*.db')
refuses_kind 5 "$scratch/fifo" report "$database" --out "$scratch/fifo"
[ -p "$scratch/fifo" ] || fail "a report took the place of a FIFO"
before=$(find . -name 'digits-train-*' | wc -l)
refuses_kind 3 "$scratch/fifo" train "$file" --init "$scratch/fifo"
[ "$(find . -name 'digits-train-*' | wc -l)" -eq "$before" ] ||
    fail "a run that never began left a database"
mkdir "$scratch/fifos"
mkfifo "$scratch/fifos/train-images-idx3-ubyte"
refuses_kind 4 "$scratch/fifos/train-images" train "$file" \
    --set "data.path=$scratch/fifos"

# 4: the data.
refuses 4 "$scratch/nothing" train "$file" --set "data.path=$scratch/nothing"
refuses 4 "none.txt: no such file" train "$top/examples/shakespeare.yaml" \
    --set "data.path=$scratch/none.txt"
refuses 4 "apt-get install dataset-fashion-mnist" train \
    "$top/examples/cnn.yaml" --set "data.path=$scratch/nothing"
mkdir "$scratch/broken"
for part in train-images-idx3 train-labels-idx1 t10k-images-idx3 \
    t10k-labels-idx1; do
    echo "not an image" >"$scratch/broken/$part-ubyte"
done
refuses 4 "$scratch/broken" sim "$file" --set "data.path=$scratch/broken"

# 5: the folder of the database.
run() {
    timeout 60 "$kith" "$@" >"$scratch/json" 2>"$scratch/err"
}
run sim "$file" --out /dev/null/here
status=$?
[ "$status" -eq 5 ] || fail "a folder below a file: exit $status, not 5"
one_line "a folder below a file" "choose another with --out"
run sim "$file" --out /proc
status=$?
[ "$status" -eq 5 ] || fail "a folder that takes no files: exit $status, not 5"
one_line "a folder that takes no files" "cannot create a run database"

# 3: a name that would colour the terminal and begin a line is said without.
{
    printf '\072\0\0\0\0\0\0\0'
    printf '%s' '{"\u001b[31m\n":{"dtype":"X","shape":[],"data_offsets":0}}'
} >"$scratch/names.safetensors"
refuses 3 'tensor "?\[31m?": dtype must be' train "$file" \
    --init "$scratch/names.safetensors"

# 5: a trace that does not fit, said only when it is closed.
run sim "$file" --out "$scratch" --trace /dev/full
status=$?
[ "$status" -eq 5 ] || fail "a trace on a full disk: exit $status, not 5"
one_line "a trace on a full disk" "cannot write the trace"

# 5: the disk is full. A million marks do not fit 128 KiB.
small=$scratch/small
mkdir "$small"
if mount -t tmpfs -o size=128k kith-test "$small" 2>/dev/null; then
    trap 'umount -l "$small"; rm -rf "$scratch"' EXIT
    run sim "$file" --out "$small" --set stop.steps=20000 --set gossip.every=1
    status=$?
    [ "$status" -eq 5 ] || fail "a full disk: exit $status, not 5"
    one_line "a full disk" "no space left"
    grep -q "cannot write .*cannot write" "$scratch/err" &&
        fail "a full disk: said twice: $(cat "$scratch/err")"
    database=$(find "$small" -name '*.db')
    [ "$(sql "$database" "PRAGMA integrity_check")" = ok ] ||
        fail "a full disk: the database is damaged"
fi

# 7: keys.
run keys certify "$scratch/nowhere" "$scratch/node.request"
status=$?
[ "$status" -eq 7 ] || fail "no such authority: exit $status, not 7"
one_line "no such authority" "nowhere has no ca.key.*kith keys new DIR --authority"
run keys new "$scratch/authority" --authority || fail "no authority"
run keys new "$scratch/authority" --authority
status=$?
[ "$status" -eq 7 ] || fail "a second authority: exit $status, not 7"
run keys new "$scratch/node" --name peer-0 || fail "no node"
chmod 644 "$scratch/authority/ca.key"
run keys certify "$scratch/authority" "$scratch/node/node.request"
status=$?
[ "$status" -eq 7 ] || fail "a secret that others can read: exit $status, not 7"
chmod 600 "$scratch/authority/ca.key"
run keys certify "$scratch/authority" "$scratch/node/node.request"
status=$?
[ "$status" -eq 7 ] || fail "a certificate without a rank: exit $status, not 7"
one_line "no rank" "ranks does not name peer-0: give --rank N"
run keys certify "$scratch/authority" "$scratch/node/node.request" --rank 0 ||
    fail "no certificate"
[ -s "$scratch/node/node.crt" ] || fail "the certificate is not there"
run keys show "$scratch/node/node.crt" || fail "the certificate is not shown"
grep -q peer-0 "$scratch/json" || fail "the certificate does not name its peer"

# 3 and 7: a peer's file.
cat >"$scratch/peer.yaml" <<YAML
identity: $scratch/node
experiment: $file
rank: 0
members: ["127.0.0.1:7117"]
YAML
refuses_peer() {
    run peer "$scratch/peer.yaml"
    status=$?
    [ "$status" -eq "$1" ] || fail "kith peer: exit $status, not $1"
    one_line "kith peer" "$2"
}
refuses_peer 3 "allowed: 3, as many as peers"
sed -i 's/^peers: 3/peers: 1/' "$file"
refuses_peer 7 "ca.pub"

# 6: somebody listens on its port. Such a start leaves nothing behind.
cp "$scratch/authority/ca.pub" "$scratch/node/"
python3 - "$scratch/port" <<'PY' &
import os, socket, sys, time
one = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as file:
    print(one.getsockname()[1], file=file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(30)
PY
listener=$!
for _ in $(seq 50); do
    [ -s "$scratch/port" ] && break
    sleep 0.1
done
cat >>"$scratch/peer.yaml" <<YAML
listen: "127.0.0.1:$(cat "$scratch/port")"
save: $scratch/model
YAML
refuses_peer 6 "another program has this port"
[ -e "$scratch/model" ] && fail "a busy port: left $(ls "$scratch/model")"
kill "$listener"
wait "$listener" 2>/dev/null
finish
