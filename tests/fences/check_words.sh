#!/bin/sh
# Goal: words that must not reach main.
# Method: grep over src/, sim/ and include/; one extended pattern a line in
# words.txt, with its reason. A TODO needs an issue: TODO(#12).
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"
fences=$top/tests/fences

# check TREE
check() {
    found=0
    sed '/^# /d' "$fences/words.txt" >"$scratch/words"
    while IFS='	' read -r pattern folders reason; do
        case $folders in
        all) folders='include src sim' ;;
        *) ;;
        esac
        # shellcheck disable=SC2086 # A list of folders.
        (cd "$1" && grep -rnE --include='*.[ch]' -e "$pattern" $folders \
            2>/dev/null) >"$scratch/hits"
        [ -s "$scratch/hits" ] || continue
        echo "$reason:"
        cat "$scratch/hits"
        found=1
    done <"$scratch/words"
    return $found
}

check "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"

for sin in '/* FIXME */' '/* TODO: later */' '#if 0' 'strcpy(a, b);' \
    'x = rand();' 'setlocale(LC_ALL, "");' 'assert(x);' 'puts("oops");' \
    '/* not implemented yet */' 'printf("%d", 1);'; do
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree/include" "$scratch/tree/src/protocol/core" \
        "$scratch/tree/sim"
    echo "$sin" >"$scratch/tree/src/protocol/core/planted.c"
    canary check "$scratch/tree"
done
echo '/* TODO(#3): a reason. */ KITH_ASSERT(x); snprintf(a, 1, "b");' \
    >"$scratch/tree/src/protocol/core/planted.c"
check "$scratch/tree" || fail "innocent lines were accused"
finish
