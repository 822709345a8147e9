/* SparseLoCo: long local runs, of which everybody hears the largest values in a
 * few bits; what was left out is sent later.
 *
 *   H own steps from phi;   v_i = b e_i + phi - x_i;   q_i = C(v_i)
 *   e_i <- v_i - q_i;   phi <- phi - a mean q;   x_i <- phi
 *
 * a = `rate`, b = `decay`, C = `gossip.compressor`; the mean is of those who
 * came, one's own among them, summed in order of rank: all that heard the same
 * have the same phi, bit for bit. There is one outer point for all, hence a
 * complete graph: in pairs nothing draws outer points together, and accuracy is
 * lost (80.9 for 86.5 % on like data, 57 for 85 % on unlike), so other graphs
 * are refused.
 *
 * Who hears nobody changes nothing: its steps stay in x, and so in v, and as an
 * edge commits at both ends or at neither, nobody heard of them. Who misses
 * some has another phi from then on; that of a restarted peer is the x which it
 * adopted. Nobody needs to know: behind q stand `share` of the values of phi,
 * another block in each round, and all take those of the lowest rank that they
 * hear of, or their own. After 1 / share rounds in which all hear each other
 * all have one phi again, that of the lowest rank. (As gTop-k does; no
 * algorithm can ask for a model. A member that lies has its q in everybody's
 * mean, and the lowest rank says what phi is: where you do not know your
 * members take a method with a guard.)
 *
 *   message   C(v), then share d values of phi
 *
 * Cost: a pass over e, phi, x for v, twice; two readings of each q that came.
 *
 * Source: Sarfi et al., "Communication Efficient LLM Pre-training with
 * SparseLoCo", 2025, Alg. 1; blocks of phi are ours.
 * Test: unit/test_sparse_loco.c, unit/test_sparse_loco_rules.c. */
#include "updates.h"

#include <math.h>
#include <string.h>

#include "kith/assert.h"
#include "kith/compressor.h"
#include "kith/hash.h"

/* PHI is the first, as kith_algorithm_start has it. */
enum { PHI, ERROR, VECTORS };
/* Vectors of scratch. */
enum { SUM, READ, PARTS };

/* A sum of KITH_DEGREE_MAX such values is finite in float32. */
#define VALUE_MAX 1e30

/* Of scratch, where each vector begins a cache line. */
static size_t part_bytes(const struct kith_algebra *algebra)
{
    return (algebra->dim * algebra->backend->element_bytes + 63) & ~(size_t)63;
}

static void *part(const struct kith_algebra *algebra, unsigned index)
{
    KITH_ASSERT(index < PARTS);
    return (char *)algebra->scratch + index * part_bytes(algebra);
}

static size_t scratch(const struct kith_algebra *algebra)
{
    return PARTS * part_bytes(algebra);
}

/* Values of phi in a message. */
static size_t block_most(const struct kith_algebra *algebra)
{
    const double share = algebra->coefficients[KITH_GOSSIP_SHARE];
    const size_t d = algebra->dim, most = (size_t)(share * (double)d + 0.5);
    return most < 1 ? 1 : most < d ? most : d;
}

static size_t payload(const struct kith_algebra *algebra)
{
    return kith_compression_bytes(algebra->compression) +
           block_most(algebra) * algebra->backend->element_bytes;
}

/* The block that this round brings. */
struct block {
    size_t from, count;
};
static struct block block_of(const struct kith_algebra *algebra)
{
    const size_t d = algebra->dim, most = block_most(algebra);
    const size_t from =
        (size_t)(algebra->round % ((d + most - 1) / most)) * most;
    KITH_ASSERT(from < d);
    return (struct block){from, d - from < most ? d - from : most};
}

static uint64_t key_of(const struct kith_algebra *algebra, kith_id from)
{
    uint64_t key = kith_hash_word(KITH_HASH_START, algebra->seed);
    key = kith_hash_word(key, algebra->round);
    return kith_hash_word(key, from);
}

/* v, which is the same whenever it is asked for within a round. */
static void find_difference(const struct kith_algebra *algebra, void *v)
{
    const double decay = algebra->coefficients[KITH_GOSSIP_DECAY];
    const struct kith_term terms[] = {
        {decay, algebra->vectors[ERROR], NULL},
        {1, algebra->vectors[PHI], algebra->live}};
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0, v, 2, terms);
}

/* Where v is not finite a message of zeros leaves: nothing, or malformed. */
static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    (void)edge;
    if (algebra->dim == 0)
        return;
    const size_t element = algebra->backend->element_bytes;
    const size_t behind = kith_compression_bytes(algebra->compression);
    const struct block block = block_of(algebra);
    char *const message = algebra->sent;
    memset(message + behind, 0, block_most(algebra) * element);
    memcpy(message + behind,
           kith_algorithm_at(algebra, algebra->vectors[PHI], block.from),
           block.count * element);
    find_difference(algebra, part(algebra, READ));
    if (!kith_compress(algebra->compression, part(algebra, READ),
                       key_of(algebra, algebra->self), message))
        kith_compression_erase(algebra->compression, message);
}

static bool is_bounded(const struct kith_algebra *algebra, size_t n,
                       const void *values)
{
    return algebra->backend->finite(n, values) &&
           algebra->backend->magnitudes()->survey(n, values).most <= VALUE_MAX;
}

/* q, into READ; false: nothing that could be added. */
static bool read(const struct kith_algebra *algebra, kith_id from,
                 const void *message)
{
    void *const q = part(algebra, READ);
    return kith_decompress(algebra->compression, message, key_of(algebra, from),
                           q) &&
           is_bounded(algebra, algebra->dim, q);
}

