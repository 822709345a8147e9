#!/bin/sh
# Goal: the simulator carries fifty times the messages of SimGrid with its default
# network model, LV08, among 10,000 peers.
# Method: accept_messages.py: processor time of the public program with all that a
# run does (nodes, trace hash, totals), and of messages_simgrid.cpp, by turns;
# KITH, PEERS, RUNS.
top=${srcdir:-$(dirname "$0")/../..}
command -v python3 >/dev/null || {
    echo "accept_messages: skipped: no python3" >&2
    exit 77
}
echo '#include <simgrid/s4u.hpp>' | c++ -std=c++17 -E -x c++ - >/dev/null 2>&1 || {
    echo "accept_messages: skipped: no SimGrid: apt-get install libsimgrid-dev" >&2
    exit 77
}
PYTHONDONTWRITEBYTECODE=1 exec python3 "$top/tests/long/accept_messages.py" "$@"
