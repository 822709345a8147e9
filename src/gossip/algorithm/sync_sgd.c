/* Synchronous SGD: every peer steps along the mean gradient of all.
 *
 *   g <- (1 / n) sum of all g_i        x <- optimiser(x, g)
 *
 * One process with n times the batch does the same, whatever the optimiser, its
 * state, weight decay and clipping: all of them see the mean, and all peers are
 * in one state. (allreduce-* average models after steps of their own, which is
 * the same for plain SGD and momentum alone.)
 *
 * Sums go up a binomial tree and the mean comes down, in 2 ceil(log2 n) rounds;
 * at most one message comes to a peer in a round, so the order of adding is
 * that of the tree and a run that is repeated is equal to the bit. Buffers that
 * do not train (running means) are averaged with the gradients.
 *
 * A gradient that is not there is missing in the count as well, so survivors
 * finish. Who hears no mean steps along its own gradient, and then its x is
 * another one for good: so each message has a 64th of the root's x behind it,
 * in turns, which says nothing new to those that have it.
 *
 * A save is of x: one that is taken while a gradient is on its way is a step
 * behind, and who goes on from it is brought up by those blocks.
 *
 * Source: Das et al., "Distributed deep learning using synchronous stochastic
 * gradient descent", 2016 (unmodified synchronous SGD).
 * Test: unit/test_sync_sgd.c. */
#include "collective.h"

/* Messages that bring all of the root's x. */
#define PARTS 64u

struct block {
    size_t at, count;
};

static size_t block_size(const struct kith_algebra *algebra)
{
    return (algebra->dim + PARTS - 1) / PARTS;
}

static struct block block_of(const struct kith_algebra *algebra)
{
    const uint64_t cycle = algebra->round / kith_collective_phases(algebra);
    const size_t size = block_size(algebra);
    const size_t at = (size_t)(cycle % PARTS) * size;
    const size_t left = at < algebra->dim ? algebra->dim - at : 0;
    return (struct block){left > 0 ? at : 0, left < size ? left : size};
}

static size_t payload(const struct kith_algebra *algebra)
{
    return (algebra->dim + block_size(algebra)) *
           algebra->backend->element_bytes;
}

static bool is_up(const struct kith_algebra *algebra)
{
    return kith_collective_phase(algebra) < kith_collective_phases(algebra) / 2;
}

/* A sum of one gradient, or of none, with what does not train behind it. */
static void begin(struct kith_algebra *algebra)
{
    const struct kith_backend *backend = algebra->backend;
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    const bool has = algebra->gradient != NULL;
    algebra->scalars[COLLECTIVE_COUNT] = has;
    if (!has) {
        backend->clear(algebra->dim, sum);
        return;
    }
    backend->copy(algebra->trained, sum, algebra->gradient);
    kith_algorithm_copy_buffers(algebra, sum, algebra->live);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const struct block block = block_of(algebra);
    const size_t rest = block_size(algebra) - block.count;
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    backend->copy(algebra->dim, algebra->sent,
                  algebra->vectors[COLLECTIVE_SUM]);
    char *const behind =
        kith_algorithm_at(algebra, algebra->sent, algebra->dim);
    backend->copy(block.count, behind,
                  kith_algorithm_at(algebra, algebra->live, block.at));
    backend->clear(rest, behind + block.count * backend->element_bytes);
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
}

/* Who is below takes the root's block, as whoever is above has it. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct block block = block_of(algebra);
    const double models = edge->scalars_received[0];
    edge->delta_sum = 0;
    edge->refused =
        models > (is_up(algebra)
                      ? kith_collective_most(algebra, edge->peer,
                                             kith_collective_phase(algebra))
                      : algebra->peers);
    if (edge->refused)
        return;
    if (is_up(algebra)) {
        kith_collective_add(algebra, edge);
        return;
    }
    kith_collective_take(algebra, edge);
    algebra->backend->copy(block.count,
                           kith_algorithm_at(algebra, algebra->live, block.at),
                           (const char *)algebra->received +
                               algebra->dim * algebra->backend->element_bytes);
}

/* At the end of the way up all but the root start over from their own, should
 * nothing come down; at the end of all the mean takes the gradient's place. */
static double finish(struct kith_algebra *algebra)
{
    const struct kith_backend *backend = algebra->backend;
    const uint64_t half = kith_collective_phases(algebra) / 2;
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    const double count = algebra->scalars[COLLECTIVE_COUNT];
    if (kith_collective_phase(algebra) + 1 == half && algebra->self != 0)
        begin(algebra);
    if (!kith_collective_is_last(algebra) || algebra->gradient == NULL ||
        count == 0)
        return 0;
    backend->scale(algebra->dim, 1 / count, sum);
    backend->copy(algebra->trained, algebra->gradient, sum);
    kith_algorithm_copy_buffers(algebra, algebra->live, sum);
    return 0;
}

const struct kith_algorithm kith_algorithm_sync_sgd = {
    .name = "sync-sgd",
    .paper = "Das et al., 2016",
    .summary = "the mean of all gradients along a binomial tree: one process "
               "with n times the batch",
    .pattern = KITH_PATTERN_ROUND,
    .wait = KITH_WAIT_STRICT,
    .flags = KITH_NEEDS_LOSSLESS_LINK | KITH_NEEDS_EXACT_MESSAGES |
             KITH_SHARES_GRADIENTS,
    .schedule = "collective-tree",
    .scalar_count = 1,
    .scalars_start = {1},
    .scalars_high = COLLECTIVE_COUNT_MAX,
    .vectors = COLLECTIVE_VECTORS,
    .payload = payload,
    .make = make,
    .merge = merge,
    .finish = finish,
};
