#!/bin/sh
# First boot of a kith peer, as root, from kith-first-boot.service. Every step
# may be repeated: what is done is left alone.
#
#   /etc/kith/release   TARBALL=URL, SHA256=HEX, NAME=of this machine
#   /etc/kith/ca.pub    cluster id and the authority's public key
#
# The node's key is made here and never leaves this machine; what is printed is
# the request, which holds its public half only.
set -eu

state=/var/lib/kith
identity=$state/identity
work=/usr/local/src/kith # root's own: the service user cannot reach it
# shellcheck source=/dev/null
. /etc/kith/release

say() { echo "kith-first-boot: $*"; }

fetch() {
    rm -rf "$work"
    mkdir -p "$work"
    say "fetching $TARBALL"
    case $TARBALL in
    /*) cp "$TARBALL" "$work/kith.tar" ;;
    *) curl --fail --silent --show-error --location --retry 5 \
        --max-filesize 268435456 --output "$work/kith.tar" "$TARBALL" ;;
    esac
    if ! echo "$SHA256  $work/kith.tar" | sha256sum --check --status; then
        say "$TARBALL: SHA-256 is not $SHA256; not installed"
        exit 1
    fi
    tar --extract --file "$work/kith.tar" --directory "$work" \
        --strip-components 1 --no-same-owner
}

build() {
    say "building (a few minutes on one core)"
    (cd "$work" && ./bootstrap && make -C build install)
    echo "$SHA256" >/etc/kith/installed
    rm -rf "$work"
}

# Where the experiment wants what a package has, the package brings it. Other
# data sets are copied to the machine (README).
data() {
    folder=/usr/share/datasets/fashion-mnist
    if grep -q "path: *[\"']*$folder" /etc/kith/experiment.yaml &&
        [ ! -d "$folder" ]; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            --no-install-recommends dataset-fashion-mnist </dev/null ||
            say "dataset-fashion-mnist cannot be had: copy it to $folder"
    fi
}

key() {
    install -d -m 0700 -o kith -g kith "$identity"
    install -m 0644 -o kith -g kith /etc/kith/ca.pub "$identity/ca.pub"
    if [ ! -e "$identity/node.key" ]; then
        runuser -u kith -- /usr/local/bin/kith keys new "$identity" \
            --name "$NAME"
    fi
}

request() {
    say "the request of $NAME follows; sign it with"
    say "    kith keys certify AUTHORITY $NAME.request"
    say "and bring the certificate back as $identity/node.crt"
    echo "-----BEGIN KITH REQUEST $NAME-----"
    cat "$identity/node.request"
    echo "-----END KITH REQUEST $NAME-----"
}

id kith >/dev/null 2>&1 ||
    useradd --system --home-dir "$state" --shell /usr/sbin/nologin kith
install -d -m 0700 -o kith -g kith "$state"
if [ "$(cat /etc/kith/installed 2>/dev/null)" != "$SHA256" ]; then
    fetch
    build
fi
data
key
request
systemctl enable kith-peer.path kith-peer.service
# The service passes over a start without a certificate (its Condition).
systemctl start --no-block kith-peer.path kith-peer.service
say "ready: waiting for $identity/node.crt"
