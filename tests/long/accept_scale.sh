#!/bin/sh
# Goal: a simulated event takes at most twice as long among 10^6 peers as among
# 10^3, and an idle peer 512 bytes (point 4 of many peers, docs/scale.md).
# Method: accept_scale.py, which also draws what it measured.
exec python3 "${srcdir:-$(dirname "$0")/../..}/tests/long/accept_scale.py"
