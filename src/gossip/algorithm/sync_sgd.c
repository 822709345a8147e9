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
 * With `buckets` > 1 the gradient travels in so many pieces, each of which has
 * a way up and down of its own as soon as it is complete, while those of the
 * layers before it are computed (kith/bucket.h). The optimiser steps when all
 * are there: each value is added in the same order, so that x is the same to
 * the bit.
 *
 * A gradient that is not there is missing in the count as well, so survivors
 * finish. Who hears no mean steps along its own gradient, and then its x is
 * another one for good: so each message has a 64th of the root's x behind it,
 * of the same bucket, in turns, which says nothing new to those that have it.
 *
 * A save is of x: one that is taken while a gradient is on its way is a step
 * behind, and who goes on from it is brought up by those blocks.
 *
 * Source: Das et al., "Distributed deep learning using synchronous stochastic
 * gradient descent", 2016 (unmodified synchronous SGD).
 * Test: unit/test_sync_sgd.c. */
#include "collective.h"

#include "kith/assert.h"
#include "kith/bucket.h"

/* Messages that bring all of the root's x, or of a bucket of it. */
#define PARTS 64u

static uint32_t bucket_count(const struct kith_algebra *algebra)
{
    return kith_bucket_count(algebra->dim,
                             algebra->coefficients[KITH_GOSSIP_BUCKETS]);
}

static size_t bucket_size(const struct kith_algebra *algebra)
{
    return kith_bucket_size(algebra->dim, bucket_count(algebra));
}

/* Buckets take turns, and each goes through all rounds of the tree. */
static struct kith_bucket values(const struct kith_algebra *algebra,
                                 size_t from, size_t count)
{
    const uint32_t buckets = bucket_count(algebra);
    const uint64_t ways = algebra->round / kith_collective_phases(algebra);
    const uint32_t bucket =
        kith_bucket_at(buckets, algebra->coefficients[KITH_GOSSIP_URGENT],
                       (uint32_t)(ways % buckets));
    return kith_bucket_of(algebra->dim, algebra->decayed, buckets, bucket, from,
                          count);
}

static struct kith_bucket bucket_of(const struct kith_algebra *algebra)
{
    return values(algebra, 0, algebra->dim);
}

static size_t block_size(const struct kith_algebra *algebra)
{
    return (bucket_size(algebra) + PARTS - 1) / PARTS;
}

static struct kith_bucket block_of(const struct kith_algebra *algebra)
{
    const uint64_t cycle = algebra->round / (bucket_count(algebra) *
                                             kith_collective_phases(algebra));
    return values(algebra, (size_t)(cycle % PARTS) * block_size(algebra),
                  block_size(algebra));
}

static size_t payload(const struct kith_algebra *algebra)
{
    return (bucket_size(algebra) + block_size(algebra)) *
           algebra->backend->element_bytes;
}

static bool is_up(const struct kith_algebra *algebra)
{
    return kith_collective_phase(algebra) < kith_collective_phases(algebra) / 2;
}

/* message <- the bucket's values of a vector; the rest of `room` is 0. */
static void gather(const struct kith_algebra *algebra,
                   const struct kith_bucket *bucket, const void *vector,
                   void *message, size_t room)
{
    const struct kith_backend *backend = algebra->backend;
    const size_t first = bucket->ranges[0].count;
    const size_t both = first + bucket->ranges[1].count;
    KITH_ASSERT(both <= room);
    for (unsigned i = 0; i < 2; i++)
        backend->copy(bucket->ranges[i].count,
                      kith_algorithm_at(algebra, message, i * first),
                      kith_algorithm_at(algebra, vector, bucket->ranges[i].at));
    backend->clear(room - both, kith_algorithm_at(algebra, message, both));
}

/* The other way. */
static void scatter(const struct kith_algebra *algebra,
                    const struct kith_bucket *bucket, const void *message,
                    void *vector)
{
    for (unsigned i = 0; i < 2; i++)
        algebra->backend->copy(
            bucket->ranges[i].count,
            kith_algorithm_at(algebra, vector, bucket->ranges[i].at),
            kith_algorithm_at(algebra, message, i * bucket->ranges[0].count));
}

/* Values of a range that train; the rest are buffers. */
static size_t training(const struct kith_algebra *algebra,
                       const struct kith_range *range)
{
    const size_t left =
        range->at < algebra->trained ? algebra->trained - range->at : 0;
    return left < range->count ? left : range->count;
}

/* The sum's values of this range, from the gradient and the live buffers, or
 * (back) to them. */