/* The block of phi that came, into READ: a message is at any address. */
static void *read_block(const struct kith_algebra *algebra, const void *message)
{
    const size_t behind = kith_compression_bytes(algebra->compression);
    const size_t element = algebra->backend->element_bytes;
    return memcpy(part(algebra, READ), (const char *)message + behind,
                  block_of(algebra).count * element);
}

/* Was what came over this edge looked at, and found to be a message? */
static double *is_taken(const struct kith_algebra *algebra, uint32_t index)
{
    KITH_ASSERT(index < algebra->edge_count);
    return &algebra->edge_scalars[index * KITH_EDGE_SCALARS];
}

/* `finish` adds: in order of rank, whoever came first. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    edge->delta_sum = 0;
    if (algebra->dim == 0)
        return; /* its messages are empty */
    const size_t count = block_of(algebra).count;
    const void *const phi = read_block(algebra, algebra->received);
    edge->refused = !is_bounded(algebra, count, phi) ||
                    !read(algebra, edge->peer, algebra->received);
    *is_taken(algebra, algebra->edge_index) = !edge->refused;
}

/* Messages of a round: those that were taken, and one's own. */
struct heard {
    kith_id from[KITH_DEGREE_MAX + 1];
    const void *messages[KITH_DEGREE_MAX + 1];
    uint32_t count;
};

/* In order of rank. */
static void hear(struct heard *heard, kith_id from, const void *message)
{
    uint32_t at = heard->count++;
    KITH_ASSERT(heard->count <= KITH_DEGREE_MAX + 1);
    for (; at > 0 && heard->from[at - 1] > from; at--) {
        heard->from[at] = heard->from[at - 1];
        heard->messages[at] = heard->messages[at - 1];
    }
    heard->from[at] = from;
    heard->messages[at] = message;
}

static void hear_all(const struct kith_algebra *algebra, struct heard *heard)
{
    for (uint32_t i = 0; i < algebra->merged_count; i++) {
        const struct kith_work_edge *const edge = &algebra->merged[i];
        if (edge->inbox == KITH_SLOT_NONE)
            continue;
        double *const taken = is_taken(algebra, kith_slot_edge(edge->inbox));
        if (*taken != 0)
            hear(heard, edge->peer, algebra->inboxes[i]);
        *taken = 0;
    }
}

/* e <- v - q; nothing of what is no number. */
static void keep_error(struct kith_algebra *algebra)
{
    void *const e = algebra->vectors[ERROR];
    find_difference(algebra, part(algebra, SUM));
    const struct kith_term rest = {1, part(algebra, SUM), part(algebra, READ)};
    kith_algorithm_combine_only(algebra->backend, algebra->dim, 0, e, 1, &rest);
    if (!is_bounded(algebra, algebra->dim, e))
        algebra->backend->clear(algebra->dim, e);
}

/* Of the lowest rank: what all that hear it have from now on. */
static void take_block(struct kith_algebra *algebra, const struct heard *heard)
{
    const struct block block = block_of(algebra);
    KITH_ASSERT(heard->count > 0);
    if (heard->from[0] != algebra->self)
        algebra->backend->copy(
            block.count,
            kith_algorithm_at(algebra, algebra->vectors[PHI], block.from),
            read_block(algebra, heard->messages[0]));
}

/* phi and x; returns the sum of what x changed by. */
static double step(struct kith_algebra *algebra, const struct heard *heard)
{
    const struct kith_backend *const backend = algebra->backend;
    void *const sum = part(algebra, SUM), *const phi = algebra->vectors[PHI];
    backend->clear(algebra->dim, sum);
    for (uint32_t i = 0; i < heard->count; i++) {
        const bool again = read(algebra, heard->from[i], heard->messages[i]);
        KITH_ASSERT(again);
        backend->add(algebra->dim, 1, part(algebra, READ), sum);
    }
    const struct kith_term mean = {
        -algebra->coefficients[KITH_GOSSIP_RATE] / heard->count, sum, NULL};
    kith_algorithm_combine_only(backend, algebra->dim, 1, phi, 1, &mean);
    const struct kith_term all = {1, phi, NULL};
    return kith_algorithm_combine(backend, algebra->dim, 0, algebra->live, 1,
                                  &all);
}

static double finish(struct kith_algebra *algebra)
{
    struct heard heard = {.count = 0};
    if (algebra->dim == 0)
        return 0;
    hear_all(algebra, &heard);
    if (heard.count == 0 && algebra->peers > 1)
        return 0; /* later */
    if (read(algebra, algebra->self, algebra->sent)) {
        keep_error(algebra);
        hear(&heard, algebra->self, algebra->sent);
    } else {
        algebra->backend->clear(algebra->dim, algebra->vectors[ERROR]);
    }
    if (heard.count == 0)
        return 0;
    take_block(algebra, &heard);
    return step(algebra, &heard);
}

const struct kith_algorithm kith_algorithm_sparse_loco = {
    .name = "sparse-loco",
    .paper = "Sarfi et al., 2025",
    .summary = "H local steps, of whose mean the compressed parts travel to "
               "all, with error feedback",
    .differs = "blocks of the outer point travel along, so that who missed "
               "a round comes back",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_TAKES_COMPRESSOR | KITH_CHECKS_ITS_MESSAGES |
             KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_HOST,
    .schedule = "complete",
    .keys = KITH_GOSSIP_READS(RATE) | KITH_GOSSIP_READS(DECAY) |
            KITH_GOSSIP_READS(SHARE),
    .initial = {[KITH_GOSSIP_RATE] = 1,
                [KITH_GOSSIP_DECAY] = 0.95,
                [KITH_GOSSIP_SHARE] = 0.001},
    .vectors = VECTORS,
    .payload = payload,
    .scratch_bytes = scratch,
    .start = kith_algorithm_start,
    .make = make,
    .merge = merge,
    .finish = finish,
};
