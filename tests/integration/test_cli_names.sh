#!/bin/sh
# Goal: another program's names and axes, by --names, on the way out and in: its
# tensors under its names as it has them, the same model back; which did not fit
# is said of each, with what is close.
# Method: a small cnn, whose files Python reads byte by byte; PyTorch's
# load_state_dict, forward and back (left out by name without PyTorch,
# PYTHON=.../python3 of an environment that has it).
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

# refuses EXPECTED PATTERN ARGUMENTS...
refuses() {
    expected=$1 pattern=$2
    shift 2
    expect "$expected" "$@"
    one_line "kith $*" "$pattern"
}

cat >safetensors.py <<'PY'
"""{name: (shape, [values])} of a file of float32, and back."""
import json, struct

def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (one["shape"], struct.unpack(
        f"<{(one['data_offsets'][1] - one['data_offsets'][0]) // 4}f",
        data[slice(*one["data_offsets"])])) for name, one in header.items()}

def write(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        new = data + struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [len(data), len(new)]}
        data = new
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
PY
cat >names.yaml <<'YAML'
"features.*.weight": {name: conv*.weight, axes: [2, 3, 1, 0]}
"features.*.bias": conv*.bias
head.weight: fc.weight
YAML
experiment 1 20 | sed 's/^model: .*/model: {kind: cnn, image: [8, 8, 1], channels: [3, 5], classes: 10}/' >cnn.yaml

# Out: their names, their shapes, and each value in its place.
expect 0 train cnn.yaml --save cnn.save --json
loss=$(json loss averaged)
expect 0 export cnn.save --out ours.safetensors
expect 0 export cnn.save --out theirs.safetensors --names names.yaml
export PYTHONPATH="$scratch" PYTHONDONTWRITEBYTECODE=1
python3 - <<'PY' || fail "export --names: not as they have it"
from safetensors import read
ours, theirs = read("ours.safetensors"), read("theirs.safetensors")
assert "features.1.weight" in theirs and "head.weight" in theirs, list(theirs)
assert theirs["fc.bias"] == ours["fc.bias"], "what no line names"
(kh, kw, ins, outs), mine = ours["conv2.weight"]
shape, turned = theirs["features.2.weight"]
assert shape == [outs, ins, kh, kw] == [5, 3, 3, 3], shape
for o in range(outs):
    for i in range(ins):
        for y in range(kh):
            for x in range(kw):
                assert turned[((o * ins + i) * kh + y) * kw + x] == \
                    mine[((y * kw + x) * ins + i) * outs + o]
PY

# In: no step is made with a rate of 0.
back() {
    rm -f again.save*
    expect 0 train cnn.yaml --init "$1" --save again.save --set stop.steps=1 \
        --set train.learning_rate=0 --json ${2:+--names "$2"}
    holds "abs($(json loss averaged) - $loss) < 1e-6" ||
        fail "--init $1: another loss"
}
back ours.safetensors
back theirs.safetensors names.yaml
expect 0 export again.save --out round.safetensors --names names.yaml
cmp -s theirs.safetensors round.safetensors || fail "a round trip: other bytes"

# What does not fit, all of it on one line, and what is close.
refuses 3 "no tensor conv1.weight (3, 3, 1, 3), close is features.1.weight (3, 1, 3, 3); .*no tensor fc.weight .*, close is head.weight (10, 20); .*no tensor conv2.bias (5), close is features.2.bias (5)" \
    train cnn.yaml --init theirs.safetensors
sed 's/, axes.*/}/; s/head.weight/haed.weight/' names.yaml >straight.yaml
refuses 3 "tensor features.1.weight is (3, 1, 3, 3), the model's is (3, 3, 1, 3); .*no tensor haed.weight for fc.weight .*, close is head.weight" \
    train cnn.yaml --init theirs.safetensors --names straight.yaml
sed 's/fc.weight/fc.wieght/' names.yaml >wrong.yaml
for command in "train cnn.yaml --init theirs.safetensors" \
    "export cnn.save --out other.safetensors"; do
    # shellcheck disable=SC2086 # Words.
    refuses 3 'wrong.yaml:3: found "fc.wieght".*did you mean "fc.weight"' \
        $command --names wrong.yaml
    # shellcheck disable=SC2086
    refuses 3 "names: cannot read none.yaml" $command --names none.yaml
done
[ -e other.safetensors ] && fail "export: wrote what was refused"
echo "x: [1, 2]" >list.yaml
refuses 3 "list.yaml:1: x: found a list; allowed: a tensor" \
    export cnn.save --out other.safetensors --names list.yaml
refuses 2 "what the tensors of --init are called" train cnn.yaml \
    --names names.yaml

# PyTorch's own module, there and back.
python=${PYTHON:-python3}
if "$python" -c 'import torch' 2>/dev/null; then
    experiment 1 1 >mlp.yaml
    printf '%s\n' "0.*: fc1.*" "2.*: fc2.*" >torch.yaml
    cat >there.py <<'PY'
import sys, torch
from safetensors import read, write
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(),
                          torch.nn.Linear(32, 10))
state = net.state_dict()
if sys.argv[1] == "out":
    write("torch.safetensors", {name: (one.shape, one.flatten().tolist())
                                for name, one in state.items()})
else:
    found = {name: torch.tensor(values).view(shape) for name, (shape, values)
             in read("back.safetensors").items()}
    other = torch.nn.Sequential(*[torch.nn.Linear(64, 32), torch.nn.ReLU(),
                                  torch.nn.Linear(32, 10)])
    print("expected: all keys; measured:", other.load_state_dict(found))
    x = torch.rand(7, 64)
    assert torch.equal(net(x), other(x))
PY
    "$python" there.py out || fail "torch: no file"
    expect 0 train mlp.yaml --init torch.safetensors --names torch.yaml \
        --save mlp.save --set train.learning_rate=0 --json
    expect 0 export mlp.save --out back.safetensors --names torch.yaml
    "$python" there.py back || fail "torch: another model came back"
else
    echo "left out: torch is not here"
fi
finish
