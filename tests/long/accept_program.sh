#!/bin/sh
# Goal: PyTorch's loops as peers learn what the engine does, go on where others
# are killed, and pay for exchanges little more than what these compute.
# Method: accept_program.py [learn] [killed] [cost]; PYTHON is one that has torch
# (python3), KITH, OUT, SEEDS and DATASET as in accept.py. SKIP without torch.
# shellcheck source=tests/long/torch.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/long/torch.sh"
exec "$python" "$top/tests/long/accept_program.py" "$@"
