#!/bin/sh
# Goal: steps of two processes take what a model of messages says (T6.7).
# Method: message_cost.c, on two cores that nothing else keeps busy.
[ -x tests/long/message_cost ] || {
    echo "message_cost: not built: make tests/long/message_cost" >&2
    exit 99
}
exec tests/long/message_cost
