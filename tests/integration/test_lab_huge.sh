#!/bin/sh
# Goal: a member that sends models of 1e19 stops no process of any method.
# Method: five real peers of the digits, eleven such models; the rest refuses
# what it sees (no guard does it first), names nobody else, and all do their
# steps as good as ever. The
# log names whose models were refused, and whose were merged before one went
# back to an earlier model (the member itself does: it merges against what it
# has sent).
# In full: tests/long/accept_freeze.sh.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

for method in "adpsgd, every: 2, topology: random" \
    "dpsgd, every: 2, topology: ring" "sgp, every: 2, topology: random" \
    "diloco, every: 5, topology: complete"; do
    experiment 5 500 "compute: {step: 4ms}" \
        "faults: [{at: 200ms, models: 11, huge: \"peer(4)\", by: 1e19}]" \
        "assert: [\"always finite(model)\", \"finally accuracy >= 0.9\"]" |
        sed "s/^gossip:.*/gossip: {algorithm: $method, guard: none}/" \
            >"$scratch/huge.yaml"
    lab 0 --log "$scratch/huge.yaml"
    none_left "$method"
    database=$(json database)
    [ "$(json steps)" -eq 2500 ] || fail "$method: $(json steps) steps of 2500"
    refused=$(sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds
        USING (kind) WHERE mark_kinds.name IN ('gated', 'recovered')")
    [ "$refused" -gt 0 ] || fail "$method: nobody refused anything"
    grep -q "gated rank=4 name=peer-4 far=9.2e+18 reason=" "$scratch/err" ||
        fail "$method: the log does not name peer-4"
    wrong=$(sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds
        USING (kind) WHERE mark_kinds.name = 'gated' AND other != 4")
    [ "$wrong" -eq 0 ] || fail "$method: $wrong honest models were refused"
    case $method in adpsgd* | dpsgd*)
        grep -q 'recovered step=.* merged="peer-[0-3] rank [0-3]: [0-9]*, far' \
            "$scratch/err" || fail "$method: no sender of what was merged" ;;
    esac
done

# What no peer refuses without a guard (below 1e6 an element), of all at once:
# most go bad, and go back to what they saved, alone.
experiment 5 700 "compute: {step: 4ms}" "save: 300ms" \
    "faults: [{at: 1350ms, models: 1, huge: all, by: 9e5}]" \
    "assert: [\"always finite(model)\", \"finally accuracy >= 0.85\"]" |
    sed "s/^gossip:.*/gossip: {algorithm: sgp, topology: complete, guard: none}/
        s/^train: {/&recover_from_save: true, /" >"$scratch/all.yaml"
lab 0 --log "$scratch/all.yaml"
back=$(sql "$(json database)" "SELECT count(DISTINCT peer) FROM marks
    JOIN mark_kinds USING (kind) WHERE mark_kinds.name = 'recovered'")
holds "$back >= 2" || fail "only $back of 5 peers went back to their saves"
grep -q 'recovered step=.*, far [1-9].[0-9]e+05' "$scratch/err" ||
    fail "the log does not say how far off models were"
finish
