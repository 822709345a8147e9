#!/bin/sh
# A sweep of simulations as a Slurm array: shards on as many machines as there
# are free, and a job after them that puts their databases together.
#
#   deploy/slurm/sweep.sh [-n] SHARDS OUT EXPERIMENT.yaml KITH-OPTION...
#   deploy/slurm/sweep.sh 8 runs mine.yaml --sweep gossip.every=1,2,4 --seeds 5
#
# SHARDS   tasks of the array, 1 to 1000; each runs every SHARDS-th cell
# OUT      folder of this sweep that all nodes see; sweep.db in it is the whole
# -n       show the commands only
# KITH     the program on the nodes (kith)
# SBATCH   options for both jobs, as in SBATCH="--partition=cpu --time=2:00:00"
# SHARD_SBATCH   for the shards alone (--cpus-per-task=1): so many runs at a time
#
# A shard that is preempted, requeued or cut by its time limit goes on where it
# was: sbatch --requeue, or this command again. Seeds and cells are those of the
# sweep in one process, and so are its rows but for clocks.
set -eu
usage() {
    sed -n '5,6s/^# *//p' "$0" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
submit=sbatch
[ "${1:-}" = -n ] && {
    submit="echo sbatch"
    shift
}
[ $# -ge 4 ] || usage
shards=$1 out=$2 experiment=$3
shift 3
case $shards in
'' | *[!0-9]* | 0* | ?????*) usage ;;
esac
[ "$shards" -le 1000 ] || usage
[ -r "$experiment" ] || {
    echo "sweep.sh: $experiment cannot be read: name the experiment's file" >&2
    exit 1
}
for option in "$@"; do
    case $option in
    --shard* | --out* | --jobs* | --resume* | --json)
        echo "sweep.sh: $option is given by this script: leave it out" >&2
        exit 2
        ;;
    esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
name=$(basename "$experiment" .yaml)
# Options of a job are words: the variables are split on purpose.
# shellcheck disable=SC2086
array=$($submit --parsable --array="1-$shards" --job-name="kith-$name" \
    --output="$out/shard-%a.log" ${SBATCH:-} ${SHARD_SBATCH:-} \
    "$here/shard.sbatch" "$out" "$experiment" "$@")
echo "shards: job $array, logs $out/shard-*.log"
# shellcheck disable=SC2086
merge=$($submit --parsable --dependency="afterany:${array%%;*}" \
    --job-name="kith-$name-merge" --output="$out/merge.log" \
    ${SBATCH:-} "$here/merge.sbatch" "$out" "$shards")
echo "merge:  job $merge, into $out/sweep.db"
