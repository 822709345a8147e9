#!/usr/bin/env python3
"""What rounding to bfloat16 costs: one GPT of width 512 trained twice from the
same weights on the same batches, by backend cpu and by backend cpu-bf16.

    usage: bf16_loss.py KITH TEXT [STEPS]

4 blocks, 8 heads, AdamW at 3e-4 with a warm-up of 50, 500 steps. Prints the mean
loss over the last tenth of TEXT after them, float32 against bfloat16, and fails
where they differ by more than 1 %. Skipped (77) where cpu-bf16 cannot run.
In the environment: CONTEXT (64), BATCH, windows a step (2), THREADS (0: one for
each core).
"""
import json
import os
import subprocess
import sys
import tempfile

LIMIT = 0.01
EXPERIMENT = """
name: bf16-loss
seed: 1
peers: 1
stop: {{steps: {steps}}}
model: {{kind: gpt, depth: 4, heads: 8, width: 512, context: {context},
         vocabulary: {vocabulary}}}
data: {{kind: text, path: {text}}}
train: {{optimiser: adamw, learning_rate: 0.0003, beta2: 0.99, warmup: 50,
         schedule: cosine, floor: 0.1, batch: {batch}, backend: {backend}}}
gossip: {{algorithm: local}}
compute: {{threads: {threads}}}
evaluate: end
"""


def why_not(kith):
    backends = json.loads(subprocess.run(
        [kith, "list", "--json"], check=True, capture_output=True,
        text=True).stdout)["backends"]
    return next((b["missing"] for b in backends if b["name"] == "cpu-bf16"),
                "this kith has none")


def loss_of(kith, backend, folder, **fields):
    path = os.path.join(folder, backend + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(EXPERIMENT.format(backend=backend, **fields))
    run = json.loads(subprocess.run(
        [kith, "train", path, "--out", folder, "--json"], check=True,
        stdout=subprocess.PIPE, text=True).stdout)
    print(f"{backend}: loss {run['loss']['mean']:.4f} after {run['steps']} "
          f"steps, {run['wall_s']:.0f} s", flush=True)
    return run["loss"]["mean"]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kith, text = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    missing = why_not(kith)
    if missing is not None:
        print(f"SKIP: {missing}")
        sys.exit(77)
    with open(text, encoding="utf-8") as file:
        vocabulary = len(set(file.read()))
    settings = {name.lower(): os.environ.get(name, initial) for name, initial
                in (("CONTEXT", "64"), ("BATCH", "2"), ("THREADS", "0"))}
    with tempfile.TemporaryDirectory() as folder:
        single, half = (loss_of(kith, backend, folder, text=text,
                                vocabulary=vocabulary,
                                steps=(sys.argv + ["500"])[3], **settings)
                        for backend in ("cpu", "cpu-bf16"))
    apart = half / single - 1
    print(f"bfloat16 : float32 = 1 {apart:+.5f}, limit {LIMIT}: "
          f"{'met' if abs(apart) <= LIMIT else 'MISSED'}")
    sys.exit(abs(apart) > LIMIT)


if __name__ == "__main__":
    main()
