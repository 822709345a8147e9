#!/bin/sh
# Goal: docs/algorithms.md says what the algorithms declare; their files stay
# short.
# Method: make the page anew and compare; the median length of src/gossip/algorithm/*.c
# that end in an algorithm is below 150 lines.
# shellcheck source=tests/integration/lab.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/integration/lab.sh"

python3 "$top/docs/make_algorithms.py" "$kith" >"$scratch/algorithms.md" ||
    fail "docs/make_algorithms.py failed"
diff -u "$top/docs/algorithms.md" "$scratch/algorithms.md" >&2 || fail \
    "make it anew: python3 docs/make_algorithms.py ./kith >docs/algorithms.md"

grep -l '^const struct kith_algorithm kith_' "$top"/src/gossip/algorithm/*.c |
    xargs wc -l | grep -v ' total$' | sort -n >"$scratch/lengths"
files=$(wc -l <"$scratch/lengths")
median=$(sed -n "$(((files + 1) / 2))p" "$scratch/lengths" | awk '{print $1}')
longest=$(tail -1 "$scratch/lengths" | awk '{print $1}')
echo "$files algorithms: median $median lines, longest $longest"
[ "$files" -gt 30 ] || fail "only $files algorithms found"
[ "$median" -lt 150 ] || fail "the median is $median lines, not below 150"
finish
