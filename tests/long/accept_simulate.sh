#!/bin/sh
# Goal: PyTorch's steps in the simulator decide and learn as the engine's do, and
# a thousand peers of them cost little more than a loop around them.
# Method: accept_simulate.py; PYTHON is one that has torch (python3), KITH and OUT
# as in accept.py. SKIP without torch.
# shellcheck source=tests/long/torch.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/long/torch.sh"
exec "$python" "$top/tests/long/accept_simulate.py" "$@"
