#!/bin/sh
# Goal: the wheel of this build, torch and numpy from PyPI, and nothing else (no
# compiler, header or program in sight): nanogpt.py as two peers and as eight by the
# wheel's `kith lab`; then as two in two network namespaces, by the commands of
# docs/python.md, "Two machines".
# Method: VENV names a virtual environment that has torch and numpy (5 GB), else one
# is made; the wheel is put into it. STEPS (100) of the two. SKIP without patchelf;
# the namespaces are left out where this user cannot make them.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
command -v patchelf >/dev/null || skip "patchelf is not here"
venv=${VENV:-$scratch/venv}
steps=${STEPS:-100}
[ -d "$venv" ] || python3 -m venv "$venv" || skip "python3 -m venv does not work"
mkdir "$scratch/wheel"
ln -s "$PWD/kith" "$PWD/libkith.so.0" "$scratch/wheel"
python3 "$top/python/make_wheel.py" 9.9.9 "$scratch/wheel" || exit 1
"$venv/bin/pip" install -q --force-reinstall --no-deps "$scratch"/wheel/*.whl &&
    "$venv/bin/pip" install -q torch numpy || exit 1

# Nothing of this system's in PATH, nothing of the build's in the environment.
alone() {
    env -i HOME="$scratch" PATH="$venv/bin" PYTHONDONTWRITEBYTECODE=1 \
        KITH_TEST_MARK="$KITH_TEST_MARK" "$@"
}
alone "$venv/bin/python3" -c '
import shutil
assert not [tool for tool in ("cc", "gcc", "g++", "ld", "make") if shutil.which(tool)]'

for peers in 2 8; do
    alone "$venv/bin/kith" lab --json --out "$scratch" --set "peers=$peers" \
        --set "stop.steps=$steps" "$top/examples/python/nanogpt.yaml" \
        >"$scratch/json" 2>"$scratch/err" ||
        fail "$peers peers: $(tail -n 3 "$scratch/err")"
    echo "$peers peers: loss of the average $(json loss averaged), of peers" \
        "$(json loss mean); $(json exchanges done) exchanges"
    holds "$(json loss averaged) < 3.5" || fail "$peers peers learn nothing"
    none_left "$peers peers"
done

# ---- two machines
[ "$(id -u)" -eq 0 ] && command -v ip >/dev/null &&
    ip netns add "$KITH_TEST_MARK-0" 2>/dev/null || {
    echo "$name: network namespaces are left out: root and ip make them" >&2
    finish
}
trap 'for i in 0 1; do ip netns del "$KITH_TEST_MARK-$i" 2>/dev/null; done
    rm -rf "$scratch"' EXIT
on() { # MACHINE COMMAND...: in its folder, its network
    machine=$1
    shift
    (cd "$scratch/$machine" &&
        ip netns exec "$KITH_TEST_MARK-$machine" "$@")
}
ip netns add "$KITH_TEST_MARK-1"
ip link add kith0 netns "$KITH_TEST_MARK-0" type veth peer name kith1 \
    netns "$KITH_TEST_MARK-1"
mkdir "$scratch/own"
for i in 0 1; do
    mkdir "$scratch/$i"
    on $i ip addr add "203.0.113.1$i/24" dev kith$i
    on $i ip link set kith$i up
done

mine() {
    (cd "$scratch/own" && alone "$venv/bin/kith" "$@") >/dev/null || fail "$*"
}
mine keys new authority --authority
for i in 0 1; do
    on $i env -i "$venv/bin/kith" keys new identity --name peer-$i >/dev/null
    cp "$scratch/$i/identity/node.request" "$scratch/own/peer-$i.request"
    mine keys certify authority peer-$i.request --rank $i
    cp "$scratch/own/peer-$i.crt" "$scratch/$i/identity/node.crt"
    cp "$scratch/own/authority/ca.pub" "$scratch/$i/identity/ca.pub"
    cat >"$scratch/$i/peer.yaml" <<YAML
identity: identity
listen: "[::]:7117"
experiment: mine.yaml
save: model
rank: $i
wait: {members: 2, for: 10m}
members:
  - "203.0.113.10:7117"
  - "203.0.113.11:7117"
YAML
    cat >"$scratch/$i/mine.yaml" <<YAML
name: mine
peers: 2
stop: {steps: $((3 * steps))}
model: {kind: program}
gossip: {algorithm: adpsgd, every: 10}
YAML
    cp "$top/examples/python/nanogpt.py" "$scratch/$i"
    cp "$top/docs/python.md" "$scratch/$i/text"
done
for i in 0 1; do
    on $i timeout 500 env -i PATH="$venv/bin" PYTHONDONTWRITEBYTECODE=1 \
        python3 nanogpt.py text peer.yaml >"$scratch/$i/out" 2>&1 &
done
wait
for i in 0 1; do
    tail -n 1 "$scratch/$i/out"
    grep -q "peer $i, end: test loss [0-3]\." "$scratch/$i/out" ||
        fail "machine $i: $(tail -n 3 "$scratch/$i/out")"
done
finish
