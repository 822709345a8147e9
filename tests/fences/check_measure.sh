#!/bin/sh
# Goal: assertions, reasons in comments, few booleans and parameters, as
# CONVENTIONS ask.
# Method: measure.py --check of the tree, and of a planted one that breaks each
# rule.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"
measure=$top/tests/fences/measure.py
command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"

python3 "$measure" --check "$top" >"$scratch/found" ||
    fail "$(sed 1,6d "$scratch/found")"

# plant LINES: a core of one file.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/src/protocol/core" "$scratch/tree/include"
    cat >"$scratch/tree/src/protocol/core/planted.c"
}
sound='/* Why this is here. */
static int twice(int x)
{
    KITH_ASSERT(x < 2);
    return 2 * x;
}'
echo "$sound" | plant
python3 "$measure" --check "$scratch/tree" >"$scratch/found" ||
    fail "a sound tree was accused: $(cat "$scratch/found")"
echo "$sound" | grep -v ASSERT | plant
canary python3 "$measure" --check "$scratch/tree"
echo "$sound" | sed 's/x < 2/x != NULL/' | plant
canary python3 "$measure" --check "$scratch/tree"
echo "$sound" | grep -v Why | plant
canary python3 "$measure" --check "$scratch/tree"
{ echo "$sound"; echo 'struct crowd { bool a, b, c; bool d; bool e; };'; } |
    plant
canary python3 "$measure" --check "$scratch/tree"
{ echo "$sound"
  echo 'int many(int a, int b, int c, int d, int e, int f, int g, int h);'; } |
    plant
canary python3 "$measure" --check "$scratch/tree"
finish
