/* Public copies, of which compressed differences travel: see replicas.h. */
#include "replicas.h"

#include "kith/hash.h"

double *kith_replica_number(const struct kith_algebra *algebra)
{
    return &algebra->edge_scalars[algebra->edge_index * KITH_EDGE_SCALARS];
}

/* Not the edge's: whoever knows the same of a peer is sent the same. */
static uint64_t key_of(const struct kith_algebra *algebra, kith_id from,
                       unsigned part)
{
    uint64_t key = kith_hash_word(KITH_HASH_START, algebra->seed);
    key = kith_hash_word(key, algebra->round);
    key = kith_hash_word(key, from);
    return kith_hash_word(key, part);
}

void *kith_replica_of(const struct kith_algebra *algebra, unsigned index)
{
    return algebra->edges[algebra->edge_index * algebra->edge_vectors + index];
}

static bool is_raw(const struct kith_algebra *algebra)
{
    return algebra->compression->compressor->raw;
}

/* Of scratch, where each difference begins a cache line. */
static size_t part_bytes(const struct kith_algebra *algebra)
{
    return (algebra->dim * algebra->backend->element_bytes + 63) & ~(size_t)63;
}

size_t kith_replica_scratch(const struct kith_algebra *algebra, unsigned parts)
{
    return is_raw(algebra) ? 0 : parts * part_bytes(algebra);
}

size_t kith_replica_places(const struct kith_algebra *algebra)
{
    return kith_compression_places(algebra->compression);
}

static struct kith_compression
compression_of(const struct kith_algebra *algebra)
{
    struct kith_compression how = *algebra->compression;
    how.places = algebra->places;
    return how;
}

/* Where an edge counts from: edges that start over from 0, those whose ends
 * begin alike from what they begin with. Both ends of a run do, but not where
 * models start apart, or where one has adopted a model. Rare, and so read in
 * pieces, each of which a device copies to the host. */
static double first_number(const struct kith_algebra *algebra, const void *v)
{
    const size_t element = algebra->backend->element_bytes;
    uint64_t hash = KITH_HASH_START;
    enum { CHUNK = 4096, HASHED = 64 };
    double chunk[CHUNK];
    for (size_t at = 0, count; at < algebra->dim; at += count) {
        count = algebra->dim - at < CHUNK ? algebra->dim - at : CHUNK;
        algebra->backend->read(count, (const char *)v + at * element, chunk);
        for (size_t i = 0; i < count; i += HASHED) {
            const size_t left = count - i;
            hash = kith_hash_bytes(hash, chunk + i,
                                   (left < HASHED ? left : HASHED) *
                                       sizeof *chunk);
        }
    }
    return (double)(hash >> 13 | UINT64_C(1) << 51);
}

void kith_replica_start(struct kith_algebra *algebra, unsigned copies,
                        const void *v)
{
    const double number = first_number(algebra, v);
    for (uint32_t e = 0; e < algebra->edge_count; e++) {
        void *const *edge = algebra->edges + e * algebra->edge_vectors;
        algebra->edge_scalars[e * KITH_EDGE_SCALARS] = number;
        for (unsigned i = 0; i < copies; i++)
            algebra->backend->copy(algebra->dim, edge[i], v);
    }
}

void kith_replica_make(struct kith_algebra *algebra, unsigned part,
                       const void *v, const void *mine, void *wire)
{
    const struct kith_compression how = compression_of(algebra);
    void *const difference = is_raw(algebra) ? wire : algebra->scratch;
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0, difference,
                                1, &(struct kith_term){1, v, mine});
    const bool finite =
        is_raw(algebra)
            ? algebra->backend->finite(algebra->dim, wire)
            : kith_compress(&how, difference,
                            key_of(algebra, algebra->self, part), wire);
    if (finite)
        return;
    /* A raw wire is the backend's, whose copy to the host may be under way. */
    if (is_raw(algebra))
        algebra->backend->clear(algebra->dim, wire);
    else
        kith_compression_erase(&how, wire);
}

bool kith_replica_agree(struct kith_algebra *algebra,
                        const struct kith_work_edge *edge, unsigned copies)
{
    if (edge->scalars_received[0] == *kith_replica_number(algebra))
        return true;
    *kith_replica_number(algebra) = 0;
    for (unsigned i = 0; i < copies; i++)
        algebra->backend->clear(algebra->dim, kith_replica_of(algebra, i));
    return false;
}

const void *kith_replica_read(struct kith_algebra *algebra, kith_id from,
                              unsigned part, const void *wire, unsigned index)
{
    if (is_raw(algebra))
        return wire;
    const struct kith_compression how = compression_of(algebra);
    void *const out = (char *)algebra->scratch + index * part_bytes(algebra);
    return kith_decompress(&how, wire, key_of(algebra, from, part), out) ? out
                                                                         : NULL;
}
