#!/bin/sh
# Goal: real peers reject a member that lies, name it and learn as well.
# Method: six peers of the digits in pairs with guard clip; one sends values of
# 2, or its model with the sign turned, from the first second on. Of what honest
# peers reject most is that member's, and the report's table says so.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

rejected() {
    sql "$database" "SELECT count(*) FROM marks JOIN mark_kinds USING (kind)
        WHERE mark_kinds.name = 'rejected' AND peer != 4 AND other $1 4"
}
for lie in "huge: \"peer(4)\", by: 2" "hostile: \"peer(4)\", kind: flip"; do
    experiment 6 250 "compute: {step: 30ms}" "faults: [{at: 1s, $lie}]" |
        sed "s/^gossip:.*/gossip: {algorithm: adpsgd, guard: clip}/" \
            >"$scratch/guard.yaml"
    lab 0 --log "$scratch/guard.yaml"
    database=$(json database)
    grep -q 'rejected rank=4 name=peer-4 distance=.* count=8 clipped=' \
        "$scratch/err" || fail "the log does not name peer-4: $lie"
    theirs=$(rejected =)
    honest=$(rejected '!=')
    [ "$theirs" -gt 100 ] || fail "$theirs models of peer-4 were rejected: $lie"
    [ "$honest" -lt "$((theirs / 10))" ] ||
        fail "$honest honest models were rejected, of peer-4 $theirs"
    "$kith" report "$database" --out "$scratch/page.html" >/dev/null ||
        fail "no report: $lie"
    grep -q "\"identities\".*\[4,[^]]*,$theirs,[^]]*\]" "$scratch/page.html" ||
        fail "the page does not say $theirs rejected of peer 4: $lie"
    worst=$(sql "$database" "SELECT min(accuracy) FROM (SELECT accuracy,
        max(time_s) FROM series WHERE peer != 4 AND accuracy IS NOT NULL
        GROUP BY peer)")
    holds "$worst >= 0.85" || fail "an honest peer learnt $worst"
done
finish
