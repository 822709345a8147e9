#!/bin/sh
# Goal: kith plan measures a machine, predicts what kith sim then finds, and
# names what is missing or wrong.
# Method: the digits and a quadratic whose step and links are given; the command
# that the plan prints; wrong command lines and files.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 99

# Labs of --measure have peers of their own, and no classes.
set -- --set peers=12 --set 'classes=[{peers: peer(9), speed: 2}]'
"$kith" plan "$top/examples/digits.yaml" "$@" --measure --machine here.yaml \
    >out 2>err || fail "measure: exit $?: $(cat err)"
grep -q "measured this machine, written into here.yaml" err || fail "no word"
for key in model values cores steps example suites socket merge handshake; do
    grep -q "^$key:" here.yaml || fail "here.yaml has no $key"
done
grep -q "^values: 2410" here.yaml || fail "$(cat here.yaml)"
# As many as the experiment has, but from one to four a core; swaps as far apart
# and periods as long, within bounds.
cores=$(nproc)
[ "$cores" -le 16 ] || cores=16
own=12
[ "$own" -le $((4 * cores)) ] || own=$((4 * cores))
[ "$own" -ge "$cores" ] || own=$cores
grep -q "^# By labs of $own peers that swap every 4 steps, or sleep for 2 ms" \
    here.yaml || fail "$(cat here.yaml)"
grep -q "network.rate is not given" out || fail "nothing is said of the network"
"$kith" plan "$top/examples/digits.yaml" "$@" --machine here.yaml >again ||
    fail "exit $?"
diff out again >&2 || fail "the same file, another plan"

# A socket that holds less than is written at once: no wait for ever. Of a batch
# in 16 parts no half is measured.
if unshare -rn true 2>unshare.err; then
    timeout 100 unshare -rn sh -c 'ip link set lo up &&
        echo 4096 4096 8192 >/proc/sys/net/ipv4/tcp_wmem &&
        echo 4096 8192 8192 >/proc/sys/net/ipv4/tcp_rmem || exit 77
        exec "$@"' sh "$kith" plan "$top/examples/digits.yaml" --measure \
        --set gossip.every=40 --set compute.step=1s \
        --set train.accumulate=16 --set network.suite=ChaChaPoly \
        --machine small.yaml >out 2>err
    found=$?
    [ "$found" -eq 0 ] || [ "$found" -eq 77 ] ||
        fail "small buffers: exit $found: $(cat err)"
    [ "$found" -eq 77 ] ||
        grep -q "^# By labs.*that swap every 16 steps, or sleep for 10 ms" \
            small.yaml || fail "$(cat small.yaml)"
    grep "batch: 8," small.yaml && fail "half a batch of 16 parts"
fi

# Stopped where its first lab is about to be made: no folder is left behind.
if unshare -rm true 2>unshare.err; then
    timeout 100 unshare -rm sh -c 'mount -t tmpfs none /tmp || exit 77
        export TMPDIR=/tmp
        "$@" &
        until [ -n "$(find /tmp -name "kith-measure-*")" ] ||
            ! kill -0 $! 2>/dev/null; do :; done
        kill -TERM $!
        wait $!
        found=$?
        [ -z "$(find /tmp -name "kith-measure-*")" ] || exit 1
        exit $found' sh "$kith" plan "$top/examples/digits.yaml" --measure \
        --machine stopped.yaml >out 2>err
    found=$?
    [ "$found" -eq 130 ] || [ "$found" -eq 77 ] ||
        fail "stopped: exit $found: $(cat err)"
    [ ! -e stopped.yaml ] || fail "stopped, and a file is written"
fi

# The command is one of the shell's, whatever the file is called.
mkdir "it's here"
cp "$top/examples/digits.yaml" "it's here/"
"$kith" plan "it's here/digits.yaml" --seed 9 >out ||
    fail "a quote in a path: exit $?"
sed -n 's/^  \(kith sim .*\)/\1/p' out | grep -q "'it'\\\\''s here/digits.yaml'.* --seed 9 " ||
    fail "not quoted: $(tail -1 out)"
"$kith" plan "$top/examples/digits.yaml" --set peers=1 >out 2>err &&
    fail "a plan of one peer"
grep -q "nothing is gossiped" err || fail "one peer: $(cat err)"

# Before anything is measured.
TMPDIR=$PWD/nowhere "$kith" plan "$top/examples/digits.yaml" --measure \
    --machine none.yaml >out 2>err && fail "measured without a folder"
grep -q "for the labs of --measure in .*/nowhere: .*; set TMPDIR" err ||
    fail "no folder: $(cat err)"
[ ! -e none.yaml ] || fail "no folder, and a file is written"
sed '/^gossip:/d' "$top/examples/digits.yaml" >central.yaml
echo 'central: {method: easgd}' >>central.yaml
"$kith" plan central.yaml --measure --machine none.yaml \
    --set "data.path=$data" >out 2>err && fail "a plan of a central method"
