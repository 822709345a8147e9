#!/bin/sh
# Goal: base, wire, core, plug-ins, plan and session reach for nothing but what their
# allow-list names: no clock, heap, file, thread or rand.
# Method: nm -u of each archive, less what the floors define themselves, against
# tests/fences/FLOOR.allow. A name in the list that nobody uses is no breach.
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# check ARCHIVE ALLOW [PROVIDER...]: undefined symbols of ARCHIVE that neither
# ALLOW nor any of the archives PROVIDER (its own floor and those below) have.
check() {
    archive=$1 allow=$2
    shift 2
    sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$allow" |
        sort -u >"$scratch/allowed"
    for provider in "$archive" "$@"; do
        nm -g --defined-only "$provider" 2>/dev/null
    done | awk 'NF == 3 { print $3 }' | sort -u >"$scratch/defined"
    nm -u "$archive" | awk '$1 == "U" { print $2 }' | sort -u |
        comm -23 - "$scratch/defined" |
        comm -23 - "$scratch/allowed" >"$scratch/breaches"
    [ -s "$scratch/breaches" ] || return 0
    echo "$archive may not use: $(tr '\n' ' ' <"$scratch/breaches")" >&2
    return 1
}

[ "$KITH_INSTRUMENTED" = no ] ||
    skip "sanitizers and gcov add symbols of their own"

# A floor may be incomplete when a program is, never when the build is done.
fences=$top/tests/fences
check libkith_base.a "$fences/base.allow" || fail "base"
check libkith_wire.a "$fences/wire.allow" libkith_base.a || fail "wire"
check libkith_core.a "$fences/core.allow" \
    libkith_gossip.a libkith_wire.a libkith_base.a || fail "core"
check libkith_gossip.a "$fences/plugins.allow" \
    libkith_backend.a libkith_wire.a libkith_base.a || fail "gossip"
check libkith_plan.a "$fences/plan.allow" libkith_base.a || fail "plan"
check libkith_model.a "$fences/plugins.allow" \
    libkith_backend.a libkith_base.a || fail "model"
check libkith_session.a "$fences/session.allow" \
    libkith_libcrypto.a libkith_ipsec_mb.a libkith_wire.a libkith_base.a ||
    fail "session"
if [ -f libkith_libcrypto.a ]; then
    check libkith_libcrypto.a "$fences/libcrypto.allow" libkith_session.a \
        libkith_base.a || fail "libcrypto"
fi
if [ -f libkith_ipsec_mb.a ]; then
    check libkith_ipsec_mb.a "$fences/ipsec_mb.allow" libkith_session.a \
        libkith_base.a || fail "ipsec_mb"
fi

# Canaries: one archive per kind of trespass.
for call in 'malloc(1) != 0' 'time(0) != 0' 'rand() != 0' 'open("/", 0) != 0' \
    'pthread_self() != 0'; do
    {
        echo '#include <fcntl.h>'
        echo '#include <pthread.h>'
        echo '#include <stdlib.h>'
        echo '#include <time.h>'
        echo 'int trespass(void);'
        echo "int trespass(void) { return $call; }"
    } >"$scratch/trespass.c"
    rm -f "$scratch/trespass.a"
    # shellcheck disable=SC2086 # CC may carry flags.
    if ${CC:-cc} -O0 -c "$scratch/trespass.c" -o "$scratch/trespass.o" &&
        ar rc "$scratch/trespass.a" "$scratch/trespass.o"; then
        canary check "$scratch/trespass.a" "$fences/plugins.allow"
    else
        fail "cannot build the canary for $call"
    fi
done
finish
