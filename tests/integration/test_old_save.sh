#!/bin/sh
# Goal: a checkpoint that kith 50ce217 wrote, whose experiment has a hash of
# version 1, goes on; of another experiment it is refused by the key that
# differs.
# Method: a copy of tests/golden/old/old-train-1.save and one --set.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

old=$top/tests/golden/old
save=$scratch/old-train-1.save
cp "$old/old-train-1.save" "$save" && chmod u+w "$save"

"$kith" train "$old/old.yaml" --resume "$save" --seed 8 >"$scratch/out" 2>&1 &&
    fail "another seed goes on"
grep -q "its seed is 7, this run's is 8" "$scratch/out" ||
    fail "another seed: $(cat "$scratch/out")"

"$kith" train "$old/old.yaml" --resume "$save" >"$scratch/out" 2>&1 ||
    fail "does not go on: $(cat "$scratch/out")"
grep -q "going on from .* at step 80" "$scratch/out" ||
    fail "goes on from elsewhere: $(cat "$scratch/out")"
grep -q "accuracy  *64.99 %" "$scratch/out" ||
    fail "another model: $(cat "$scratch/out")"
finish
