#!/bin/sh
# Goal: kith list balance says what a layer computes and sends, of a model and of
# a file, and refuses what is wrong by name.
# Method: figures of T5.5, the file's own shape, wrong command lines.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

"$kith" list balance vgg 64 --batch 256 >out || fail "exit $?"
grep -q "132.85 M weights in 11 layers (506.8 MiB)" out || fail "no size"
grep -q "^stack1.conv1 .* 75264 .* data " out || fail "no convolution"
grep -q "^fc1 .* 1.5 .* 2 groups " out || fail "no groups"
"$kith" list balance vgg 64 --batch 256 --set network.rate=10Gbit \
    --set compute.peak=1e12 --json >json || fail "json: exit $?"
python3 - <<'PY' || fail "the object is wrong"
import json
found = json.load(open("json"))
assert found["peers"] == 64 and found["batch"] == 256, found
assert len(found["layers"]) == 11 and found["layers"][8]["groups"] == 2
assert abs(found["peers_max"] - 27.4) < .1, found["peers_max"]
alone, ready, layer = (found[f"step_{way}_s"] for way in
                       ("alone", "first_ready", "by_layer"))
assert alone > ready >= layer > 4 * 45.65e9 / 1e12, (alone, ready, layer)
PY
"$kith" list balance "$top/examples/demo.yaml" >out || fail "file: exit $?"
grep -q "8 peers, 128 examples" out || fail "the file's peers and batch"
grep -q "^fc1  *200704 " out || fail "the file's shape"

refused()
{
    words=$1
    shift
    "$kith" list "$@" >out 2>err
    [ $? -eq 2 ] || fail "kith list $*: not exit 2"
    grep -qF -- "$words" err || fail "kith list $*: $(cat err)"
}
refused 'did you mean "vgg"?' balance vg
refused "needs a model" balance
refused 'found "x" after vgg' balance vgg x
refused "--batch: found" balance vgg --batch 0
refused "another" balance vgg --set model.depth=13
refused "of kith list balance alone" models --batch 8
"$kith" list balance ./none.yaml >out 2>err && fail "a file that is not there"
grep -q "No such file" err || fail "$(cat err)"
finish
