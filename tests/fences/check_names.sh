#!/bin/sh
# Goal: a name means one thing. Every exported symbol carries kith_ or sim_; no
# base name stands twice outside the folders of plug-ins; no file outside its
# registry's folder lists three or more plug-ins of one kind.
# Method: nm of the archives; the names under src/, sim/ and include/; string
# literals of src/ and sim/ against the .def files.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# symbols ARCHIVE...: fails where one exports a name without a prefix.
symbols() {
    nm -g --defined-only "$@" 2>/dev/null |
        awk 'NF == 3 && $3 !~ /^(kith|sim)_/ { print $3; found = 1 }
             END { exit found }'
}

# folders_of_plugins TREE: where a .def file stands.
folders_of_plugins() {
    (cd "$1" && find src sim -name '*.def' 2>/dev/null) |
        sed 's|/[^/]*$||' | sort -u
}

# base_names TREE: plug-ins are named after what they are in their registry, so
# a ring may be a topology and an exchange; every other name is unique.
base_names() {
    folders_of_plugins "$1" >"$scratch/plugins"
    (cd "$1" && find src sim include \( -name '*.[ch]' -o -name '*.cu' \
        -o -name '*.cuh' \) 2>/dev/null) |
        awk -v plugins="$scratch/plugins" '
    BEGIN { while ((getline line < plugins) > 0) plugin[line] = 1 }
    {
        folder = $0
        sub(/\/[^\/]*$/, "", folder)
        name = $0
        sub(/^.*\//, "", name)
        if (folder in plugin) next
        if (name in first) {
            print name ": " first[name] " and " $0
            found = 1
        }
        first[name] = $0
    }
    END { exit found }'
}

# lists TREE: files that name several plug-ins of one kind.
lists() {
    (cd "$1" && for def in src/*/*.def src/*/*/*.def; do
        [ -e "$def" ] || continue
        kind=$(dirname "$def")
        sed -n 's/^[[:space:]]*X(\([A-Za-z0-9_]*\).*/"\1"/p' "$def" |
            tr _ - >"$scratch/entries"
        [ -s "$scratch/entries" ] || continue
        grep -rnoFf "$scratch/entries" --include='*.[ch]' src sim \
            2>/dev/null |
            awk -F: -v kind="$kind" '
            index($1, kind "/") != 1 && !(($1, $3) in seen) {
                seen[$1, $3] = 1
                count[$1]++
            }
            END {
                for (file in count)
                    if (count[file] > 2)
                        print file " names " count[file] " of " kind
            }'
    done) >"$scratch/lists"
    cat "$scratch/lists"
    [ ! -s "$scratch/lists" ]
}

if [ "$KITH_INSTRUMENTED" = no ]; then
    symbols libkith_*.a >"$scratch/found" ||
        fail "exported without kith_ or sim_: $(tr '\n' ' ' <"$scratch/found")"
fi
base_names "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"
lists "$top" >"$scratch/found" || fail "$(cat "$scratch/found")"

echo 'int planted(void); int planted(void) { return 1; }' >"$scratch/planted.c"
# shellcheck disable=SC2086 # CC may carry flags.
if ${CC:-cc} -c "$scratch/planted.c" -o "$scratch/planted.o" &&
    ar rc "$scratch/libplanted.a" "$scratch/planted.o"; then
    canary symbols "$scratch/libplanted.a"
else
    fail "cannot build the canary"
fi

mkdir -p "$scratch/tree/src/a" "$scratch/tree/src/b" "$scratch/tree/src/kind"
: >"$scratch/tree/src/a/twice.c"
base_names "$scratch/tree" || fail "a sound tree was accused"
: >"$scratch/tree/src/b/twice.c"
canary base_names "$scratch/tree"
printf 'X(one)\nX(two)\nX(three)\n' >"$scratch/tree/src/kind/kinds.def"
echo 'f("one"); f("two");' >"$scratch/tree/src/a/twice.c"
lists "$scratch/tree" || fail "two names were called a list"
echo 'f("three");' >>"$scratch/tree/src/a/twice.c"
canary lists "$scratch/tree"
finish
