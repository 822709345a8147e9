#!/bin/sh
# Goal: a checkpoint is enough to evaluate, sample and export its model, without
# the data it was trained on; weights go out and come back; what a user can get
# wrong is one line and a documented exit code.
# Method: small models of generated text and images, trained for some steps.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

# refuses EXPECTED PATTERN ARGUMENTS...
refuses() {
    expected=$1 pattern=$2
    shift 2
    expect "$expected" "$@"
    one_line "kith $*" "$pattern"
    [ -s "$scratch/json" ] && fail "kith $*: printed on standard output"
}

python3 - <<'PY'
import struct
words = ["peers", "train", "together", "naïve", "a", "server", "\n", "!"]
text = " ".join(words[(i * 7 + i // 5) % 8] for i in range(4000))
open("text.txt", "w", encoding="utf-8").write(text)
open("other.txt", "w").write("other letters, quite: 0123456789 xyz " * 200)
tokens = [i * i % 200 for i in range(4000)]
for part in ("train", "val"):
    with open(f"{part}.bin", "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253))
        file.write(struct.pack(f"<{len(tokens)}H", *tokens))
PY
mkdir shards && mv train.bin val.bin shards/
cat >gpt.yaml <<'YAML'
name: gpt
seed: 5
peers: 1
stop: {steps: 30}
model: {kind: gpt, depth: 1, heads: 2, width: 16, context: 24, vocabulary: 20}
data: {kind: text, path: text.txt}
train: {optimiser: adamw, learning_rate: 0.01, batch: 8}
YAML
expect 0 train gpt.yaml --save gpt.save --json
loss=$(json loss averaged)

# eval: what the run itself measured, with the keys that are promised.
expect 0 eval gpt.save --json
holds "abs($(json loss) - $loss) < 1e-6" || fail "eval: another loss"
python3 - "$scratch/json" <<'PY' || fail "eval: wrong keys"
import json, math, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1, "one line"
found = json.loads(text)
assert list(found) == [
    "checkpoint", "experiment", "model", "parameters", "step", "examples",
    "tokens", "loss", "accuracy", "perplexity", "estimated_batches",
    "wall_s"], list(found)
assert found["tokens"] == found["examples"] * 24 and found["step"] == 30
assert abs(found["perplexity"] - math.exp(found["loss"])) < 1e-5
PY
# Same threads, same bits; the run's where none are given.
for threads in 1 2; do
    expect 0 eval gpt.save --json --threads $threads
    once=$(json loss)
    holds "abs($once - $loss) < 1e-6" || fail "eval --threads: another loss"
    expect 0 eval gpt.save --json --threads $threads
    [ "$(json loss)" = "$once" ] || fail "eval --threads $threads: other bits"
    expect 0 sample gpt.save --tokens 60 --threads $threads
    cp json text
    expect 0 sample gpt.save --tokens 60 --threads $threads
    cmp -s json text || fail "sample --threads $threads: another text"
done
refuses 2 'threads.*"0"' eval gpt.save --threads 0
expect 0 eval gpt.save.best
grep -q perplexity "$scratch/json" || fail "eval: no perplexity in the table"

# sample: the text of a seed, as many characters as asked for, longer than the
# context; the data is not needed.
mv text.txt away.txt
sample() {
    expect 0 sample gpt.save --prompt "peers" "$@"
    cat "$scratch/json"
}
sample --tokens 100 --seed 1 >a.txt
sample --tokens 100 --seed 1 >b.txt
sample --tokens 100 --seed 2 >c.txt
cmp -s a.txt b.txt || fail "sample: the same seed, another text"
cmp -s a.txt c.txt && fail "sample: another seed, the same text"
python3 - <<'PY' || fail "sample: not what was asked for"
text = open("a.txt", encoding="utf-8").read()
assert text.startswith("peers") and len(text) == 5 + 100 + 1, len(text)
text = text[:-1]
assert set(text) <= set(open("away.txt", encoding="utf-8").read()), set(text)
PY
sample --tokens 50 --temperature 0 >a.txt
sample --tokens 50 --top-k 1 --seed 9 >b.txt
cmp -s a.txt b.txt || fail "sample: --top-k 1 is not the likeliest"
expect 0 sample gpt.save --tokens 3
refuses 2 "no such character" sample gpt.save --prompt "QUITE"
refuses 2 "a number from 0 to 100" sample gpt.save --temperature -1
refuses 2 "a number from 0 to 100" sample gpt.save --temperature nan
refuses 2 "whole number" sample gpt.save --tokens 0
refuses 2 "whole number" sample gpt.save --top-k x
refuses 2 'did you mean "--prompt"' sample gpt.save --promt x
refuses 4 "none.json" sample gpt.save --tokenizer none.json
refuses 4 "gpt.yaml" sample gpt.save --tokenizer gpt.yaml
timeout 20 "$kith" sample gpt.save >/dev/full 2>"$scratch/err"
[ $? -eq 5 ] || fail "sample: a full disk is not exit 5"

# The data is missing, moved, or other text.
refuses 4 "text.txt.*--data" eval gpt.save
refuses 4 "nowhere" eval gpt.save --data nowhere
refuses 4 "" eval gpt.save --data other.txt
expect 0 eval gpt.save --data away.txt --json
holds "abs($(json loss) - $loss) < 1e-6" || fail "eval --data: another loss"
mv away.txt text.txt
tr a b <text.txt >fewer.txt
refuses 4 "other characters" eval gpt.save --data fewer.txt

# Another model, none, or a damaged one.
refuses 3 "another model" eval gpt.save --set model.width=32
refuses 3 'did you mean "width"' eval gpt.save --set model.widht=32
refuses 3 "No such file" eval none.save
refuses 3 "not a checkpoint" eval gpt.yaml
refuses 2 "no running statistics" eval gpt.save --estimate 3
head -c 3000 gpt.save >short.save
refuses 3 "truncated" eval short.save
refuses 3 "truncated" sample short.save
refuses 3 "truncated" export short.save --out short.safetensors
[ -e short.safetensors ] && fail "export: wrote a damaged model"

# A GPT-2 config.json cannot say these; the other models have neither.
for setting in norm=rms positions=rotary; do
    expect 0 train gpt.yaml --save "$setting.save" --set "model.$setting" \
        --set stop.steps=1 --json
    refuses 2 "model.${setting%=*}: ${setting#*=}" export "$setting.save" \
        --out modern.safetensors
    [ -e modern.safetensors ] && fail "export: wrote what GPT-2 is not"
done
refuses 3 "model.norm: found group; allowed for model gpt: layer, rms" \
    train gpt.yaml --set model.norm=group

# export, and back in: no step is made with a rate of 0.
mkdir hf
expect 0 export gpt.save --out hf/model.safetensors
expect 0 export gpt.save --out hf/model.safetensors
python3 - <<'PY' || fail "export: not what Hugging Face's loaders expect"
import json, struct
config = json.load(open("hf/config.json"))
assert config["model_type"] == "gpt2" and config["n_layer"] == 1, config
assert config["vocab_size"] == 20 and config["n_positions"] == 24
with open("hf/model.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
assert header.pop("__metadata__") == {"format": "pt"}
assert all(entry["dtype"] == "F32" for entry in header.values())
assert header["h.0.attn.c_attn.weight"]["shape"] == [16, 48]
assert header["wte.weight"]["shape"] == [20, 16]
assert "h.0.mlp.c_fc.bias" in header and "ln_f.weight" in header
assert not any(name.startswith("optimiser") for name in header)
PY
expect 0 train gpt.yaml --init hf/model.safetensors --save again.save \
    --set stop.steps=1 --set train.learning_rate=0 --json
holds "abs($(json loss averaged) - $loss) < 1e-6" || fail "--init: another loss"
refuses 3 "no tensor h.1" train gpt.yaml --init hf/model.safetensors \
    --set model.depth=2
refuses 3 "is (20, 16), the model's is (20, 32)" train gpt.yaml \
    --init hf/model.safetensors --set model.width=32
refuses 3 "none.safetensors" train gpt.yaml --init none.safetensors
refuses 3 "gpt.yaml" train gpt.yaml --init gpt.yaml
refuses 2 "needs --out" export gpt.save
refuses 2 "ends in .safetensors" export gpt.save --out model.bin
refuses 5 "nowhere" export gpt.save --out nowhere/model.safetensors
mkdir taken && echo "{}" >taken/config.json
refuses 5 "choose another folder" export gpt.save --out taken/model.safetensors
[ -e taken/model.safetensors ] && fail "export: left half of it"

# Bytes, byte pairs, images.
expect 0 train gpt.yaml --save bytes.save --set data.kind=bytes \
    --set model.vocabulary=256 --set stop.steps=5
expect 0 sample bytes.save --prompt "naïve" --tokens 10
[ "$(wc -c <"$scratch/json")" -eq 17 ] || fail "sample: not ten bytes"
expect 0 train gpt.yaml --save pairs.save --set data.kind=tokens \
    --set data.path="$scratch/shards" --set model.vocabulary=2048 \
    --set stop.steps=3
refuses 3 "with --tokenizer" sample pairs.save
expect 0 sample pairs.save --tokens 5 --prompt "naïve peers" \
    --tokenizer "$top/tests/vectors/tokenizer/tokenizer.json"
grep -q "^naïve peers" "$scratch/json" || fail "sample: the prompt is lost"
experiment 1 20 >digits.yaml
expect 0 train digits.yaml --save digits.save
expect 0 eval digits.save --json
[ "$(json perplexity)" = None ] || fail "eval: images have a perplexity"
refuses 3 "reads no text" sample digits.save
expect 0 export digits.save --out digits.safetensors
[ -e config.json ] && fail "export: a config.json for an mlp"

# Push-sum: the model is x / w. An interrupted lab keeps its peers' saves.
experiment 3 1000000 "save: 100ms" "compute: {step: 2ms}" >sgp.yaml
timeout 60 "$kith" lab sgp.yaml --set gossip.algorithm=sgp --save saves \
    >"$scratch/json" 2>"$scratch/err" &
child=$!
for _ in $(seq 50); do
    [ -e saves/peer-1.save.previous ] && break
    sleep 0.2
done
kill -TERM "$child"
wait "$child"
if [ -e saves/peer-1.save ]; then
    expect 0 export saves/peer-1.save --out peer.safetensors
    python3 - <<'PY' || fail "export: push-sum's factor is not applied"
import json, struct
def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    texts = header.pop("__metadata__")
    def values(name):
        a, b = header[name]["data_offsets"]
        return struct.unpack(f"<{(b - a) // 4}f", data[a:b])
    return texts, values, header
texts, x, header = read("saves/peer-1.save")
_, z, views = read("peer.safetensors")
weight = float.fromhex(texts["scalar.0"])
for name in views:
    for a, b in zip(x(name), z(name)):
        assert abs(a / weight - b) <= 1e-6 * (1 + abs(b)), name
PY
    refuses 3 "push-sum" train sgp.yaml --init saves/peer-1.save
else
    fail "an interrupted lab left no saves: $(ls saves)"
    cat "$scratch/err" >&2
fi

# A full disk: one line, exit 5, and nothing is left.
mkdir small
if mount -t tmpfs -o size=8k kith-test small 2>/dev/null; then
    trap 'umount -l "$scratch/small"; rm -rf "$scratch"' EXIT
    refuses 5 "no space left" export gpt.save --out small/model.safetensors
    [ -z "$(ls small)" ] || fail "a full disk: $(ls small) is left"
fi
finish
