#!/bin/sh
# kith built by its profile: `make profiled`, in folder profiled/ of the build;
# `make -C profiled install` installs it.
#
#   1. built with counters (gcc -fprofile-generate) and link-time optimisation
#   2. short runs of what takes time: events, rounds, steps of training
#   3. built again by what was counted (-fprofile-use); what no run came to is
#      built as it always is (-fprofile-partial-training)
#
# Each run comes to the trace hash of ./kith with both, or this fails. TOP is
# the source, CC and CFLAGS are those of ./kith.
set -eu
: "${TOP:?the folder of the source}" "${CC:?}" "${CFLAGS?}"
# shellcheck disable=SC2086 # A compiler's name may have options.
LC_ALL=C $CC -v 2>&1 | grep -q '^gcc version' || {
    echo "profiled: the compiler is $CC; wanted: gcc (CC=gcc in configure)" >&2
    exit 1
}
# make -n runs whatever calls make.
flags=${MAKEFLAGS-}
case ${flags%% *} in
*[=-]*) ;;
*n*) exit 0 ;;
esac
kith=$PWD/kith
options=$(./config.status --config)
TOP=$(cd "$TOP" && pwd)
rm -rf profiled
mkdir profiled
cd profiled

cat >events.yaml <<YAML
name: events
peers: 2000
stop: {steps: 60}
model: {kind: none}
gossip: {algorithm: adpsgd, topology: random-regular, degree: 16}
compute: {step: 1s, spread: exponential}
network: {latency: 10ms, jitter: 20ms}
YAML
cat >rounds.yaml <<YAML
name: rounds
peers: 2000
stop: {steps: 30}
model: {kind: none}
gossip: {algorithm: dpsgd, topology: torus}
compute: {step: 100ms}
network: {latency: 10ms, rate: 100Mbit}
YAML
cat >training.yaml <<YAML
name: training
peers: 200
stop: {steps: 60}
model: {kind: mlp, layers: [64, 32, 10]}
data: {kind: idx, path: "$TOP/examples/data/digits"}
gossip: {algorithm: adpsgd, every: 1}
compute: {step: 10ms, spread: exponential}
network: {latency: 1ms}
YAML

# runs KITH: the trace hash of each.
runs() {
    for run in events rounds training; do
        "$1" sim $run.yaml --rows none 2>&1 | grep 'trace hash' ||
            { echo "profiled: $1 sim $run.yaml failed" >&2; exit 1; }
    done
}

# build FLAGS
build() {
    echo "profiled: building kith with $1"
    ${MAKE:-make} CFLAGS="$CFLAGS -flto=auto $1" kith >build.log 2>&1 || {
        tail -n 20 build.log >&2
        exit 1
    }
}

eval "set -- $options"
"$TOP/configure" -q "$@" >configure.log 2>&1 || {
    tail -n 20 configure.log >&2
    exit 1
}
runs "$kith" >hashes
build -fprofile-generate
find . -name '*.gcda' -delete
runs ./kith | diff hashes - || exit 1
find . \( -name '*.o' -o -name '*.a' -o -name kith \) -type f -delete
build '-fprofile-use -fprofile-correction -fprofile-partial-training -Wno-missing-profile'
runs ./kith | diff hashes - || exit 1
for each in "$kith" ./kith; do
    echo "profiled: $each sim events.yaml:" \
        "$("$each" sim events.yaml --rows none 2>&1 | grep 'wall time')"
done
echo "profiled: profiled/kith is ready; make -C profiled install installs it"
