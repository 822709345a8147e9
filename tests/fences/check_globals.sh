#!/bin/sh
# Goal: base, wire, core, plug-ins and session have no writable global: state is
# handed in, tables are const, nothing registers itself.
# Method: objdump -t of the archives; a symbol with a size in .data, .bss or
# COMMON is a breach. Tables of pointers lie in .data.rel.ro, made read-only
# once the program is loaded. libkith_ipsec_mb.a alone is left out: it keeps,
# once a process, what its library found to suit the processor.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

[ "$KITH_INSTRUMENTED" = no ] ||
    skip "sanitizers and gcov add globals of their own"

# check ARCHIVE...
check() {
    objdump -t "$@" | awk '
    {
        for (i = 1; i + 2 <= NF; i++)
            if ($i ~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ &&
                $i !~ /^\.data\.rel\.ro/ && $i != $NF &&
                $(i + 1) !~ /^0+$/) {
                print $NF " in " $i
                breaches++
            }
    }
    END { exit breaches > 0 }'
}

archives="libkith_base.a libkith_wire.a libkith_core.a libkith_gossip.a libkith_model.a
    libkith_plan.a libkith_session.a"
[ -f libkith_libcrypto.a ] && archives="$archives libkith_libcrypto.a"
for archive in $archives; do
    check "$archive" >"$scratch/breaches" ||
        fail "writable globals of $archive: $(cat "$scratch/breaches")"
done

# plant CODE
plant() {
    echo "$1" >"$scratch/planted.c"
    # shellcheck disable=SC2086 # CC may carry flags.
    ${CC:-cc} -O1 -fcommon -c "$scratch/planted.c" -o "$scratch/planted.o" ||
        fail "cannot build the canary: $1"
}
plant 'int next(void); int next(void) { static int count; return ++count; }'
canary check "$scratch/planted.o"
plant 'int setting = 3;'
canary check "$scratch/planted.o"
plant 'int shared;'
canary check "$scratch/planted.o"
plant '_Thread_local int mine = 1;'
canary check "$scratch/planted.o"
plant 'int f(void); extern int (*const t[])(void); int (*const t[])(void) = {f};'
check "$scratch/planted.o" || fail "a const table was accused"
finish
