#!/bin/sh
# Goal: two peers of two processes each learn what two peers of one process with
# the same batches do, to rounding: GroupPeer under DistributedDataParallel.
# What fails on the first rank is heard on the others, and they pause together. Parameters that are sharded
# (FSDP2) are refused by name.
# Method: examples/python/ddp.py, whose ranks divide a batch, in rounds of diloco,
# which no step is taken beside (of dpsgd's one is, and time decides whether the
# mean is merged before or behind it); the weights of both, compared.
# SKIP without torch.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
# shellcheck source=tests/integration/cluster.sh
. "$top/tests/integration/cluster.sh"
python=${PYTHON:-python3}
"$python" -c 'import numpy, torch' 2>/dev/null || skip "torch is not here"
kith_in_python
command -v "$python" >/dev/null && python=$(command -v "$python")

# ranks N: 41 steps of two peers of N processes: the last round is waited for
# by the step behind it.
ranks() {
    cat >"$scratch/ddp.yaml" <<YAML
name: ddp
peers: 2
stop: {steps: 41}
model:
  kind: program
  run: "$python $top/examples/python/ddp.py $1 32 $scratch/ranks-$1"
gossip: {algorithm: diloco, every: 2, topology: complete, deadline: 60s}
YAML
    timeout 900 "$kith" lab --json --out "$scratch" "$scratch/ddp.yaml" \
        >"$scratch/json" 2>"$scratch/err" || fail "$1 ranks: $(tail -n 3 "$scratch/err")"
    [ "$(json exchanges done)" -eq 20 ] || fail "$1 ranks: $(json exchanges done) of 20 rounds"
}
ranks 1
ranks 2
none_left "processes of a group"
"$python" - "$scratch" <<'PYTHON' || fail "two ranks learn something else"
import sys
import numpy as np
for who in 0, 1:
    one, two = (np.load(f"{sys.argv[1]}/ranks-{n}-{who}.npy") for n in (1, 2))
    apart = np.abs(one - two).max()
    print(f"peer {who}: 2 ranks and 1 are {apart:.2g} apart, weights up to "
          f"{np.abs(one).max():.2g}")
    assert apart < 1e-5
PYTHON

make_cluster 2 "experiment: ../own.yaml"
printf '%s\n' "name: own" "peers: 2" "stop: {steps: 100}" \
    "model: {kind: program}" "gossip: {algorithm: adpsgd, every: 2}" \
    >"$scratch/own.yaml"
cat >"$scratch/fails.py" <<'PYTHON'
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import kith


def run(rank, file):
    dist.init_process_group("gloo", f"file://{file}.meeting", rank=rank,
                            world_size=2)
    model = torch.nn.Linear(3, 2)
    peer = kith.GroupPeer(model, file, start="own", timeout=5)
    try:
        with peer.paused() as still:
            print(f"rank {rank} still: {still}", flush=True)
        for wrong in ((-1, 7), (1 << 31, 1 << 31), (0, 1 << 32), (None, 7),
                      (3, "7"), (1.5, 1.5)):
            try:
                peer.step(0.5, samples=wrong[rank])
            except (TypeError, ValueError):
                print(f"rank {rank} refuses {wrong}", flush=True)
        said, inner = [], peer._peer
        if inner:
            step_of = inner.step
            inner.step = lambda loss, samples: (said.append(samples),
                                                step_of(loss, samples=samples))
        for counts in (0, 5), (3, 5):
            peer.step(0.5, samples=counts[rank])
        if inner:
            inner.step = step_of
            print(f"counts {said}", flush=True)
        for step in range(20):
            if rank == 0 and step == 5:
                model.to(torch.float64)
            peer.step(0.5)
    except (kith.Error, RuntimeError) as error:
        print(f"rank {rank} hears at {step}: {error}", flush=True)


if __name__ == "__main__":
    multiprocessing.spawn(run, (sys.argv[1],), nprocs=2)
PYTHON
timeout 120 "$python" "$scratch/fails.py" "$scratch/0/peer.yaml" \
    >"$scratch/said" 2>&1
[ "$(grep -c 'hears at [56]: .*lies elsewhere' "$scratch/said")" -eq 2 ] ||
    fail "what fails on the first rank: $(tail -n 3 "$scratch/said")"
[ "$(grep -c 'rank [01] refuses' "$scratch/said")" -eq 12 ] &&
    grep -q '^counts \[0, 8\]' "$scratch/said" ||
    fail "counts of two ranks: $(cat "$scratch/said")"
[ "$(grep -c 'rank [01] still: True' "$scratch/said")" -eq 2 ] ||
    fail "a pause of two ranks: $(tail -n 3 "$scratch/said")"

"$python" - "$scratch/meeting" >"$scratch/said" 2>&1 <<'PYTHON'
import sys
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
import kith
dist.init_process_group("gloo", f"file://{sys.argv[1]}", rank=0, world_size=1)
model = nn.Linear(3, 3)
fully_shard(model)
kith.Peer(model, "peer.yaml")
PYTHON
grep -q "sharded over processes (FSDP2" "$scratch/said" ||
    fail "FSDP2: $(tail -n 3 "$scratch/said")"
finish
