#!/bin/bash
# Goal: what deploy/make-cluster.sh generates really connects two machines.
# Method: a cluster of two; each "machine" is a network namespace with one end
# of a veth pair and the files of its folder. Keys are made, certified and
# brought back as on a first boot; then both run `kith peer`. A third identity
# of another authority is turned away. SKIP where namespaces are refused.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
left=kith-$$-a right=kith-$$-b
peers=()

# shellcheck disable=SC2317 # The trap calls it.
cleanup() {
    local peer
    for peer in "${peers[@]}"; do kill -9 "$peer" 2>/dev/null; done
    ip netns del "$left" 2>/dev/null
    ip netns del "$right" 2>/dev/null
    rm -rf "$scratch"
}
trap cleanup EXIT

command -v ip >/dev/null || skip "no ip (iproute2)"
for at in "$left" "$right"; do
    ip netns add "$at" 2>"$scratch/err" ||
        skip "namespaces are refused: $(cat "$scratch/err")"
done
# A chroot has no /sys to mount for one, or may not.
ip netns exec "$left" true 2>"$scratch/err" ||
    skip "a program cannot be run in a namespace: $(cat "$scratch/err")"
if ! ip link add name veth-a netns "$left" type veth \
    peer name veth-b netns "$right" 2>"$scratch/err"; then
    skip "veth is refused: $(cat "$scratch/err")"
fi
ip -n "$left" addr add 10.77.0.1/24 dev veth-a
ip -n "$right" addr add 10.77.0.2/24 dev veth-b
ip -n "$left" link set veth-a up
ip -n "$right" link set veth-b up

experiment 9 400 "compute: {step: 2ms}" >"$scratch/experiment.yaml"
printf '%s\n' 10.77.0.1:7117 10.77.0.2:7117 >"$scratch/members"
bash "$top/deploy/make-cluster.sh" 2 --members "$scratch/members" \
    --experiment "$scratch/experiment.yaml" --tarball /nowhere/kith.tar.xz \
    --sha256 "$(printf '0%.0s' {1..64})" --kith "$kith" \
    --out "$scratch/cluster" >/dev/null || fail "make-cluster.sh failed"

# machine RANK AUTHORITY: the identity folder of a first boot, and the peer file
# with this machine's folders in place of /etc/kith and /var/lib/kith.
machine() {
    local folder=$scratch/machine-$1
    mkdir -p "$folder"
    cp "$scratch/cluster/$1"/{peer,experiment}.yaml "$folder"
    "$kith" keys new "$folder/identity" --name "peer-$1" >/dev/null ||
        fail "kith keys new failed"
    cp "$2/ca.pub" "$folder/identity/"
    "$kith" keys certify "$2" "$folder/identity/node.request" \
        --rank "$1" >/dev/null ||
        fail "kith keys certify failed"
    sed -i "s|/var/lib/kith|$folder|; s|/etc/kith|$folder|" "$folder/peer.yaml"
}

# start NAMESPACE RANK: in the background; its lines are in machine-RANK/log.
start() {
    ip netns exec "$1" timeout 60 "$kith" peer \
        "$scratch/machine-$2/peer.yaml" >"$scratch/machine-$2/log" 2>&1 &
    peers+=($!)
}

# One with a certificate of somebody else's cluster knocks first.
machine 0 "$scratch/cluster/authority"
"$kith" keys new "$scratch/stranger" --authority >/dev/null
machine 1 "$scratch/stranger"
start "$left" 0
start "$right" 1
sleep 2
kill -TERM "${peers[1]}" 2>/dev/null
wait "${peers[1]}"
grep -q 'refused kind=' "$scratch/machine-0/log" ||
    fail "nobody refused the stranger: $(tail -n 5 "$scratch/machine-0/log")"
grep -q 'connected' "$scratch"/machine-*/log && fail "a stranger connected"
kill -TERM "${peers[0]}" 2>/dev/null
wait "${peers[0]}"

# Then the two that belong together.
rm -rf "$scratch"/machine-*
peers=()
machine 0 "$scratch/cluster/authority"
machine 1 "$scratch/cluster/authority"
start "$left" 0
start "$right" 1
# A peer that has done its share goes on answering until it is told to stop.
for _ in $(seq 150); do
    grep -q ' finished ' "$scratch/machine-0/log" &&
        grep -q ' finished ' "$scratch/machine-1/log" && break
    sleep 0.2
done
for rank in 0 1; do
    log=$scratch/machine-$rank/log
    kill -TERM "${peers[rank]}"
    wait "${peers[rank]}"
    status=$?
    [ $status -eq 0 ] || fail "peer $rank: exit $status: $(tail -n 5 "$log")"
    grep -q ' finished ' "$log" || fail "peer $rank did not finish"
    grep -q "connected rank=$((1 - rank)) name=peer-$((1 - rank))" "$log" ||
        fail "peer $rank did not connect: $(tail -n 5 "$log")"
    [ -s "$scratch/machine-$rank/model/digits.save" ] ||
        fail "peer $rank saved no model"
    done=$(sql "$scratch/machine-$rank/model/digits-peer-1.db" \
        "SELECT value FROM summary WHERE key='exchanges.done'")
    [ "${done:-0}" -gt 100 ] || fail "peer $rank: ${done:-no} exchanges done"
done
peers=()
finish
