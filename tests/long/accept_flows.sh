#!/bin/sh
# Goal: flows end when SimGrid's CM02 model says, within 1 %, and the simulator
# carries ten times its messages.
# Method: accept_flows.py; KITH, OUT, RUNS.
top=${srcdir:-$(dirname "$0")/../..}
[ -x tests/long/flow_times ] || {
    echo "accept_flows: not built: make tests/long/flow_times" >&2
    exit 99
}
command -v python3 >/dev/null || {
    echo "accept_flows: skipped: no python3" >&2
    exit 77
}
echo '#include <simgrid/s4u.hpp>' | c++ -std=c++17 -E -x c++ - >/dev/null 2>&1 || {
    echo "accept_flows: skipped: no SimGrid: apt-get install libsimgrid-dev" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_flows.py" "$@"
