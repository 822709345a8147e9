#!/bin/sh
# Goal: T2.3: the step that kith plan predicts by G1 and G2 is the simulator's,
# within 5 % where flows share lines, and between its two bounds where messages
# go over them one after another and meet there.
# Method: accept_plan.py: messages of 1, 1/2, 1/4 of the model, 1, 2, 4
# neighbours, every 1, 2, 4 steps, with and without overlap; sgp, gosgd and
# gossip-push every 1 to 4 steps; KITH, OUT.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_plan: skipped: no python3" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_plan.py" "$@"
