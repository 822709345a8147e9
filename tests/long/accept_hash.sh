#!/bin/sh
# Goal: a simulated run is a function of (experiment file, seed, source): one
# trace hash for gcc and clang, -O1 and -O3, 1 and 2 threads, both event queues
# and both wire modes. Method: builds of their own in hash-builds/, the digits
# with and without faults, three seeds.
set -u
top=${srcdir:-$(dirname "$0")/../..}
top=$(cd "$top" && pwd)
mkdir -p hash-builds && cd hash-builds || exit 99
builds=
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null 2>&1 || {
        echo "accept_hash: $compiler is not installed: left out" >&2
        continue
    }
    for level in 1 3; do
        name=$compiler-O$level
        mkdir -p "$name"
        (cd "$name" &&
            { [ -f Makefile ] || "$top/configure" -q CC="$compiler" \
                CFLAGS="-O$level"; } &&
            make -s -j "$(nproc)" kith) >"$name.log" 2>&1 || {
            tail -n 20 "$name.log" >&2
            echo "accept_hash: $name does not build" >&2
            exit 99
        }
        builds="$builds $name"
    done
done

status=0
runs=0
rm -rf out && mkdir out || exit 99
for file in digits faults; do
    for seed in 7 8 9; do
        expected=
        for build in $builds; do
            for how in "--threads 1" "--threads 2" \
                "--threads 2 --queue heap" "--threads 2 --set network.wire=full"; do
                # shellcheck disable=SC2086 # words on purpose
                hash=$("$build/kith" sim "$top/examples/$file.yaml" \
                    --seed $seed $how --json --out out 2>out/errors |
                    sed 's/.*"trace_hash": *"\([0-9a-f]*\)".*/\1/' | tr -d '\n')
                runs=$((runs + 1))
                : "${expected:=$hash}"
                case $hash in
                *[!0-9a-f]* | '') hash=none ;;
                esac
                if [ "$hash" != "$expected" ]; then
                    echo "$file, seed $seed, $build, $how: $hash," \
                        "not $expected" >&2
                    cat out/errors >&2
                    status=1
                fi
            done
        done
        echo "accept_hash: $file, seed $seed: $expected"
    done
done
echo "accept_hash: $runs runs of:$builds"
exit $status
