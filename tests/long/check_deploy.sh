#!/bin/bash
# Goal: what deploy/ hands out is accepted by the tools that will read it, and
# holds no secret.
# Method: a cluster of three made by make-cluster.sh; systemd-analyze verify
# and security on the units, cloud-init's schema on the user data, shellcheck
# on the scripts; bad arguments are refused. A tool that is missing is named
# and its part left out; with none of them: SKIP.
set -u
top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
kith=$(pwd)/kith
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0 parts=0

fail() {
    echo "check_deploy: $*"
    failures=$((failures + 1))
}

have() {
    if command -v "$1" >/dev/null 2>&1; then
        parts=$((parts + 1))
        return 0
    fi
    echo "check_deploy: $1 is not installed: its part is left out"
    return 1
}

# The units, with the program they start replaced by one that is there.
check_units() {
    local unit
    for unit in "$top"/deploy/*.service "$top"/deploy/*.path; do
        sed "s|^ExecStart=[^ ]*|ExecStart=/bin/true|" "$unit" \
            >"$scratch/$(basename "$unit")"
    done
    mkdir -p "$scratch/kith-peer.service.d"
    systemd-analyze verify --man=no "$scratch"/*.service "$scratch"/*.path ||
        fail "systemd-analyze verify refused a unit"
    systemd-analyze security --offline=true --threshold=20 --no-pager \
        "$scratch/kith-peer.service" >"$scratch/security" ||
        fail "exposure above 2.0: $(tail -n 1 "$scratch/security")"
    tail -n 1 "$scratch/security"
    # The canary: a unit without its fences must not pass.
    printf '[Service]\nExecStart=/bin/true\n' >"$scratch/bare.service"
    if systemd-analyze security --offline=true --threshold=20 --no-pager \
        "$scratch/bare.service" >/dev/null 2>&1; then
        fail "an open unit passed: the check is blind"
    fi
}

make_cluster() {
    bash "$top/deploy/make-cluster.sh" 3 --members "$scratch/members" \
        --experiment "$scratch/experiment.yaml" \
        --tarball https://example.org/kith-0.1.0.tar.xz \
        --sha256 "$(printf '0%.0s' {1..64})" --kith "$kith" "$@"
}

prepare() {
    printf '%s\n' '# the three' 10.0.0.1:7117 '[2001:db8::2]:7117' \
        peer-2.example.org:7117 >"$scratch/members"
    sed 's/^peers:.*/peers: 9/' "$top/examples/demo.yaml" \
        >"$scratch/experiment.yaml"
}

check_cluster() {
    make_cluster --out "$scratch/cluster" || fail "make-cluster.sh failed"
    local rank
    for rank in 0 1 2; do
        grep -q "rank: $rank" "$scratch/cluster/$rank/user-data" ||
            fail "user data $rank does not know its rank"
        grep -q '^      peers: 3$' "$scratch/cluster/$rank/user-data" ||
            fail "user data $rank has another number of peers"
    done
    # Whoever signs gives each machine its own rank, and no other.
    "$kith" keys new "$scratch/machine" --name peer-2 >/dev/null &&
        "$kith" keys certify "$scratch/cluster/authority" \
            "$scratch/machine/node.request" >/dev/null &&
        "$kith" keys show "$scratch/machine/node.crt" |
        grep -Eq '^ +rank +2$' || fail "the certificate of peer-2 has no rank 2"
    "$kith" keys certify "$scratch/cluster/authority" --rank 1 \
        "$scratch/machine/node.request" --out "$scratch/x" 2>/dev/null &&
        fail "peer-2 was given rank 1"
    # Nothing of the authority's secret, in no user data.
    local secret
    secret=$(grep -v '^kith-' "$scratch/cluster/authority/ca.key" |
        grep -oE '[A-Za-z0-9+/=_-]{32,}' | head -n 8)
    [ -n "$secret" ] || fail "cannot find the secret to look for"
    while read -r word; do
        grep -qF -- "$word" "$scratch/cluster/authority/ca.pub" && continue
        grep -rqF -- "$word" "$scratch"/cluster/[0-9]* &&
            fail "user data holds the authority's secret"
    done <<<"$secret"
    make_cluster --out "$scratch/cluster" >/dev/null 2>&1 &&
        fail "an existing cluster was overwritten"
    make_cluster --out "$scratch/other" --sha256 abc >/dev/null 2>&1 &&
        fail "a bad SHA-256 was taken"
    # shellcheck disable=SC2016 # It must not expand.
    make_cluster --out "$scratch/other" --tarball 'http://x/$(id)' \
        >/dev/null 2>&1 && fail "a tarball address with a command was taken"
    make_cluster --out "$scratch/other" --experiment \
        "$top/examples/digits.yaml" >/dev/null 2>&1 &&
        fail "a data set beside the experiment was taken"
    make_cluster --out "$scratch/other" --listen 'x: y' >/dev/null 2>&1 &&
        fail "a bad address to listen on was taken"
    [ -e "$scratch/other" ] && fail "a refused cluster left a folder"
    return 0
}

check_user_data() {
    local rank
    for rank in 0 1 2; do
        "${cloud_init[@]}" schema --config-file \
            "$scratch/cluster/$rank/user-data" >"$scratch/schema" 2>&1 ||
            fail "cloud-init refused user data $rank: $(cat "$scratch/schema")"
        grep -q 'Valid' "$scratch/schema" || fail "$(cat "$scratch/schema")"
    done
    printf '#cloud-config\nwrite_files: 7\n' >"$scratch/bad"
    "${cloud_init[@]}" schema --config-file "$scratch/bad" >/dev/null 2>&1 &&
        fail "broken user data passed: the check is blind"
    return 0
}

prepare
if have systemd-analyze; then check_units; fi
if have shellcheck; then
    shellcheck "$top"/deploy/*.sh || fail "shellcheck found something"
fi
if [ -x "$kith" ]; then
    check_cluster
    read -r -a cloud_init <<<"${CLOUD_INIT:-cloud-init}"
    if have "${cloud_init[0]}"; then check_user_data; fi
else
    echo "check_deploy: no kith in $(pwd): the cluster is left out"
fi
[ "$parts" -gt 0 ] || exit 77
[ "$failures" -eq 0 ] || exit 1
echo "check_deploy: ok"
