# shellcheck shell=sh disable=SC2034,SC2154
# What the tests of several `kith peer` share, behind lab.sh: keys, peer files and
# processes, as README's two machines have them, all on this one.

# free_ports COUNT: ports of this machine that nobody listens on, one a line.
free_ports() {
    "${PYTHON:-python3}" - "$1" <<'PY'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in sockets:
    one.bind(("127.0.0.1", 0))
for one in sockets:
    print(one.getsockname()[1])
PY
}

# make_cluster COUNT [LINE...]: $scratch/I/peer.yaml for I from 0 on, each with
# an identity of its own and the lines; the experiment is $scratch/FILE.yaml of
# `experiment:`, which the caller writes.
make_cluster() {
    count=$1 rank=0
    shift
    "$kith" keys new "$scratch/authority" --authority >/dev/null ||
        fail "no authority"
    members=$(free_ports "$count" | sed 's/.*/  - "127.0.0.1:&"/')
    rank=0
    while [ $rank -lt "$count" ]; do
        mkdir "$scratch/$rank"
        "$kith" keys new "$scratch/$rank/identity" --name "peer-$rank" \
            >/dev/null && "$kith" keys certify "$scratch/authority" \
            "$scratch/$rank/identity/node.request" --rank $rank >/dev/null ||
            fail "no keys for peer $rank"
        cp "$scratch/authority/ca.pub" "$scratch/$rank/identity/"
        {
            printf '%s\n' "identity: identity" "rank: $rank" \
                "listen: $(echo "$members" | sed -n "$((rank + 1))s/.*- //p")" \
                "save: model" "$@" "members:" "$members"
        } >"$scratch/$rank/peer.yaml"
        rank=$((rank + 1))
    done
}

# start_peer RANK: in the background; its process is $pid, its output
# $scratch/RANK/out and err. $peer_options: one more option.
start_peer() {
    : >"$scratch/$1/err" # or a look at it could find the last start's
    "$kith" peer "$scratch/$1/peer.yaml" ${peer_options:-} >"$scratch/$1/out" \
        2>"$scratch/$1/err" &
    pid=$!
}

# until_line RANK PID PATTERN: waits for a line of the peer's log.
until_line() {
    tries=0
    until grep -q "$3" "$scratch/$1/err" 2>/dev/null; do
        tries=$((tries + 1))
        kill -0 "$2" 2>/dev/null && [ $tries -lt 1200 ] || {
            fail "peer $1: no line like $3"
            cat "$scratch/$1/err" >&2
            return
        }
        sleep 0.1
    done
}