static void move(const struct kith_algebra *algebra,
                 const struct kith_range *range, bool back)
{
    void *const sum = algebra->vectors[COLLECTIVE_SUM];
    const size_t n = training(algebra, range);
    void *const owners[2] = {algebra->gradient, algebra->live};
    const struct kith_range parts[2] = {{range->at, n},
                                        {range->at + n, range->count - n}};
    for (unsigned i = 0; i < 2; i++) {
        void *const own = kith_algorithm_at(algebra, owners[i], parts[i].at);
        void *const summed = kith_algorithm_at(algebra, sum, parts[i].at);
        algebra->backend->copy(parts[i].count, back ? own : summed,
                               back ? summed : own);
    }
}

/* A sum of one gradient, or of none, with what does not train. */
static void begin(struct kith_algebra *algebra)
{
    const struct kith_bucket bucket = bucket_of(algebra);
    const bool has = algebra->gradient != NULL;
    algebra->scalars[COLLECTIVE_COUNT] = has;
    for (unsigned i = 0; i < 2; i++) {
        const struct kith_range *range = &bucket.ranges[i];
        if (has)
            move(algebra, range, false);
        else
            algebra->backend->clear(
                range->count,
                kith_algorithm_at(algebra, algebra->vectors[COLLECTIVE_SUM],
                                  range->at));
    }
}

static void make(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
    const struct kith_bucket bucket = bucket_of(algebra);
    const struct kith_bucket block = block_of(algebra);
    const size_t size = bucket_size(algebra);
    if (kith_collective_phase(algebra) == 0)
        begin(algebra);
    gather(algebra, &bucket, algebra->vectors[COLLECTIVE_SUM], algebra->sent,
           size);
    gather(algebra, &block, algebra->live,
           kith_algorithm_at(algebra, algebra->sent, size),
           block_size(algebra));
    edge->scalars_sent[0] = algebra->scalars[COLLECTIVE_COUNT];
}

static void add(struct kith_algebra *algebra, const struct kith_work_edge *edge)
{
    const struct kith_bucket bucket = bucket_of(algebra);
    for (unsigned i = 0; i < 2; i++)
        algebra->backend->add(
            bucket.ranges[i].count, 1.0,
            kith_algorithm_at(algebra, algebra->received,
                              i * bucket.ranges[0].count),
            kith_algorithm_at(algebra, algebra->vectors[COLLECTIVE_SUM],
                              bucket.ranges[i].at));
    algebra->scalars[COLLECTIVE_COUNT] += edge->scalars_received[0];
}

/* Who is below takes the root's block, as whoever is above has it. */
static void merge(struct kith_algebra *algebra, struct kith_work_edge *edge)
{
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
        add(algebra, edge);
        return;
    }
    const struct kith_bucket bucket = bucket_of(algebra);
    const struct kith_bucket block = block_of(algebra);
    scatter(algebra, &bucket, algebra->received,
            algebra->vectors[COLLECTIVE_SUM]);
    algebra->scalars[COLLECTIVE_COUNT] = models;
    scatter(algebra, &block,
            kith_algorithm_at(algebra, algebra->received, bucket_size(algebra)),
            algebra->live);
}

/* At the end of the way up all but the root start over from their own, should
 * nothing come down; at the end of the bucket's rounds the mean takes the
 * gradient's place. */
static double finish(struct kith_algebra *algebra)
{
    const uint64_t half = kith_collective_phases(algebra) / 2;
    const double count = algebra->scalars[COLLECTIVE_COUNT];
    if (kith_collective_phase(algebra) + 1 == half && algebra->self != 0)
        begin(algebra);
    if (!kith_collective_is_last(algebra) || algebra->gradient == NULL ||
        count == 0)
        return 0;
    const struct kith_bucket bucket = bucket_of(algebra);
    for (unsigned i = 0; i < 2; i++) {
        const struct kith_range *range = &bucket.ranges[i];
        algebra->backend->scale(
            range->count, 1 / count,
            kith_algorithm_at(algebra, algebra->vectors[COLLECTIVE_SUM],
                              range->at));
        move(algebra, range, true);
    }
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
    .keys = KITH_GOSSIP_READS(BUCKETS) | KITH_GOSSIP_READS(URGENT),
    .initial = {[KITH_GOSSIP_BUCKETS] = 1, [KITH_GOSSIP_URGENT] = 1},
    .scalar_count = 1,
    .scalars_start = {1},
    .scalars_high = COLLECTIVE_COUNT_MAX,
    .vectors = COLLECTIVE_VECTORS,
    .payload = payload,
    .make = make,
    .merge = merge,
    .finish = finish,
};
