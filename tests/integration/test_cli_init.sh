#!/bin/sh
# Goal: kith init writes a file that runs as it is, asks when it can, and
# overwrites nothing. Method: without questions, in both worlds; at a terminal
# of python3's pty, with answers good and bad.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"
cd "$scratch" || exit 1

"$kith" init --yes >out || fail "init --yes"
grep -q "wrote kith.yaml" out || fail "does not say what it wrote"
"$kith" sim kith.yaml --set stop.epochs=1 >sim || fail "kith sim of it"
"$kith" lab kith.yaml --set stop.epochs=0.2 >lab || fail "kith lab of it"
# What it offers as a comment runs, too, once the # is taken away.
sed 's/^# \(network\|faults\|data\.split\):/\1:/; s/^#   - {/  - {/' kith.yaml |
    grep -v '^data.split' >more.yaml
grep -q '^faults:' more.yaml && grep -q '^network:' more.yaml ||
    fail "nothing was offered"
"$kith" sim more.yaml --set stop.epochs=2 >sim || fail "what it offers"
cp kith.yaml before
"$kith" init --yes 2>err && fail "overwrote a file"
grep -q "kith.yaml is there already" err || fail "overwriting: $(cat err)"
cmp -s kith.yaml before || fail "changed a file that was there"
"$kith" init other.yaml </dev/null 2>err && fail "asked nobody"
grep -q -- "--yes asks nothing" err || fail "no terminal: $(cat err)"
[ ! -e other.yaml ] || fail "wrote without answers"

# answers FILE LINE...: at a terminal.
answers() {
    python3 - "$kith" "$@" <<'PY'
import os, pty, sys
kith, file, lines = sys.argv[1], sys.argv[2], sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(kith, [kith, "init", file])
os.write(terminal, "".join(line + "\n" for line in lines).encode())
text = b""
try:
    while part := os.read(terminal, 4096):
        text += part
except OSError:
    pass
sys.stdout.write(text.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}
answers digits.yaml "$data" 3 dpsgd >out || fail "answers: $(cat out)"
grep -q "layers: \[64, 64, 10\]" digits.yaml || fail "not the data's shape"
grep -q "algorithm: dpsgd, topology: ring" digits.yaml || fail "no graph"
"$kith" sim digits.yaml --set stop.epochs=2 >sim || fail "kith sim digits.yaml"
answers a.yaml "" "" adspgd >out && fail "took a name that is none"
grep -q "kith list algorithms" out || fail "wrong name: $(cat out)"
answers b.yaml /nowhere "" "" >out && fail "took a folder that is not there"
grep -q "/nowhere" out || fail "wrong folder: $(cat out)"
answers c.yaml "" 1 "" >out && fail "took one peer"
[ ! -e a.yaml ] && [ ! -e b.yaml ] && [ ! -e c.yaml ] || fail "left a file"
finish
