#!/bin/sh
# Goal: every algorithm x topology x compressor is refused by name or keeps its
# promises through faults. Method: all cells, under several seeds, each with
# other faults; unit and property tests look at a sample only.
#   KITH_SEEDS  how many, 10 where not given
set -u
seed=1
while [ "$seed" -le "${KITH_SEEDS:-10}" ]; do
    echo "seed ${seed}000"
    KITH_SEED=${seed}000 ./tests/property/test_matrix --all || exit 1
    seed=$((seed + 1))
done
