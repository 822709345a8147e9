/* All-reduce around a ring: n-ths of the vector, each link busy all the time.
 *
 *   round p < n - 1     i sends part i - p, adds what comes to part i - 1 - p
 *   round n - 1 + q     i sends part i + 1 - q, takes part i - q
 *
 * After n - 1 rounds i holds the sum of part i + 1, after 2 (n - 1) the means
 * of all parts. 2 (n - 1) / n of the vector leave each peer. A part that does
 * not come round is left as it is in one's own model.
 *
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", 2009.
 * Test: unit/test_rules.c. */
#include "collective.h"

static size_t part_size(const struct kith_algebra *algebra)
{
    return (algebra->dim + algebra->peers - 1) / algebra->peers;
}

static size_t payload(const struct kith_algebra *algebra)
{
    return part_size(algebra) * algebra->backend->element_bytes;
}

/* Part self + by, which may be short or empty at the end. */
struct part {
    size_t offset, count;
};

static struct part part_of(const struct kith_algebra *algebra, int64_t by)
{
    const int64_t peers = (int64_t)algebra->peers;
    const int64_t index =
        (((int64_t)algebra->self + by) % peers + peers) % peers;
    struct part part = {.offset = (size_t)index * part_size(algebra)};
    if (part.offset > algebra->dim)
        part.offset = algebra->dim;
    const size_t left = algebra->dim - part.offset;
    part.count = left < part_size(algebra) ? left : part_size(algebra);
    return part;
}

/* Rounds since the means began to travel; negative: sums do. */
static int64_t gathered(const struct kith_algebra *algebra)
{
    return (int64_t)kith_collective_phase(algebra) -
           ((int64_t)algebra->peers - 1);
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_backend *backend = algebra->backend;
    const int64_t q = gathered(algebra);
    const int64_t phase = (int64_t)kith_collective_phase(algebra);
    if (phase == 0)
        kith_collective_begin(algebra);
    const struct part part = part_of(algebra, q < 0 ? -phase : 1 - q);
    void *const sum = kith_algorithm_at(
        algebra, algebra->vectors[COLLECTIVE_SUM], part.offset);
    if (q == 0)
        backend->scale(part.count, 1 / algebra->scalars[COLLECTIVE_COUNT], sum);
    backend->copy(part.count, algebra->sent, sum);
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
}

static void take(struct kith_algebra *algebra, double count,
                 const void *received)
{
    const struct kith_backend *backend = algebra->backend;
    const int64_t q = gathered(algebra);
    const struct part part = part_of(
        algebra, q < 0 ? -1 - (int64_t)kith_collective_phase(algebra) : -q);
    void *const sum = kith_algorithm_at(
        algebra, algebra->vectors[COLLECTIVE_SUM], part.offset);
    if (q < 0 && received != NULL)
        backend->add(part.count, 1.0, received, sum);
    else if (q >= 0)
        backend->copy(
            part.count, sum,
            count > 0 ? received
                      : kith_algorithm_at(algebra, algebra->live, part.offset));
    algebra->scalars[COLLECTIVE_COUNT] = q < 0 ? count + 1 : count;
}

static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    take(algebra, edge->scalars_received[0], algebra->received);
    edge->delta_sum = 0;
}

static double finish(struct kith_algebra *algebra)
{
    if (algebra->merged_count == 0 && algebra->peers > 1)
        take(algebra, 0, NULL);
    if (kith_collective_is_last(algebra))
        algebra->scalars[COLLECTIVE_COUNT] = 1; /* means already */
    return kith_collective_finish(algebra);
}

const struct kith_algorithm kith_algorithm_allreduce_ring = {
    .name = "allreduce-ring",
    .paper = "Patarasuk and Yuan, 2009",
    .summary = "the mean of all models around a ring, in n-ths, after own "
               "steps",
    .differs = "models are averaged after own steps: synchronous SGD under "
               "plain SGD and momentum from one start, not under adamw, "
               "lars, muon or clipping; sync-sgd is, under all",
    COLLECTIVE,
    .schedule = "collective-ring",
    .payload = payload,
    .make = make,
    .merge = merge,
    .finish = finish,
};
