/* Pieces that other peers have: see kith/pieces.h. */
#include "kith/assert.h"
#include "kith/pieces.h"

/* Whom the n-th attempt asks: the home, then those behind it, never oneself. */
static uint32_t asked(const struct kith_piece_peers *peers, uint32_t piece,
                      unsigned attempt)
{
    const uint32_t home = kith_piece_home(piece, peers->count);
    const uint32_t behind = (peers->self + peers->count - home) % peers->count;
    const uint32_t by = attempt + (attempt >= behind);
    return (home + by) % peers->count;
}

static enum kith_err read_piece(void *owner, uint32_t piece, unsigned attempt,
                                size_t size, uint8_t *bytes)
{
    const struct kith_piece_peers *const peers = owner;
    if (peers->ask == NULL || attempt + 1 >= peers->count)
        return KITH_ENOENT;
    const uint32_t peer = asked(peers, piece, attempt);
    KITH_ASSERT(peer != peers->self);
    return peers->distrusted[peer]
               ? KITH_ENOENT
               : peers->ask(peers->owner, peer, piece, size, bytes);
}

static void distrust(void *owner, uint32_t piece, unsigned attempt)
{
    const struct kith_piece_peers *const peers = owner;
    const uint32_t peer = asked(peers, piece, attempt);
    peers->distrusted[peer] = true;
    if (peers->lied != NULL)
        peers->lied(peers->owner, peer, piece);
}

struct kith_piece_source kith_piece_peers_source(struct kith_piece_peers *peers)
{
    KITH_ASSERT(peers->self < peers->count);
    return (struct kith_piece_source){.name = "peers",
                                      .is_peers = true,
                                      .attempts = KITH_PIECE_PEERS_ASKED,
                                      .owner = peers,
                                      .read = read_piece,
                                      .damaged = distrust};
}
