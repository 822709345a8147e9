#!/bin/bash
# Prepares a cluster of N machines: an authority that stays here, and for every
# machine a folder with its files and its cloud-init user data.
#
#   deploy/make-cluster.sh N --members FILE --experiment FILE \
#       --tarball URL --sha256 HEX [--out DIR] [--listen HOST:PORT] [--kith PATH]
#       [--suite NAME]
#
#   --members     one HOST:PORT a line, N lines: where the others reach each
#                 machine; line number - 1 is its rank
#   --experiment  what to train; its `peers:` becomes N
#   --tarball     where the machines fetch kith (a release's .tar.xz); its
#   --sha256      SHA-256 is checked before anything of it is run
#   --out         [cluster] made new; an existing one is refused
#   --listen      ["[::]:7117"] where each machine listens
#   --kith        [kith] the program that makes the authority
#   --suite       the authority's policy, as kith list suites has them: signed
#                 into ca.pub, so that every machine has it [none]
#
# Then: give DIR/RANK/user-data to machine RANK; take the request it prints;
#   kith keys certify DIR/authority peer-RANK.request, which gives it the rank
#   that DIR/authority/ranks has for that name; bring node.crt to it (README).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
count='' members='' experiment='' tarball='' sha256='' out=cluster
listen='[::]:7117' kith=kith suite=''

fail() {
    echo "make-cluster: $*" >&2
    exit 2
}

usage() {
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"
}

# Bounded, plain and without anything YAML or a shell would read as its own.
check() {
    [[ $2 =~ $3 ]] || fail "$1: '$2' is not $4"
}

arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h)
            usage
            exit 0
            ;;
        --members | --experiment | --tarball | --sha256 | --out | --listen | --kith | --suite)
            [ $# -ge 2 ] || fail "$1 needs a value"
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        -*) fail "unknown option $1; see --help" ;;
        *)
            [ -z "$count" ] || fail "more than one count: $count and $1"
            count=$1
            ;;
        esac
        shift
    done
    check N "$count" '^[1-9][0-9]{0,3}$' 'a number of machines, 1 to 9999'
    [ -r "$members" ] || fail "--members: cannot read '$members'"
    [ -r "$experiment" ] || fail "--experiment: cannot read '$experiment'"
    check --tarball "$tarball" '^(https?://|/)[A-Za-z0-9._~:/?&=%+@-]+$' \
        'an http(s) address or an absolute path'
    check --sha256 "$sha256" '^[0-9a-f]{64}$' '64 lower-case hexadecimal digits'
    check --listen "$listen" '^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$' \
        'HOST:PORT or [V6]:PORT'
    [ -z "$suite" ] || check --suite "$suite" '^[A-Za-z0-9]{1,32}$' \
        "a suite's name (kith list suites)"
    [ ! -e "$out" ] || fail "$out exists; choose another --out"
    grep -q '^peers:' "$experiment" || fail "$experiment has no line 'peers:'"
    if grep -Eq "path: *[\"']?[^\"'/ ]" "$experiment"; then
        fail "$experiment: data.path is relative; the machines need an absolute one"
    fi
}

read_members() {
    mapfile -t addresses < <(sed 's/#.*//;s/[[:space:]]//g;/^$/d' "$members")
    [ "${#addresses[@]}" -eq "$count" ] ||
        fail "$members has ${#addresses[@]} addresses, $count machines were asked for"
    local address
    for address in "${addresses[@]}"; do
        check "$members" "$address" \
            '^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$' \
            'HOST:PORT or [V6]:PORT'
    done
    [ "$(printf '%s\n' "${addresses[@]}" | sort -u | wc -l)" -eq "$count" ] ||
        fail "$members names an address twice"
}

peer_file() {
    local rank=$1 address
    cat <<END
identity: /var/lib/kith/identity
listen: "$listen"
advertise: "${addresses[rank]}"
experiment: /etc/kith/experiment.yaml
save: /var/lib/kith/model
rank: $rank
END
    # The certificates are brought by hand, one machine after another.
    [ "$count" -lt 2 ] || echo "wait: {members: 2, for: 24h}"
    echo "members:"
    for address in "${addresses[@]}"; do
        echo "  - {address: \"$address\"}"
    done
}

# The template with every @NAME@ line replaced by that file, indented.
user_data() {
    local folder=$1 line name file
    while IFS= read -r line; do
        if [[ $line =~ ^@([a-z.-]+)@$ ]]; then
            name=${BASH_REMATCH[1]}
            file=$folder/$name
            [ -e "$file" ] || file=$here/$name
            sed '/./s/^/      /' "$file"
        else
            printf '%s\n' "$line"
        fi
    done <"$here/user-data.yaml.in"
}

machine() {
    local rank=$1 folder=$out/$1
    mkdir "$folder"
    cp "$out/authority/ca.pub" "$folder/ca.pub"
    peer_file "$rank" >"$folder/peer.yaml"
    sed "s/^peers:.*/peers: $count/" "$experiment" >"$folder/experiment.yaml"
    printf 'TARBALL=%q\nSHA256=%s\nNAME=peer-%s\n' "$tarball" "$sha256" "$rank" \
        >"$folder/release"
    user_data "$folder" >"$folder/user-data"
    if [ "$(wc -c <"$folder/user-data")" -gt 16384 ]; then
        echo "make-cluster: $folder/user-data is larger than 16 KiB, which some" \
            "clouds refuse; gzip it or shorten the experiment" >&2
    fi
}

arguments "$@"
read_members
mkdir -p "$out"
"$kith" keys new "$out/authority" --authority ${suite:+--suite "$suite"} || {
    rmdir "$out" 2>/dev/null
    fail "no authority was made"
}
# What `kith keys certify` writes into each certificate, by the peer's name.
{
    echo kith-ranks-v1
    for ((rank = 0; rank < count; rank++)); do echo "$rank peer-$rank"; done
} >"$out/authority/ranks"
for ((rank = 0; rank < count; rank++)); do
    machine "$rank"
done
echo "made $out: authority (keep it here), and 0/user-data to" \
    "$((count - 1))/user-data"
echo "next: start the machines, then for each request they print"
echo "    $kith keys certify $out/authority peer-RANK.request"