grep -q "central.method: found easgd: nothing is gossiped" err ||
    fail "central: $(cat err)"

cat >t.yaml <<'YAML'
name: t
peers: 16
seed: 1
stop: {steps: 40}
model: {kind: quadratic, dim: 25000}
gossip: {algorithm: dpsgd-atc, topology: one-peer-exponential}
compute: {step: 10ms}
network: {latency: 1ms, rate: 80Mbit}
evaluate: end
YAML
"$kith" plan t.yaml >out || fail "t.yaml: exit $?"
awk 'length($0) > 80 && !/kith sim/ { print; wide = 1 } END { exit wide }' \
    out >&2 || fail "wider than 80 columns"
"$kith" plan t.yaml --target efficiency=0.8 --json >plan.json || fail "exit $?"
sed -n 's/^  \(kith sim .*\)/\1/p' out >check
[ "$(wc -l <check)" -eq 1 ] || fail "not one command: $(cat check)"
sed -i "s|^kith|'$kith'|" check
sh check >sim.json || fail "what it prints does not run: $(cat check)"
python3 - <<'PY' || fail "prediction and simulation"
import json
plan, sim = json.load(open("plan.json")), json.load(open("sim.json"))
figure = {name: f["value"] for name, f in plan["figures"].items()}
step = sim["virtual_s"] * sim["peers"] / sim["steps"]
sent = sim["bytes"]["sent"] / sim["steps"]
print(f"step: predicted {figure['step']:.6f}, simulated {step:.6f} s; "
      f"bytes: {figure['bytes_per_step']:.0f}, {sent:.0f}")
assert abs(step / figure["step"] - 1) < .05
assert abs(sent / figure["bytes_per_step"] - 1) < .02
assert figure["message"] == figure["model"] == 100000
assert abs(figure["exchange"] - .012) < 1e-12, figure["exchange"]
assert figure["interval"] == 2 and figure["fan_out_max"] == 1
# T_O = 2 ms + 20 ms of 16 * 10 ms; G = (1 + R - .8) / (.8 R).
assert abs(figure["overhead_ratio"] - .022 / .16) < 1e-9
assert figure["workers_max"] == 3 and figure["servers"] == 32
assert plan["target_efficiency"] == .8 and "step_most" not in figure
assert all(f["why"] for f in plan["figures"].values())
PY

# A push waits for the ends of steps: 3 ms of a line, one exchange in 3 steps.
"$kith" plan t.yaml --json --set gossip.algorithm=sgp --set gossip.wire=int8 \
    --set stop.steps=120 >plan.json || fail "sgp: exit $?"
"$kith" sim t.yaml --json --set gossip.algorithm=sgp --set gossip.wire=int8 \
    --set stop.steps=120 --rows none >sim.json || fail "sgp: sim: exit $?"
python3 - <<'PY' || fail "a push, predicted and simulated"
import json
plan, sim = json.load(open("plan.json")), json.load(open("sim.json"))
figure = {name: f["value"] for name, f in plan["figures"].items()}
sent = sim["bytes"]["sent"] / sim["steps"]
print(f"bytes: {figure['bytes_per_step']:.0f}, {sent:.0f}")
assert figure["interval"] == 3 and abs(figure["exchanges_done"] - 1 / 3) < 1e-9
assert abs(sent / figure["bytes_per_step"] - 1) < .05
PY

"$kith" plan t.yaml --set gossip.algorithm=choco --set gossip.topology=ring \
    --set gossip.compressor=top-k >out || fail "choco: exit $?"
grep -q "gamma  *0.05012 " out || fail "no gamma: $(cat out)"
# What int8 keeps is no gossip.density; a sign promises too little for a guess.
"$kith" plan t.yaml --set gossip.algorithm=choco --set gossip.topology=ring \
    --set gossip.compressor=int8 >out || fail "choco, int8: exit $?"
grep -q "gamma  *0\.[5-9]" out || fail "int8's gamma: $(cat out)"
"$kith" plan t.yaml --set gossip.algorithm=choco --set gossip.topology=ring \
    --set gossip.compressor=sign >out || fail "choco, sign: exit $?"
grep -q "gamma  *[0-9]" out && fail "sign's gamma: $(cat out)"
grep -q "gamma safe  *[0-9]" out || fail "no gamma of sign: $(cat out)"

# A server's push goes up and its pull down, whatever gossip waits for.
"$kith" plan t.yaml --json --target efficiency=1 \
    --set 'network={latency: 1ms, up: 80Mbit, down: 40Mbit}' \
    --set 'gossip={algorithm: allreduce-ring}' >plan.json || fail "ways: exit $?"
python3 - <<'PY' || fail "two ways"
import json
figure = {name: f["value"]
          for name, f in json.load(open("plan.json"))["figures"].items()}
assert abs(figure["overhead_ratio"] - .032 / .16) < 1e-9, figure
assert figure["rate"] == 5e6 and figure["servers"] == 64, figure
assert figure["workers_max"] == 1, figure
PY

