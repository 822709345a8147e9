#!/bin/sh
# Goal: the authority's policy turns a suite on, for all peers or for none: two
# with it speak AEGIS-256X2; a member whose ca.pub was edited, one whose file
# contradicts it and a forged line are refused by name; typos get an answer.
# Method: three `kith peer` with keys of `kith keys`, as an operator makes them;
# rank 2 has the line of the policy taken out. Where the processor cannot, all
# are refused at the start by name.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

# says STATUS PATTERN ARGUMENTS...
says() {
    expected=$1 pattern=$2
    shift 2
    expect "$expected" "$@"
    cat "$scratch/json" "$scratch/err" >"$scratch/both"
    grep -q -- "$pattern" "$scratch/both" || {
        fail "kith $*: does not say $pattern"
        cat "$scratch/both" >&2
    }
}

cd "$scratch" || exit 99
says 2 'unknown suite "aegis"; allowed: aesgcm, chachapoly, aegis256x2' \
    keys new authority --authority --suite aegis
says 2 'did you mean "aegis256x2"' \
    keys new authority --authority --suite AEGIS256X
says 2 'did you mean "--suite"' keys new authority --authority --suit aesgcm
says 2 "goes with --authority" keys new identity --name x --suite aesgcm
[ ! -e authority ] || fail "a folder was made for a misspelt suite"
says 0 "^this cluster: AEGIS256X2, as the authority has signed" \
    keys new authority --authority --suite aegis256x2
for suite in AESGCM ChaChaPoly AEGIS256X2; do
    grep -q "^  $suite  " both || fail "$suite was not measured"
done
says 7 "never overwritten" keys new authority --authority --suite aesgcm
says 0 "AEGIS256X2, signed by the authority; unaudited" \
    keys show authority/ca.pub
says 0 "this cluster: no policy" keys new plain --authority
says 0 "no policy" keys show plain/ca.pub
says 2 'did you mean "AEGIS256X2"' list suites AEGIS256X
says 0 "^AEGIS256X2" list suite aegis256x2
"$kith" keys new full --authority >/dev/full 2>err && fail "a full disk: exit 0"
grep -q "cannot write to standard output" err || fail "a full disk: $(cat err)"
says 0 '"unaudited": true' list suites AEGIS256X2 --json
grep -q '"here": true' json && here=yes || here=no

