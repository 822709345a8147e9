#!/bin/sh
# Goal: kith sim --dump writes what the run did, the same bytes for any number of
# threads, and changes nothing of it; what cannot be dumped is refused by name,
# and no file is left then; the lines of docs/dump.md check a trajectory.
# Method: quadratics, and the bundled digits in float32.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
numpy || skip "no python3 with NumPy"
file=$scratch/run.yaml
dump=$scratch/run.npz

# lines N: the N-th block of Python of docs/dump.md.
lines() {
    awk -v wanted="$1" '/^```python/ { block++; next } /^```/ { on = 0 }
        block == wanted && !/^```/ && !done { print } /^```$/ &&
        block == wanted { done = 1 }' "$top/docs/dump.md"
}
awk '/^```yaml/ { on = 1; next } /^```/ { on = 0 } on' "$top/docs/dump.md" \
    >"$file"

expect 0 sim "$file" --json --out "$scratch"
plain=$(json trace_hash)
expect 0 sim "$file" --json --out "$scratch" --dump "$dump"
[ "$plain" = "$(json trace_hash)" ] || fail "a dump changes the trace"
expect 0 sim "$file" --json --out "$scratch" --threads 3 \
    --dump "$scratch/threads.npz"
cmp "$dump" "$scratch/threads.npz" || fail "threads change the dump"
for block in 1 2; do
    lines $block >"$scratch/check.py"
    echo "docs/dump.md, block $block: $(wc -l <"$scratch/check.py") lines"
    (cd "$scratch" && "$python" check.py) || fail "docs/dump.md, block $block"
    expect 0 sim "$file" --out "$scratch" --dump "$dump" \
        --set gossip.algorithm=sgp-sync
done

# Models of a data set, in the backend's own precision.
experiment 3 8 "compute: {step: 2ms}" "evaluate: end" >"$scratch/digits.yaml"
expect 0 sim "$scratch/digits.yaml" --out "$scratch" --dump "$dump" \
    --set gossip.algorithm=gt --set gossip.every=3 --set gossip.topology=path
"$python" - "$dump" <<'PY' || fail "the dump of the digits"
import sys
import zipfile
import numpy as np
assert zipfile.ZipFile(sys.argv[1]).testzip() is None
d = np.load(sys.argv[1])
shapes = {key: d[key].shape for key in d}
print(shapes, d["x"].dtype)
assert d["x"].dtype == np.float32 and d["W"].dtype == np.float64
dim = 64 * 32 + 32 + 32 * 10 + 10
assert shapes == {"x": (9, 3, dim), "vectors": (9, 3, 2, dim), "rate": (8,),
                  "W": (2, 3, 3), "graph": (3, 3)}, shapes
assert (d["x"][0] == d["x"][0, 0]).all() and (d["x"][8] != d["x"][0]).any()
PY

# refused STATUS WORDS ARGUMENTS...: what is said, and no file.
refused() {
    status=$1 words=$2
    shift 2
    rm -f "$scratch"/refused*
    expect "$status" sim "$@" --out "$scratch/out" \
        --dump "$scratch/refused.npz"
    grep -q -- "$words" "$scratch/err" || {
        fail "not said: $words"
        cat "$scratch/err" >&2
    }
    for left in "$scratch"/refused*; do
        [ ! -e "$left" ] || fail "$left is left"
    done
}
refused 3 "adpsgd has no synchronous form" "$file" \
    --set gossip.algorithm=adpsgd
sed 's/^gossip:.*/central: {method: gradient}/' "$file" >"$scratch/central.yaml"
refused 3 "a central method mixes no models" "$scratch/central.yaml"
sed 's/steps: 100/time: 1s/' "$file" >"$scratch/time.yaml"
refused 3 "say stop.steps" "$scratch/time.yaml"
refused 8 "it would take 20.4 GiB, and the most is 4 GiB" "$file" \
    --set model.dim=1000000
refused 2 "belong to one run" "$file" --seeds 2
{
    cat "$file"
    echo 'faults: [{at: 20ms, crash: "peer(3)", restart: 30ms}]'
} >"$scratch/crash.yaml"
refused 3 "peer 3 has not begun step" "$scratch/crash.yaml"
# A file of that size is not allowed: as a full disk says it.
(
    ulimit -f 4096 # the database fits
    trap '' XFSZ
    refused 5 "writing .*refused.npz: File too large" "$file" \
        --set model.dim=2000
    exit "$failures"
) || fail "a disk that is full"
finish
