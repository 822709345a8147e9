/* Latency by place; see kith/latencies.h. What its files hold: latency_files.c.
 */
#include "kith/latencies.h"

#include <stddef.h>
#include <stdlib.h>

#include "kith/assert.h"
#include "kith/hash.h"

/* Exp(J) has its median at J ln 2 and nine tenths below J ln 10. */
#define LN_2 0.69314718055994530942
#define LN_5 1.60943791243410037460

static size_t pair_of(const struct kith_latencies *latencies, kith_id from,
                      kith_id to)
{
    KITH_DEBUG_ASSERT(latencies->regions > 0);
    return (size_t)(from % latencies->regions) * latencies->regions +
           to % latencies->regions;
}

void kith_latencies_apply(const struct kith_latencies *latencies, kith_id from,
                          kith_id to, struct kith_link_terms *terms)
{
    if (latencies->regions == 0)
        return;
    const size_t pair = pair_of(latencies, from, to);
    terms->latency_ns = latencies->latency_ns[pair];
    terms->jitter_ns =
        latencies->jitter_ns == NULL ? 0 : latencies->jitter_ns[pair];
}

struct kith_link_terms
kith_latencies_slowest(const struct kith_latencies *latencies,
                       const struct kith_link_terms *link)
{
    struct kith_link_terms terms = *link;
    if (latencies->regions > 0) {
        terms.latency_ns = latencies->latency_most;
        terms.jitter_ns = latencies->jitter_most;
    }
    return terms;
}

double kith_latencies_mean(const struct kith_latencies *latencies,
                           uint32_t peers, const struct kith_link_terms *link)
{
    const uint32_t regions = latencies->regions;
    double sum = 0;
    if (regions == 0 || peers < 2)
        return 1e-9 * (double)(link->latency_ns + link->jitter_ns);
    for (uint32_t i = 0; i < regions && i < peers; i++)
        for (uint32_t j = 0; j < regions && j < peers; j++) {
            struct kith_link_terms terms;
            kith_latencies_apply(latencies, i, j, &terms);
            /* Peers of a region: i, i + R, ... */
            const double from = (peers - i - 1) / regions + 1;
            const double to = (peers - j - 1) / regions + 1 - (i == j);
            sum += from * to * (double)(terms.latency_ns + terms.jitter_ns);
        }
    return 1e-9 * sum / ((double)peers * (peers - 1));
}

/* One way, from round trips; both arrays are changed in place. */
static void halve(kith_ns *trip, kith_ns *trip_p90)
{
    KITH_ASSERT(*trip >= 0 && *trip <= KITH_TRIP_MAX_NS);
    *trip /= 2;
    if (trip_p90 == NULL)
        return;
    KITH_ASSERT(*trip_p90 / 2 >= *trip && *trip_p90 <= KITH_TRIP_MAX_NS);
    const double median = (double)*trip;
    double jitter = ((double)(*trip_p90 / 2) - median) / LN_5;
    if (jitter * LN_2 > median)
        jitter = median / LN_2;
    const kith_ns before = (kith_ns)(jitter * LN_2 + 0.5);
    *trip_p90 = (kith_ns)(jitter + 0.5);
    *trip = *trip > before ? *trip - before : 0;
}

void kith_latencies_take(struct kith_latencies *latencies, uint32_t regions,
                         kith_ns *trips, kith_ns *trips_p90, const char **names)
{
    const size_t pairs = (size_t)regions * regions;
    KITH_ASSERT(regions > 0 && trips != NULL);
    *latencies = (struct kith_latencies){
        .regions = regions,
        .latency_ns = trips,
        .jitter_ns = trips_p90,
        .names = names,
        .latency_least = KITH_TRIP_MAX_NS,
        .hash = kith_hash_word(KITH_HASH_START, regions)};
    for (size_t i = 0; i < pairs; i++) {
        halve(&trips[i], trips_p90 == NULL ? NULL : &trips_p90[i]);
        const kith_ns latency = trips[i];
        const kith_ns jitter = trips_p90 == NULL ? 0 : trips_p90[i];
        if (latency < latencies->latency_least)
            latencies->latency_least = latency;
        if (latency > latencies->latency_most)
            latencies->latency_most = latency;
        if (jitter > latencies->jitter_most)
            latencies->jitter_most = jitter;
        latencies->hash = kith_hash_word(latencies->hash, (uint64_t)latency);
        latencies->hash = kith_hash_word(latencies->hash, (uint64_t)jitter);
    }
}

void kith_latencies_close(struct kith_latencies *latencies)
{
    free(latencies->latency_ns);
    free(latencies->jitter_ns);
    free(latencies->names);
    free(latencies->places);
    *latencies = (struct kith_latencies){.regions = 0};
}
