#!/bin/sh
# Goal: a SIGTERM ends `kith peer` in order, whenever it comes: before its first
# line, around its own end at stop.time, while it writes its summary; twice is
# as once.
# Method: one peer whose run lasts 0.4 s, signalled after so many milliseconds;
# exit code 0 or 130, and a whole summary. OFFSETS are those milliseconds.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
python=${PYTHON:-python3}

"$kith" keys new "$scratch/authority" --authority >/dev/null &&
    "$kith" keys new "$scratch/identity" --name peer-0 >/dev/null &&
    "$kith" keys certify "$scratch/authority" "$scratch/identity/node.request" \
        --rank 0 >/dev/null || fail "no keys"
cp "$scratch/authority/ca.pub" "$scratch/identity/"
cat >"$scratch/short.yaml" <<YAML
name: short
seed: 1
peers: 1
stop: {time: 400ms}
model: {kind: mlp, layers: [64, 200, 10]}
data: {kind: idx, path: $data, split: iid}
train: {learning_rate: 0.05, batch: 16}
gossip: {algorithm: local}
YAML
port=$("$python" -c "import socket; s = socket.socket(); \
s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
cat >"$scratch/peer.yaml" <<YAML
identity: identity
listen: "127.0.0.1:$port"
experiment: short.yaml
save: model
rank: 0
members: ["127.0.0.1:$port"]
YAML

"$python" - "$kith" "$scratch" "${OFFSETS:-}" <<'PYTHON' || fail "see above"
import random
import signal
import subprocess
import sys
import time

kith, folder, given = sys.argv[1:]
draw = random.Random(1)
# 400 ms is the end of the run; the first line comes after some.
offsets = [float(word) for word in given.split()] or \
    [0, 10] + [draw.uniform(380, 480) for _ in range(22)]
missed = 0
for offset in offsets:
    with open(f"{folder}/out", "w+b") as out:
        peer = subprocess.Popen([kith, "peer", f"{folder}/peer.yaml"],
                                stdout=out, stderr=out)
        listening = time.monotonic() + 20
        while b"listening" not in (text := open(f"{folder}/out", "rb").read()):
            if peer.poll() is not None or time.monotonic() > listening:
                break
            time.sleep(0.001)
        time.sleep(offset / 1000)
        for _ in range(2):      # one that is over by now has its status
            peer.send_signal(signal.SIGTERM)
            time.sleep(draw.uniform(0, 0.004))
        status = peer.wait(30)
        text = open(f"{folder}/out", "rb").read().decode()
    if status not in (0, 130) or "trained model" not in text:
        missed += 1
        print(f"SIGTERM {offset:.1f} ms after listening: status {status}\n"
              f"{text}", file=sys.stderr)
print(f"{len(offsets)} peers signalled, {missed} did not end in order")
sys.exit(missed > 0)
PYTHON
none_left "peers"
finish
