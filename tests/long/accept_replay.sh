#!/bin/sh
# Goal: reference/algorithms.md T16 g): the simulator, in the order that real
# peers recorded, has their accuracy to 0.3 points and their floats to 1e-5;
# for every algorithm, and with peers that crash.
# Method: lab_replay.py with five seeds; SEEDS chooses others.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# replay FOLDER OPTIONS...
replay() {
    folder=$scratch/$1
    mkdir "$folder"
    shift
    # shellcheck disable=SC2086
    PYTHONDONTWRITEBYTECODE=1 python3 "$top/tests/integration/lab_replay.py" \
        "$kith" "$data" "$folder" "$@" ${SEEDS:-1 2 3 4 5} ||
        fail "a replay is off"
}

replay all
replay crash --algorithms \
    adpsgd+crash,dpsgd+crash,gosgd+crash,swarm+crash,choco+crash
none_left "the labs"
finish
