#!/bin/sh
# Goal: what cannot work ends with one clear line and its exit code, and leaves
# no process behind.
# Method: a folder that cannot be written, a missing data set, a busy port, too
# many peers.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

experiment 2 20 >"$scratch/digits.yaml"

out=/proc/self
lab 5 "$scratch/digits.yaml"
one_line "unwritable folder" /proc/self
out=$scratch/nowhere/below
lab 5 "$scratch/digits.yaml"
one_line "missing folder" nowhere
out=$scratch

lab 4 --set "data.path=$scratch/nothing" "$scratch/digits.yaml"
one_line "missing data set" "$scratch/nothing"

lab 3 --set peers=0 "$scratch/digits.yaml"
one_line "0 peers" peers

# Somebody listens on the second peer's port.
python3 - "$scratch/port" <<'PY' &
import os, socket, sys, time
one = socket.socket()
for port in range(20000, 30000):
    try:
        one.bind(("127.0.0.1", port + 1))
        break
    except OSError:
        continue
one.listen()
with open(sys.argv[1] + ".new", "w") as file:
    print(port, file=file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(30)
PY
listener=$!
for _ in $(seq 50); do
    [ -s "$scratch/port" ] && break
    sleep 0.1
done
port=$(cat "$scratch/port")
lab 6 --port "$port" "$scratch/digits.yaml"
one_line "busy port" "$((port + 1))"
one_line "busy port" "^kith lab: cannot"
kill "$listener"
wait "$listener" 2>/dev/null
lab 0 --port "$port" "$scratch/digits.yaml"

none_left "refusals"
finish