ports=$(python3 -c "import socket
held = [socket.socket() for _ in range(3)]
for s in held: s.bind(('127.0.0.1', 0))
print(*(s.getsockname()[1] for s in held))")
members=$(for port in $ports; do printf '"127.0.0.1:%s", ' "$port"; done)
cat >experiment.yaml <<'YAML'
name: suites
seed: 3
peers: 3
stop: {time: 60s}
model: {kind: consensus, dim: 1000}
gossip: {algorithm: adpsgd, every: 1}
compute: {step: 5ms}
YAML
rank=0
for port in $ports; do
    "$kith" keys new id$rank --name peer-$rank >/dev/null &&
        "$kith" keys certify authority id$rank/node.request --rank $rank \
            >/dev/null || fail "no keys for $rank"
    cp authority/ca.pub id$rank/
    cat >peer$rank.yaml <<YAML
identity: id$rank
listen: "127.0.0.1:$port"
experiment: experiment.yaml
save: save$rank
rank: $rank
members: [$members]
YAML
    rank=$((rank + 1))
done

# What is not the authority's word is refused before anything is dialled.
line=$(grep '^suite ' authority/ca.pub)
sed 's/^suite AEGIS256X2/suite ChaChaPoly/' authority/ca.pub >id2/ca.pub
says 7 'line "suite ChaChaPoly" is not signed by the authority' peer peer2.yaml
sed 's/^suite AEGIS256X2/suite ROT13/' authority/ca.pub >id2/ca.pub
says 7 'knows no suite "ROT13"' doctor peer2.yaml
{ cat plain/ca.pub && echo "$line"; } >id2/ca.pub
says 7 'not signed by the authority' peer peer2.yaml

if [ "$here" = no ]; then
    says 8 "AEGIS256X2, which needs a processor with AES" peer peer0.yaml
    says 6 "suite       FAIL" doctor peer0.yaml
    says 8 "AEGIS256X2, which needs a processor with AES" \
        lab experiment.yaml --set network.suite=AEGIS256X2
    finish
fi

# The experiment's word against the authority's, and without it.
cp experiment.yaml kept.yaml
for suite in AESGCM ChaChaPoly; do
    echo "network: {suite: $suite}" | cat kept.yaml - >experiment.yaml
    says 3 "experiment says $suite, the authority's policy in ca.pub says \
AEGIS256X2" peer peer0.yaml
    says 6 "suite       FAIL  network.suite: the experiment says $suite" \
        doctor peer0.yaml
done
echo "network: {suite: AEGIS256X2}" | cat kept.yaml - >experiment.yaml
grep -v '^suite ' authority/ca.pub >id2/ca.pub
says 3 "the authority's policy alone turns it on, and ca.pub has none" \
    peer peer2.yaml
cp kept.yaml experiment.yaml

# Two with the policy; the third took the line out, and speaks AESGCM.
pids=
for rank in 0 1 2; do
    "$kith" peer peer$rank.yaml >log$rank 2>&1 &
    pids="$pids $!"
done
# appears FILE PATTERN: within 20 s.
appears() {
    tries=0
    until grep -q -- "$2" "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || {
            fail "$1 does not say $2"
            cat "$1" >&2
            return
        }
        sleep 0.1
    done
}
appears log0 "connected rank=1 .*suite=Noise_XX_25519_AEGIS256X2_BLAKE2b"
appears log1 "connected rank=0 .*suite=Noise_XX_25519_AEGIS256X2_BLAKE2b"
appears log0 "refused kind=version.*suite differs: peer offers \
Noise_XX_25519_AESGCM_BLAKE2b, we use Noise_XX_25519_AEGIS256X2_BLAKE2b"
appears log2 "suite differs: peer offers Noise_XX_25519_AEGIS256X2_BLAKE2b, \
we use Noise_XX_25519_AESGCM_BLAKE2b"
says 6 "suite       ok    AEGIS256X2 by the authority's policy, kith-.*; \
unaudited" doctor peer0.yaml
grep -q "suite differs.*ca.pub" both || fail "the doctor does not name ca.pub"
says 6 "suite       ok    AESGCM by network.suite" doctor peer2.yaml

# A policy that changes under a running peer is told, and nothing else changes.
cp id0/ca.pub kept.pub
grep -v '^suite ' kept.pub >id0/ca.new && mv id0/ca.new id0/ca.pub
appears log0 'keys-unread reason="ca.pub says no suite, .* speaks AEGIS256X2: '
mv kept.pub id0/ca.pub
grep -q "connected rank=[01]" log2 && fail "the third is connected"
# shellcheck disable=SC2086 # A list of words.
kill -TERM $pids
wait
none_left "peers"

# A lab's authority signs what its file says; so does a simulation's.
says 0 "suite=Noise_XX_25519_AEGIS256X2_BLAKE2b provider=kith-" \
    lab experiment.yaml --log --set network.suite=AEGIS256X2 \
    --set stop.time=1s --out out
says 0 "completed\|steps" sim experiment.yaml --wire full \
    --set network.suite=AEGIS256X2 --set stop.time=1s --out out

# Prepared for many machines.
printf 'a.example:7117\nb.example:7117\n' >members
nobody=$(printf '%064d' 0)
"$top/deploy/make-cluster.sh" 2 --members members --experiment experiment.yaml \
    --tarball /kith.tar.xz --sha256 "$nobody" --out cluster --kith "$kith" \
    --suite aegis256x2 >made 2>&1 || fail "make-cluster: $(cat made)"
grep -q '^suite AEGIS256X2 ' cluster/1/ca.pub || fail "a machine has no policy"
"$top/deploy/make-cluster.sh" 2 --members members --experiment experiment.yaml \
    --tarball /kith.tar.xz --sha256 "$nobody" --out other --kith "$kith" \
    --suite aegis >made 2>&1 && fail "make-cluster takes a misspelt suite"
grep -q 'unknown suite "aegis"' made || fail "make-cluster: $(cat made)"
finish
