#!/bin/sh
# Goal: kith doctor --links and kith plan --measure --to find latency, jitter,
# rate and loss of the way to peers that run; what cannot be measured is said,
# and a machine's file holds what was.
# Method: two real peers; the way to one is a proxy of 100 ms and 20 Mbit/s.
# Bounds are those that a busy machine keeps, too.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"

experiment 3 10000000 "compute: {step: 5ms}" >"$scratch/links.yaml"
make_cluster 3 "experiment: ../links.yaml"
start_peer 0 && first=$pid
start_peer 1 && second=$pid
trap 'kill -9 $first $second $proxy 2>/dev/null; rm -rf "$scratch"' EXIT
proxy=
until_line 0 "$first" "connected rank=1"

# A line as long and as slow as asked, both ways.
to=$(sed -n 's/.*- "127.0.0.1:\([0-9]*\)"/\1/p' "$scratch/2/peer.yaml" |
    sed -n 2p)
python3 - "$to" "$scratch/port" <<'PY' &
import asyncio, sys
DELAY, BYTES_S = 0.1, 2.5e6

async def carry(reader, writer):
    loop = asyncio.get_running_loop()
    queue, free = asyncio.Queue(64), 0.0
    async def deliver():
        while True:
            at, data = await queue.get()
            await asyncio.sleep(max(0, at - loop.time()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()
    task = asyncio.create_task(deliver())
    while True:
        try:
            data = await reader.read(16384)
        except ConnectionError:
            data = b""
        free = max(free, loop.time()) + len(data) / BYTES_S
        await queue.put((free + DELAY, data))
        if not data:
            break
    await task

async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(carry(reader, there[1]), carry(there[0], writer),
                         return_exceptions=True)

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with open(sys.argv[2] + ".new", "w", encoding="ascii") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    import os
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    await server.serve_forever()

asyncio.run(main())
PY
proxy=$!
tries=0
until [ -s "$scratch/port" ] || [ $tries -gt 300 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
sed "s/:$to\"/:$(cat "$scratch/port")\"/" "$scratch/2/peer.yaml" \
    >"$scratch/2/far.yaml"

# While one measures another waits, and has its turn.
timeout 200 "$kith" doctor "$scratch/2/far.yaml" --links --json \
    >"$scratch/far.json" 2>"$scratch/err" &
measures=$!
until_line 1 "$second" "name=peer-2 .*measures=way"
timeout 200 "$kith" doctor "$scratch/2/peer.yaml" --links >"$scratch/json" \
    2>"$scratch/err" || fail "two at once: $(cat "$scratch/json" "$scratch/err")"
grep -c 'link *ok *latency .*, jitter .*, rate .*bit, loss ' "$scratch/json" |
    grep -qx 2 || fail "two at once: $(cat "$scratch/json")"
wait "$measures" || fail "doctor --links: $(cat "$scratch/far.json" "$scratch/err")"
python3 - "$scratch/far.json" <<'PY' || fail "links: $(cat "$scratch/far.json")"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    run = json.load(file)
links = [member["checks"][-1]["link"] for member in run["members"]
         if not member["self"]]
print(links)
near, far = links
assert run["ok"]
assert 0 < near["latency_s"] < far["latency_s"] and far["latency_s"] >= 0.1
assert 0 < far["bits_per_s"] <= 22e6 and near["bits_per_s"] > 0
assert all(link["jitter_s"] >= 0 and 0 <= link["loss"] < 1 for link in links)
PY
# Whatever else runs takes from a rate, and adds nothing to it: the best of three
# is near the line's 20 Mbit/s.
for _ in 1 2; do
    timeout 200 "$kith" doctor "$scratch/2/far.yaml" --links --json \
        >"$scratch/json" 2>"$scratch/err" ||
        fail "doctor --links: $(cat "$scratch/json" "$scratch/err")"
    cat "$scratch/json" >>"$scratch/far.json"
done
python3 - "$scratch/far.json" <<'PY' || fail "rates: $(cat "$scratch/far.json")"
import re, sys
with open(sys.argv[1], encoding="utf-8") as file:
    rates = re.findall(r'"bits_per_s": ?([0-9.e+]+)', file.read())
far = [float(rate) for rate in rates[1::2]]
print(far)
assert len(far) == 3 and 10e6 <= max(far) <= 22e6
PY
expect 0 doctor "$scratch/2/peer.yaml"
grep -q link "$scratch/json" && fail "links were measured unasked"

# Into a machine's file, from which kith plan offers the slowest.
expect 2 plan "$scratch/links.yaml" --to "$scratch/2/far.yaml"
# Measuring takes half a minute where nothing else runs.
timeout 300 "$kith" plan "$scratch/links.yaml" --measure \
    --to "$scratch/2/far.yaml" --machine "$scratch/machine.yaml" --set peers=8 \
    >"$scratch/json" 2>"$scratch/err" ||
    fail "plan --measure: exit $?: $(cat "$scratch/err")"
grep -q "slowest link of --machine is to rank 1" "$scratch/json" ||
    tr '\n' ' ' <"$scratch/json" | tr -s ' ' |
    grep -q "slowest link of --machine is to rank 1" ||
    fail "plan: $(cat "$scratch/json")"
grep -A 2 '^links: ' "$scratch/machine.yaml" | grep -c '{rank: [01], latency: ' |
    grep -qx 2 || fail "machine: $(cat "$scratch/machine.yaml")"
expect 0 plan "$scratch/links.yaml" --machine "$scratch/machine.yaml" \
    --set network.rate=1Gbit
grep -q "slowest link" "$scratch/json" && fail "a link was offered beside one"
sed 's/{rank: 1, .*/{rank: 1, latency: 1s, jitter: 0s, rate: 5Mbit, loss: 1}/' \
    "$scratch/machine.yaml" >"$scratch/wrong.yaml"
expect 3 plan "$scratch/links.yaml" --machine "$scratch/wrong.yaml"
grep -q 'links: found .*allowed: {rank: 1, ' "$scratch/err" ||
    fail "a wrong link: $(cat "$scratch/err")"

# Nobody there: nothing is written over.
cp "$scratch/machine.yaml" "$scratch/kept.yaml"
kill "$first" "$second"
wait "$first" "$second"
expect 6 plan "$scratch/links.yaml" --measure --to "$scratch/2/peer.yaml" \
    --machine "$scratch/machine.yaml"
grep -q -- '--to: no member of .* could be measured' "$scratch/err" ||
    fail "nobody: $(cat "$scratch/err")"
cmp -s "$scratch/machine.yaml" "$scratch/kept.yaml" || fail "written over"
expect 3 plan "$scratch/links.yaml" --measure --to "$scratch/nowhere.yaml" \
    --machine "$scratch/machine.yaml"
finish