# The batch is one that was measured, with the threads that it was measured at.
cat >few.yaml <<'YAML'
model: quadratic
values: 25000
cores: 2
steps:
  - {batch: 16, threads: 1, time: 61us}
  - {batch: 32, threads: 1, time: 60us}
  - {batch: 4096, threads: 2, time: 12ms}
YAML
"$kith" plan t.yaml --machine few.yaml >out || fail "few.yaml: exit $?"
grep -q "^  batch  *32 " out || fail "few: $(cat out)"
sed 's/60us/1000s/; s/{batch: 4096/{batch: 4000/' few.yaml >steep.yaml
"$kith" plan t.yaml --machine steep.yaml >out || fail "steep.yaml: exit $?"
grep -q "^  batch  *4000 " out || fail "steep: $(cat out)"

# Slow cores and long steps: the command that is printed runs, or is not one.
cat >slow.yaml <<'YAML'
model: quadratic
values: 25000
cores: 2
steps: [{batch: 16, threads: 1, time: 61us}]
socket: 1kbit
merge: 1kbit
YAML
"$kith" plan t.yaml --machine slow.yaml >out || fail "slow.yaml: exit $?"
grep -q "wire: 2000bit, merge: 1000bit" out || fail "slow: $(tail -1 out)"
sed 's/61us/1000000s/' slow.yaml >long.yaml
"$kith" plan t.yaml --machine long.yaml >out || fail "long.yaml: exit $?"
grep -q "none: kith sim takes steps of up to an hour" out ||
    fail "long: $(tail -1 out)"
"$kith" plan t.yaml --set peers=64 --set gossip.algorithm=gt \
    --set gossip.topology=complete --set model.dim=1073741824 \
    --set train.backend=naive64 \
    --set network.rate=1kbit --set compute.step=3600s >out ||
    fail "centuries: exit $?"
grep -q " exchange most *[0-9.e+]* s " out || fail "$(grep exchange out)"

# refused STATUS WORDS ARGUMENTS...
refused() {
    status=$1
    words=$2
    shift 2
    "$kith" plan "$@" >out 2>err
    found=$?
    [ "$found" -eq "$status" ] || fail "kith plan $*: exit $found"
    grep -qF -- "$words" err || fail "kith plan $*: $(cat err)"
    [ -s out ] && fail "kith plan $*: prints a plan"
}
refused 2 'did you mean "--machine"?' t.yaml --machin here.yaml
refused 2 "found 0 arguments" --measure
refused 2 "efficiency=A, above 0 and up to 1" t.yaml --target efficiency=1.5
refused 2 "efficiency=A, above 0 and up to 1" t.yaml --target efficiency=nan
refused 2 "efficiency=A" t.yaml --target loss=1
refused 2 "such as 4GB" t.yaml --memory 4
refused 3 "none.yaml" t.yaml --machine none.yaml
refused 3 "is of a model mlp of 2410 values" t.yaml --machine here.yaml
refused 3 "measure it with --measure" t.yaml --set compute.step=0s
refused 3 "nothing is gossiped" t.yaml --set gossip.algorithm=local
sed 's/^model: .*/model: {kind: none}/' t.yaml >none.yaml
refused 3 "model: found none without parameters" none.yaml
echo "model: [" >bad.yaml
refused 3 "bad.yaml:" t.yaml --machine bad.yaml
sed 's/threads: 1/threads: 7/' here.yaml >threads.yaml
refused 3 "steps has none with threads: 1" "$top/examples/digits.yaml" \
    --machine threads.yaml
sed '/batch: 32/ { s/32/17/; s/60us/1000000s/; }' few.yaml >far.yaml
refused 3 "at train.batch 400; allowed: up to 1e+06 s" t.yaml \
    --machine far.yaml --set train.batch=400
refused 8 "no batch fits" "$top/examples/digits.yaml" --machine here.yaml \
    --memory 1kB
cat >loop.yaml <<'YAML'
name: loop
peers: 16
stop: {steps: 40}
model: {kind: program, dim: 100000000}
gossip: {algorithm: dpsgd, topology: ring}
compute: {step: 10ms}
YAML
refused 8 "no batch fits 1000 bytes" loop.yaml --memory 1kB
"$kith" plan loop.yaml --memory 16GB >out || fail "loop.yaml: exit $?"
grep -q "none: a training loop of yours is simulated by kith_simulate()" out ||
    fail "loop.yaml: $(tail -3 out)"
cp t.yaml kept.yaml
refused 5 "is no machine's file" t.yaml --measure --machine kept.yaml
diff t.yaml kept.yaml || fail "an experiment was written over"
refused 5 "cannot write in the folder none" "$top/examples/digits.yaml" --measure \
    --machine none/here.yaml
refused 4 "nowhere" "$top/examples/digits.yaml" --measure --machine new.yaml \
    --set data.path=nowhere
[ ! -e new.yaml ] || fail "a file of nothing"
finish
